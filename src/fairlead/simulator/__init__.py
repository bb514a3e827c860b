"""Replays submissions of a period on a simulated cluster, with the scheduler's own `decide` and a clock that jumps.

Called by the command line and by benches. It knows no server and no store.
"""
