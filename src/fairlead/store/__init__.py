"""Stores for records: `base.py` is the seam; SQLite by default, PostgreSQL for a shared server.

Opened by `app`, used by `control` through the seam. Knows collections of records, but no use case.
"""
