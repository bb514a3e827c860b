"""Routes of clusters, departments, projects, node pools, nodes and topologies.

Listed in `api/application.py`. Each route calls one use case of `control/organization` and converts units.
"""
