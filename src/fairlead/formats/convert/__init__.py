"""From one dialect to another, with what is lost on the way.

Called by `fairlead convert` and `fairlead apply`.
"""
