"""Commands for the server on this machine, for clusters, and for the command line's own settings.

Loaded from the table in `cli/nouns.py`. They start, check, back up and upgrade servers; only `serve` is one.
"""
