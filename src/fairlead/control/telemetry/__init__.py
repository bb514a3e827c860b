"""Metrics over time and at this moment, and the report of usage.

Called by `api/telemetry`. Reads only: samples in memory, records, the ledger.
"""
