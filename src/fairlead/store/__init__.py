"""Where records are kept: `base.py` is the seam; SQLite by default, PostgreSQL for a shared server.

Opened by `app`. Knows collections of records, no use case.
"""
