"""Use cases, and the loop that reconciles workloads.

The modules here are what every use case needs: the context, access checks, the directory of projects, records, lists.
Called by `api`, started by `app`. Knows engines and stores only by their protocols.
"""
