"""The API server of a cluster: credentials, requests, watches, writes, typed objects.

Used by every other package of the engine. Knows no workload.
"""
