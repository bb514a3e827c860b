"""What a submission must satisfy before it becomes a workload: rules between fields, policies, project rules.

Called by the use cases of `control` for every submission and change. Pure: what a spec names is loaded before.
"""
