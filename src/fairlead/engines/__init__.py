"""Engines run what was decided. `base/` is the seam; each engine is a folder of its own and sees no other.

Made by `engine_hosts.py`, called by `control`. An engine acts on orders and reports what it observes.
"""
