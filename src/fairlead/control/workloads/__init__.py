"""Use cases on workloads: submit, update, suspend, delete, read, templates, sessions.

Called by `api/workloads` and `api/templates`. Writes the desired state; the loop carries it out.
"""
