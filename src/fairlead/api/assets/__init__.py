"""Routes of assets, data volumes, secrets and claims.

Listed in `api/application.py`. Each route calls one use case of `control/assets` and never shows the value of a secret.
"""
