"""Routes and views of workloads, pods, revisions and sessions, and the catalogue of kinds.

Each route calls one use case of `control/workloads` or `control/explain`.
"""
