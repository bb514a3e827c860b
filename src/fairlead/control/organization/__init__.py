"""Use cases on departments, projects, node pools and topologies: create, change, delete, read.

Called by `api/organization`. Does not touch running workloads itself; the loop reacts to the change.
"""
