"""The exceptions of the SDK.

ClientError
├── Unreachable   no server answers at that address, or the connection broke
├── NotLoggedIn   there is no token and no credentials, or the server no longer accepts the token
├── ServerError   the server answered with an error object: its status, message, details and issues
└── TimedOut      the wait timed out
"""

from collections.abc import Mapping
from typing import NamedTuple


class Issue(NamedTuple):
    """One violation in a request, as the server reports it."""

    field: str
    details: str
    rule: str = ""


class ClientError(Exception):
    """The base class of the errors of the SDK."""


class Unreachable(ClientError):
    pass


class NotLoggedIn(ClientError):
    pass


class TimedOut(ClientError):
    pass


class ServerError(ClientError):
    """An error answer. `issues` has every violation that the server reported."""

    def __init__(self, status: int, message: str, details: str = "", issues: tuple[Issue, ...] = ()) -> None:
        super().__init__(f"{message} ({status})")
        self.status = status
        self.message = message
        self.details = details
        self.issues = issues


def read_error(status: int, body: object) -> ServerError:
    """The error in an answer's body; other bodies, such as a proxy's page, give a readable error too."""
    if not isinstance(body, Mapping):
        return ServerError(status, f"The server answered with status {status}.", str(body)[:500] if body else "")
    message = str(body.get("message") or f"The server answered with status {status}.")
    return ServerError(status, message, str(body.get("details") or ""), _read_issues(body.get("complianceIssues")))


def _read_issues(issues: object) -> tuple[Issue, ...]:
    if not isinstance(issues, list):
        return ()
    return tuple(
        Issue(str(item.get("field") or ""), str(item.get("details") or ""), str(item.get("rule") or ""))
        for item in issues
        if isinstance(item, Mapping)
    )
