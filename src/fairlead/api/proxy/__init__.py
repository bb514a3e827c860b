"""The reverse proxy in front of workloads' URLs, on a listener of its own.

Started by `app`. Forwards requests to pods; Fairlead's own tokens and cookies never reach them.
"""
