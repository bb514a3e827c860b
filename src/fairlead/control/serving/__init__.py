"""URLs of workloads, the requests that they receive, and their rates.

Held in memory and asked by the proxy for every request, so nothing here reads the store or waits.
"""
