"""All errors that Fairlead raises on purpose, one tree.

FairleadError
├── Invalid          the request is invalid: every issue with the path of its field
├── Unauthenticated  no caller, or a token that this installation did not issue
├── Forbidden        the caller may not do this here
├── NotFound         no record of that id, or none that the caller may see
├── Conflict         the record was changed at the same time, or the name is taken
├── PlanChanged      a submission names a plan that no longer holds
├── Dropped          what was requested is past its retention
├── InUse            another object still uses what should be removed
├── TooMuch          over a limit on open work or on requests; try again later
├── Elsewhere        another server runs the pod's machine: the request is forwarded to it
├── Unavailable      the store cannot be written now, or the server is stopping
└── Refused          an engine or a record cannot do what was requested, and a retry will not help

`api/http/errors.py` alone knows which HTTP status each becomes.
"""

from collections.abc import Sequence

import msgspec

#: The two messages of a refused request that scripts match on, as Run:ai words them.
MISSING_PARAMETER = "Required parameter is missing"
AGAINST_POLICY = "The workload request does not comply with the policy set by the administrator"


class ComplianceIssue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One violation: the field (dotted path, items of a list by position), what is wrong, and what is allowed."""

    field: str
    details: str
    #: One of the nine policy rules (min, max, step, options, required, canEdit, canAdd, locked, blocked) or nothing.
    rule: str | None = None

    @property
    def is_of_missing(self) -> bool:
        """Whether a member that must be given is missing."""
        return self.details.startswith(("is missing", "is required"))


#: How long a headline may be, and how many fields it names.
_HEADLINE, _NAMED = 200, 3


def headline(issues: Sequence[ComplianceIssue]) -> str:
    """What happened in a refused request, in one line: its only violation, or how many there are and where."""
    if any(issue.rule for issue in issues):
        return AGAINST_POLICY
    if all(issue.is_of_missing for issue in issues):
        return MISSING_PARAMETER
    if len(issues) == 1:
        # What to do about it comes after the semicolon, and is in the details.
        what = issues[0].details.partition("; ")[0]
        what = f"the body {what}" if what.startswith("is ") and not issues[0].field else what
        line = f"{issues[0].field}: {what}" if issues[0].field else f"{what[:1].upper()}{what[1:]}"
    else:
        fields = list(dict.fromkeys(issue.field or "the body" for issue in issues))
        more = f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else ""
        line = f"The request has {len(issues)} errors: {', '.join(fields[:_NAMED])}{more}"
    return line if len(line) <= _HEADLINE else f"{line[: _HEADLINE - 1]}…"


class FairleadError(Exception):
    """The base of all errors; `code` is a stable word for scripts and logs."""

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Invalid(FairleadError):
    code = "invalid"

    def __init__(self, message: str = "", issues: Sequence[ComplianceIssue] = ()) -> None:
        """Without a message, the issues say what happened."""
        super().__init__(message or headline(issues))
        self.issues = tuple(issues)


def refuse_malformed(issues: Sequence[ComplianceIssue]) -> None:
    """Raise Invalid if there are any issues."""
    if issues:
        raise Invalid(issues=tuple(issues))


class Unauthenticated(FairleadError):
    code = "unauthenticated"


class Forbidden(FairleadError):
    code = "forbidden"


class NotFound(FairleadError):
    code = "not-found"


class Conflict(FairleadError):
    code = "conflict"

    def __init__(self, message: str, columns: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        #: The columns whose values another record has already; empty if the record was changed at the same time.
        self.columns = columns


class PlanChanged(FairleadError):
    code = "plan-changed"


class Dropped(FairleadError):
    code = "dropped"


class InUse(FairleadError):
    code = "in-use"


class TooMuch(FairleadError):
    code = "too-much"

    def __init__(self, message: str, retry_after_seconds: int = 1) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Elsewhere(FairleadError):
    code = "elsewhere"

    def __init__(self, address: str) -> None:
        """Without an address no server runs it at this moment."""
        super().__init__(f"The server at {address} runs this machine" if address else "No server runs this machine now")
        self.address = address


class Unavailable(FairleadError):
    code = "unavailable"


class Refused(FairleadError):
    code = "refused"
