"""The Python SDK of Fairlead. Start with `Client`, or with `AsyncClient` of `fairlead.client.aio`.

The rest is what they take and raise.
"""

from fairlead.client.access.tokens import Credentials, TokenFile, application, password
from fairlead.client.access.urls import Trust
from fairlead.client.client import Client
from fairlead.client.errors import (
    ClientError,
    Issue,
    JobFailed,
    NameNotFound,
    NotLoggedIn,
    ServerError,
    TimedOut,
    Unreachable,
)
from fairlead.client.jobs import Job, Jobs
from fairlead.client.kind_client import KindClient

__all__ = [
    "Client",
    "ClientError",
    "Credentials",
    "Issue",
    "Job",
    "JobFailed",
    "Jobs",
    "KindClient",
    "NameNotFound",
    "NotLoggedIn",
    "ServerError",
    "TimedOut",
    "TokenFile",
    "Trust",
    "Unreachable",
    "application",
    "password",
]
