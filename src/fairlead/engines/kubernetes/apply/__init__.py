"""The executor: carries out planned steps on the cluster, each of them idempotent.

Called by the engine. It decides nothing except to retry.
"""
