"""Metrics over time and at this moment, for the API.

Called by `api/telemetry`. Reads only.
"""
