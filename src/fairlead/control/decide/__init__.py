"""Pure decisions on one workload: its record, its pods and an observation in, a draft of changes out.

Called by `control/loop` and by the use cases that change a workload. Reads no clock, store or engine.
"""
