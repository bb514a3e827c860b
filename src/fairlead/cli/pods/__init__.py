"""Commands that open something in a pod: commands, terminals, ports, files, URLs.

Loaded from the table in `cli/nouns.py`, and called by the commands for workloads. Nothing here changes a workload.
"""
