"""The command `mcp`: a server of tools for coding agents.

Loaded from the table in `cli/nouns.py`. Tools send requests with the caller's own rights and read only, unless allowed.
"""
