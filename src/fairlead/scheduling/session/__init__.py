"""One node pool in one cycle: the undo log, one placement attempt, what was decided so far.

Called by the actions and the solver. They change the live model only by its moves, which can be undone.
"""
