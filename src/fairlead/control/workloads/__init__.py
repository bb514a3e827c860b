"""Use cases on workloads: submit, update, suspend, delete, read, templates, sessions, custom resources.

Called by `api/workloads` and `api/templates`. Writes the desired state; the loop carries it out.
"""
