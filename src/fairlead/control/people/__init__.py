"""Who can log in, what a token says, accounts, roles and access rules.

Called by `api/people` and, for every request, by the access check. Stores hashes, never passwords.
"""
