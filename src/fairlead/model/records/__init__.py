"""What the store keeps: workloads, phases, events, organization, people, access.

Read by `control` and `store`. Changed only through a store's transaction; members keep their names once stored.
"""
