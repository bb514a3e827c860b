"""Commands on files: `apply`, `diff`, `convert`, `explain`, `lint` and `policy`.

Loaded from the table in `cli/nouns.py`. The only commands that read workload files with the server's own readers.
"""
