"""Conversions from one dialect to another, with lists of what is lost.

Called by `fairlead convert` and `fairlead apply`.
"""
