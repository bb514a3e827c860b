"""Engines run what was decided. `base.py` is the seam; each engine is a folder of its own and sees no other."""
