"""Commands for assets, secrets, config maps, claims, credentials and templates.

Loaded from the table in `cli/nouns.py`. They talk to the server through `client` and never print the value of a secret.
"""
