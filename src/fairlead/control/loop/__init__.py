"""The reconcile loop: load, observe, decide, record, apply; the lease, and what time alone triggers.

Started by `app`. It acts on what `control/decide` and `scheduling` decided, and makes no decision of its own.
"""
