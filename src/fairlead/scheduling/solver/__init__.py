"""Making room: victims, scenarios, their simulation, and the proofs that spare one.

Called by the actions that evict: consolidate, reclaim, preempt. What it tries is rolled back unless it succeeds.
"""
