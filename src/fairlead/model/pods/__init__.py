"""The vocabulary between kinds and engines: pod sets, scaling, supplies, URLs."""
