"""Use cases on assets, secrets, config maps, claims and data volumes, and loading them for an engine before a start.

Called by `api/assets` and by the loop. Values of secrets leave this room only to an engine.
"""
