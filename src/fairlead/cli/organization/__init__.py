"""Commands for projects, departments, clusters, node pools, nodes, people, roles, audit and notifications.

Loaded from the table in `cli/nouns.py`. They talk to the server through `client`.
"""
