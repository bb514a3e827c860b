"""What the store keeps: workloads, phases, events, organization, people, access.

Changed only through a store's transaction.
"""
