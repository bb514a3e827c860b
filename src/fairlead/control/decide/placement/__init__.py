"""Between one workload and the scheduler: missing pods and the snapshot in, placements and evictions out.

Pure. Called by the scheduler's side of the loop and by `explain`.
"""
