"""Why a workload waits, when it starts, what a plan or a change would do, and what happened in the past.

The top of `control`: only the API calls it. It loads the state, asks `foresight` and hides what the caller may not see;
it changes nothing; two functions submit a workload, but only if it can start or as it was planned.
"""
