"""The use cases, and the loop that carries them out.

The modules here are what every use case is handed: the context, access checks, the directory of projects, records and
lists. Called by `api` and started by `app`. Knows engines and stores by their seams only.
"""
