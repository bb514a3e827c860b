"""Errors as HTTP responses: the only place that knows the status of each error, and the messages of the wire.

`application.py` calls `render_error` for everything a handler raises. The message of a 400 says what happened; that of
another status is one of the short strings that clients match on. An unexpected error shows only the request id.
"""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from fairlead.control.people.tokens import BadCredentials, UnsupportedGrant
from fairlead.model.errors import (
    ComplianceIssue,
    Conflict,
    Dropped,
    FairleadError,
    Forbidden,
    InUse,
    Invalid,
    NotFound,
    PlanChanged,
    Refused,
    TooMuch,
    Unauthenticated,
    Unavailable,
    headline,
)

ACCEPTED = "Request has been accepted."
MESSAGES = {
    401: "Issuer is not familiar.",
    403: "You do not have sufficient permissions.",
    404: "Resource id not found.",
    405: "Method not allowed.",
    409: "Resource with this name already exists",
    410: "Revision is no longer kept.",
    412: "Precondition failed",
    413: "Request body is too large.",
    415: "Unsupported content type.",
    429: "Too many requests.",
    500: "Something went wrong.",
    503: "Please try again in few minutes.",
}

#: Statuses that every operation may answer in addition to its own, with the plain error body.
ADDED_STATUSES = (400, 405, 413, 415, 429)


class HttpError(Exception):
    """An error of the request itself, before any use case: unknown path, method, size or content type."""

    def __init__(self, status: int, details: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(details)
        self.status = status
        self.details = details
        self.headers = headers or {}


class Error(msgspec.Struct, omit_defaults=True):
    """An error: its status, a headline in `message`, and what happened and what to do in `details`.

    The headline of a 400 says what happened; that of another status is always the same.
    """

    code: int
    message: str
    details: str | msgspec.UnsetType = msgspec.UNSET


class SubmissionError(Error, omit_defaults=True, rename={"compliance_issues": "complianceIssues"}):
    """An error with every violation of the submitted body."""

    compliance_issues: tuple[ComplianceIssue, ...] | msgspec.UnsetType = msgspec.UNSET


class RevisionGone(Error, omit_defaults=True, rename={"list_revision": "listRevision"}):
    """The requested revision is no longer kept: list again, then watch from `listRevision`."""

    list_revision: int | msgspec.UnsetType = msgspec.UNSET


class OAuthError(msgspec.Struct, omit_defaults=True):
    """An error of the token endpoint in OAuth 2 format."""

    error: str
    error_description: str | msgspec.UnsetType = msgspec.UNSET


class Gone(FairleadError):
    """A watch from a revision that is no longer kept."""

    code = "gone"

    def __init__(self, message: str, revision: int) -> None:
        super().__init__(message)
        self.revision = revision


#: How many violations `details` lists for operations without entries for them.
_MAX_ISSUES = 100
_STATUS: tuple[tuple[type[FairleadError], int], ...] = (
    (Invalid, 400),
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (PlanChanged, 409),
    (Gone, 410),
    (Dropped, 410),
    (InUse, 412),
    (TooMuch, 429),
    (Unavailable, 503),
    (Refused, 400),
)


def status_of(error: Exception, answers: Mapping[int, object]) -> int:
    """The status of an error in an operation that declares those answers."""
    if isinstance(error, HttpError):
        return error.status
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    if status == 412 and 412 not in answers:
        # Declared for assets only; elsewhere it is an error of the request.
        return 409 if 409 in answers else 400
    if status == 409 and 409 not in answers:
        # Submissions answer 400 for a taken name; elsewhere another request interfered, so a retry can succeed.
        return 400 if answers.get(400) is SubmissionError else 503
    return status


def render_error(error: Exception, answers: Mapping[int, object], request_id: str) -> Response:
    """The response for an error; if the operation declares them, every violation is an entry of its own."""
    status = status_of(error, answers)
    headers: dict[str, str] = {}
    details: str | msgspec.UnsetType
    if isinstance(error, HttpError):
        details, headers = error.details, error.headers
    elif isinstance(error, FairleadError):
        details = error.message
    else:
        details = f"Internal server error; the server's log has details under the request id {request_id}"
    if isinstance(error, TooMuch):
        headers = {"retry-after": str(error.retry_after_seconds)}
    elif status == 503:
        headers = {"retry-after": "5"}
    elif status == 401:
        headers = {"www-authenticate": "Bearer"}
    body: Error
    if isinstance(error, Invalid) and error.issues:
        message = headline(error.issues)
        if answers.get(status) is SubmissionError:
            body = SubmissionError(status, message, _in_line(error.issues, 3), error.issues)
        else:
            body = Error(status, message, _in_line(error.issues, _MAX_ISSUES))
    elif status == 400:
        body = Error(status, headline((ComplianceIssue("", details),)), details)
    elif isinstance(error, PlanChanged):
        body = Error(status, "The plan no longer holds", details)
    elif isinstance(error, Gone):
        body = RevisionGone(status, MESSAGES[status], details, error.revision)
    else:
        body = Error(status, MESSAGES[status], details)
    return Response(msgspec.json.encode(body), status, headers, "application/json")


def _in_line(issues: tuple[ComplianceIssue, ...], max_shown: int) -> str:
    """The first violations in one line, for clients that show only `details`."""
    shown = "; ".join(
        f"{issue.field}: {issue.details}" if issue.field else issue.details for issue in issues[:max_shown]
    )
    return f"{shown}; and {len(issues) - max_shown} more" if len(issues) > max_shown else shown


def render_oauth_error(error: Invalid) -> Response:
    """The response of the OAuth 2 token endpoint to a refused grant."""
    if isinstance(error, BadCredentials):
        status, word = 401, "invalid_client"
    elif isinstance(error, UnsupportedGrant):
        status, word = 400, "unsupported_grant_type"
    else:
        status, word = 400, "invalid_request"
    return Response(msgspec.json.encode(OAuthError(word, error.message)), status, None, "application/json")
