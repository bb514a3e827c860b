"""The ledger of usage: who held, borrowed, lent and waited for what, to the millisecond.

Every change of a workload, node or quota closes its intervals with `intervals.py`; `control/telemetry` renders reports
with the others. Pure: it reads no store.
"""
