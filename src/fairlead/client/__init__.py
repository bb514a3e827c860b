"""The Python SDK of Fairlead. Start with `Client`; the rest is what it takes and raises."""

from fairlead.client.client import Client, KindClient
from fairlead.client.connection import Trust
from fairlead.client.errors import ClientError, Issue, NotLoggedIn, ServerError, TimedOut, Unreachable
from fairlead.client.tokens import Credentials, TokenFile, application, password

__all__ = [
    "Client",
    "ClientError",
    "Credentials",
    "Issue",
    "KindClient",
    "NotLoggedIn",
    "ServerError",
    "TimedOut",
    "TokenFile",
    "Trust",
    "Unreachable",
    "application",
    "password",
]
