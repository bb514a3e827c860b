"""What to do next with a workload on the cluster: its state, the transition table, the steps. Pure.

Called by `apply/reconciler.py` and, for reports, by the engine. Reads no cluster; `apply` carries the steps out.
"""
