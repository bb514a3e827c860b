"""What the cluster has of a workload (the cache), and what that means (the report).

Fed by watches, read by the planner and the engine. Writes nothing to the cluster.
"""
