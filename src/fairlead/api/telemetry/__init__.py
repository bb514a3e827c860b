"""Routes of metrics of workloads, nodes, owners and clusters, and of the usage report.

Listed in `api/application.py`. Each route calls one use case of `control/telemetry` and only reads.
"""
