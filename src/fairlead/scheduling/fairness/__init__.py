"""Fair shares, quota checks, and which job is next.

Called by the session and the actions. Places nothing.
"""
