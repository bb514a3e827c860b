"""The custom resources of workloads: one for each workload, whichever way it came in, equal in both directions.

`loop.py` runs next to the reconciler and calls the others; the webhook of `api/workloads` uses the reader. They call
the use cases in `control/workloads` and never write a workload's phase.
"""
