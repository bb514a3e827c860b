"""Routes of assets, data volumes, secrets and claims.

Each route calls one use case of `control/assets`.
"""
