"""Routes of tokens, accounts and access rules.

Each route calls one use case of `control/people`.
"""
