"""Routes of metrics of workloads, nodes, owners and clusters.

Each route calls one use case of `control/telemetry`.
"""
