"""Suspend, resume, delete: each writes the desired phase with an event; the loop does the rest.

A request for the current state is accepted without effect, and an event says so. Called by the API.
"""

import contextlib

import msgspec

from fairlead.control import access
from fairlead.control.audit import audit_line, subject_of
from fairlead.control.context import Context
from fairlead.control.workloads.policies import check_against_policy
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict, NotFound
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


async def suspend(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """Stop its pods and keep it; no effect if it is finished or suspended."""
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.STOPPED, request_id)


async def resume(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """Start it again from the beginning with new pods; no effect if it is finished or running.

    Raises Forbidden if the policy of its project has changed and refuses it now.
    """
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.RUNNING, request_id)


async def delete(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """Delete it in any phase. A second delete raises NotFound."""
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.DELETED, request_id)


async def delete_by_itself(context: Context, workload: Workload, reason: str, message: str) -> None:
    """Delete a workload on behalf of the system: its time is over, or its project is being deleted.

    If the workload changes at the same moment, nothing happens; the caller finds it again later.
    """
    now = context.clock()
    event = Event(
        at=now,
        subject=WORKLOADS.name,
        subject_id=workload.id,
        project_id=workload.project_id,
        reason=reason,
        message=message,
        source="control",
    )
    deleted = _with_desired_phase(workload, DesiredPhase.DELETED, now)
    with contextlib.suppress(Conflict):
        await context.store.commit(Change(writes=(Put(WORKLOADS, deleted),), events=(event,)))


_VERB = {DesiredPhase.STOPPED: "suspend", DesiredPhase.RUNNING: "resume", DesiredPhase.DELETED: "delete"}


async def load_for_change(context: Context, caller: Caller, kind: str, workload_id: str, verb: str) -> Workload:
    """The workload to be changed; raises NotFound if it is deleted, unknown or of another kind."""
    workload: Workload | None = await context.store.get(WORKLOADS, workload_id)
    missing = f"There is no workload of this kind with the id {workload_id}"
    if workload is None or workload.kind != kind or workload.deleted_at is not None:
        raise NotFound(missing)
    access.check(caller, f"{KINDS[kind].rest}:{verb}", workload.project_id, missing=missing)
    access.check_owner(caller, workload, is_protected=context.settings.protects_ownership)
    return workload


async def _set_desired_phase(
    context: Context, caller: Caller, kind: str, workload_id: str, desired: DesiredPhase, request_id: str
) -> Workload:
    """Retried if the loop or another request changes the workload at the same time."""
    for _ in range(_TRIES):
        workload = await load_for_change(context, caller, kind, workload_id, _VERB[desired])
        changed = _with_desired_phase(workload, desired, context.clock())
        if desired is DesiredPhase.RUNNING and changed is not workload:
            check_against_policy(context, KINDS[kind], workload)
        try:
            await context.store.commit(_change(changed, workload, desired, caller, request_id, context.clock()))
        except Conflict:
            continue
        return changed
    raise Conflict(f"Workload {workload_id} was changed by others at the same time; send the request again")


def _with_desired_phase(workload: Workload, desired: DesiredPhase, now: int) -> Workload:
    """The record with the new desired phase, or the same record if that has no effect."""
    if desired is DesiredPhase.DELETED:
        members = {"desired_phase": desired, "deleted_at": now, "delete_at": None}
        if workload.phase is not Phase.DELETING:
            members |= {"updated_at": now}
        return msgspec.structs.replace(workload, version=workload.version + 1, **members)
    if workload.is_terminal or workload.desired_phase is desired:
        return workload
    return msgspec.structs.replace(workload, version=workload.version + 1, desired_phase=desired, updated_at=now)


def _change(
    changed: Workload, before: Workload, desired: DesiredPhase, caller: Caller, request_id: str, now: int
) -> Change:
    verb = _VERB[desired]

    if changed is before:
        reason, message = "NoEffect", f"{verb} by {caller.name} had no effect: it is {before.phase}"
    else:
        reason, message = verb.capitalize(), f"{verb} was requested by {caller.name}"
    return Change(
        writes=() if changed is before else (Put(WORKLOADS, changed),),
        events=(
            Event(
                at=now,
                subject=WORKLOADS.name,
                subject_id=changed.id,
                project_id=changed.project_id,
                reason=reason,
                message=message,
            ),
        ),
        audit=(audit_line(now, caller, verb, subject_of(changed), request_id, message),),
    )
