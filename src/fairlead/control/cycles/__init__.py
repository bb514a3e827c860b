"""The scheduler's cycles on record: what each was given and what it decided, so that it can be rebuilt.

`loop` records them, `explain` reads them, housekeeping drops old ones. `delta.py` and `segments.py` are pure.
"""
