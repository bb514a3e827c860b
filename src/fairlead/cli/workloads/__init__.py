"""Commands for workloads of every kind: submit, list, describe, logs, wait, why, queue.

Loaded from the table in `cli/nouns.py`. Kinds and their flags are read from generated tables, so no kind is named here.
"""
