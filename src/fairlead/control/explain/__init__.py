"""Why a workload waits, and what the scheduler would see now.

The top of `control`: only the API calls it. Reads only.
"""
