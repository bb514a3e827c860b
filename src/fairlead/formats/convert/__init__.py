"""Conversions from one dialect to another, with lists of what is lost.

Called by `fairlead convert` and `apply`, and by the server. Nothing is dropped without a line in the list of losses.
"""
