"""The ledger of usage: who held, borrowed, lent and waited for what, to the millisecond.

Import from the modules.
"""
