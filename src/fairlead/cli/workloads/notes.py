"""Checks around a submission: refuses a workload that can never start, and notes fields without effect.

Used by `run`, `submit` and `apply`.
"""

from fairlead.cli.scheduling.answers import show_plan, shown_workloads
from fairlead.cli.scheduling.questions import announce_turn
from fairlead.cli.session.session import ServerSession
from fairlead.cli.workloads.submit_flags import ALLOW_PENDING, PLAN_ID
from fairlead.client import ClientError, ServerError, TimedOut
from fairlead.client.commands import HOST_IMAGE
from fairlead.client.json_object import Json

_NEVER = "Can never start"
_NOT_ENFORCED, _NEW = "NotEnforced", "Creating"
#: Seconds to wait for the server's review of a new workload.
_REVIEW = 2.0


def note_unenforced(session: ServerSession, created: Json) -> None:
    """Say which of the requested fields have no effect here. That the host's image is not pulled is its meaning."""
    if session.console.is_quiet:
        return
    try:
        workload = next(
            one for one in session.client.changes(created["workloadId"], timeout=_REVIEW) if one["phase"] != _NEW
        )
    except TimedOut:
        return
    for condition in workload.get("conditions") or ():
        is_expected = condition["reason"] == "image" and workload.get("images") == [HOST_IMAGE]
        if condition["type"] == _NOT_ENFORCED and not is_expected:
            session.console.say(f"Note: {condition['reason']}: {condition['message']}.")


def show_plan_of(session: ServerSession, kind: str, body: Json, suspended: bool = False) -> None:
    """Print what would happen if this were submitted now."""
    announce_turn(session)
    plan = session.client.kind(kind).plan(body, suspended=suspended)
    if not session.show(plan, plan["id"]):
        show_plan(session.console, plan)


def _announce_evictions(session: ServerSession, kind: str, body: Json) -> None:
    """One line if others' work has to stop for it. Errors of the request are reported when it is submitted."""
    try:
        evicted = session.client.kind(kind).plan(body, times=False)["effects"]["evicted"]
    except ClientError:
        return
    if evicted.get("workloads") or evicted.get("hidden"):
        session.console.say(f"It evicts {shown_workloads(evicted)}.")


def submit_checked(
    session: ServerSession,
    kind: str,
    body: Json,
    origin: str = "",
    caller_environment: str = "",
    suspended: bool = False,
) -> Json:
    """Submit a creation request. What can never start is refused, unless the user allows that it stays pending."""
    plan_id = session.invocation.get(PLAN_ID.name, "")
    must_fit = not plan_id and not session.invocation.get(ALLOW_PENDING.name)
    if session.console.is_live and not plan_id and not suspended:
        _announce_evictions(session, kind, body)
    try:
        return session.client.kind(kind).submit(
            body,
            origin=origin,
            must_fit=must_fit,
            caller_environment=caller_environment,
            plan_id=plan_id,
            suspended=suspended,
        )
    except ServerError as error:
        if must_fit and error.details.startswith(_NEVER):
            raise ClientError(f"{error.details}\nIt was not submitted. --{ALLOW_PENDING.name} submits it.") from error
        raise
