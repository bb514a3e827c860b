"""The HTTP interface: parse, check access, call one use case, format the answer.

`application.py` holds the table of operations. Runs no SQL and asks no engine.
"""
