"""Routes of tokens, sign-on, sessions, accounts, roles and access rules.

Listed in `api/application.py`. Each route calls one use case of `control/people`; a password or secret is shown once.
"""
