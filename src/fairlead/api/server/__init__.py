"""The listening process: sockets, health, metrics, log lines.

Started by `app`. Knows no operation.
"""
