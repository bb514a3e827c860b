"""Finds contradictions and traps in workloads, policies and clusters before anybody runs into them.

`table.py` lists the rules; each is one function from the material to its findings. Called by `fairlead lint`.
"""
