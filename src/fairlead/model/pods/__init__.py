"""The vocabulary between kinds and engines: pod sets, containers, scaling, supplies, URLs.

Kinds render it from specs, engines run it. It names no kind and no engine.
"""
