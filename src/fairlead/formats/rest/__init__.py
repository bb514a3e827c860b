"""REST bodies, the older REST dialect, and the schemas of both.

Called by `api` and by `convert`. Walks the declarations in `model/spec`.
"""
