"""Policies: writing them, and the effective policy of a project.

Called by the API, and by the use cases of workloads for every submission. A change of policy never touches what runs.
"""
