"""Workloads and the organization as Kubernetes objects, and what no object can hold. Pure.

Called by the planner and the executor, and by `fairlead convert`. Reads no cluster.
"""
