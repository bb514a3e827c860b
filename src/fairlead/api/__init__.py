"""The HTTP interface: parse, check access, call one use case, format the answer.

`application.py` holds the table of operations; `app` starts it. Runs no SQL and asks no engine.
"""
