"""Policies: what administrators preset and forbid in the specs of workloads.

`merge.py` makes one effective policy of those of all scopes, `apply.py` applies it to a spec. Pure; called by `admit`
and by the use cases of policies. It does not know who wrote a policy, or where it is stored.
"""
