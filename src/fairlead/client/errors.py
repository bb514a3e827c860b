"""The exceptions of the SDK.

ClientError
├── Unreachable   no server answers at that address, or the connection broke
├── NotLoggedIn   there is no token and no credentials, or the server no longer accepts the token
├── ServerError   the server answered with an error object: its status, message, details and issues
├── NameNotFound  no object has that name
├── JobFailed     a job that was waited for has not completed
└── TimedOut      the wait timed out
"""

from collections.abc import Mapping
from typing import NamedTuple


class Issue(NamedTuple):
    """One violation in a request, as the server reports it."""

    field: str
    details: str
    rule: str = ""

    def __str__(self) -> str:
        text = f"{self.field}: {self.details}" if self.field else self.details
        return f"{text} [{self.rule}]" if self.rule else text


class ClientError(Exception):
    """The base class of the errors of the SDK."""


class Unreachable(ClientError):
    pass


class NotLoggedIn(ClientError):
    """Nobody is logged in, or the server refuses the token. `hint` says what to do if it is not to log in there."""

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TimedOut(ClientError):
    pass


class NameNotFound(ClientError):
    """No object has that name."""


class JobFailed(ClientError):
    """A job ended without completing. `exit_code` is that of its last pod, if one has ended."""

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ServerError(ClientError):
    """An error answer. `issues` has every violation that the server reported, and so has its text."""

    def __init__(self, status: int, message: str, details: str = "", issues: tuple[Issue, ...] = ()) -> None:
        headline, lines = f"{message.rstrip('.')} ({status})", [str(issue) for issue in issues] or [details]
        # The headline of a request with one violation says it already.
        more = [line for line in lines if line and line.rstrip(".") != message.rstrip(".")]
        super().__init__("\n  ".join([f"{headline}:", *more]) if more else f"{headline}.")
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
