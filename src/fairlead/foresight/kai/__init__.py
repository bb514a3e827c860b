"""Clusters that KAI schedules, as snapshots: the objects that KAI reads, and what follows from them.

Called for KAI's own snapshot archives and for objects that were read from a cluster. `agreement.py` compares KAI with
Fairlead's scheduler.
"""
