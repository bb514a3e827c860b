"""Routes and views of workloads, pods, revisions and sessions, and the catalogue of kinds.

Listed in `api/application.py`. Each route calls one use case of `control/workloads` or `control/explain`. Kinds are
walked from `KINDS`, never named.
"""
