"""Use cases on assets, secrets, config maps, claims and data volumes, and what an engine gets of them before a start.

Called by `api/assets` and by the loop. Secret values leave this room only towards an engine.
"""
