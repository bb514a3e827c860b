"""Routes of clusters, departments, projects, node pools, nodes and topologies.

Each route calls one use case of `control/organization`.
"""
