"""Commands that ask the scheduler: about files (`schedule`, `fairshare`, `test`), and about the server's state (`plan`,
`estimate`, `what-if`, `replay`, `report`).

Loaded from the table in `cli/nouns.py`. Questions on a snapshot file need no server and give the server's answer.
"""
