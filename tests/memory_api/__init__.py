"""A Kubernetes API server in memory, as a process of its own: it counts requests, and plays pods and controllers.

For what must be counted or is too large for a real cluster on this machine. Its answers are those of the verbs that
Fairlead uses; it checks no schema, no rights, and has no scheduler.
"""
