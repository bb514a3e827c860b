"""REST bodies, the older REST page, and the schemas of both.

Called by `api` and by `convert`.
"""
