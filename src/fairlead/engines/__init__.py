"""Engines run what was decided. `base/` is the seam; each engine is a folder of its own and sees no other."""
