"""What the store keeps: workloads, phases, events, organization, access.

Changed only through a store's transaction.
"""
