"""Names in a spec: where they are looked up, what they resolve to, and which workloads use them.

Called by the use cases of workloads and assets. Changes no record.
"""
