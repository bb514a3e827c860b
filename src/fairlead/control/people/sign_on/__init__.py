"""Sign-on with an identity provider (OpenID Connect): requests to the provider, its tokens, the accounts of its users,
and their sessions.

Called by the authenticator and by `api/people`. Stores no password and no token of the provider in plain text.
"""
