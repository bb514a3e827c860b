"""Suspend, resume, delete: each writes what is now wanted, with an event, and leaves the doing to the loop.

Asking for what is already so is accepted without effect and says so in an event. Called by the API.
"""

import contextlib

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict, NotFound
from fairlead.model.records.event import AuditLine, Event
from fairlead.model.records.organization import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


async def suspend(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """Stop its pods and keep it; a finished or suspended one stays as it is."""
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.STOPPED, request_id)


async def resume(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """Start it again from its beginning with new pods; a finished or running one stays as it is."""
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.RUNNING, request_id)


async def delete(context: Context, caller: Caller, kind: str, workload_id: str, request_id: str = "") -> Workload:
    """End it in whatever phase it is. A second delete finds nothing."""
    return await _set_desired_phase(context, caller, kind, workload_id, DesiredPhase.DELETED, request_id)


async def delete_by_itself(context: Context, workload: Workload, reason: str, message: str) -> None:
    """Delete what nobody asked to delete: its time is over, or its project goes.

    One that changed at the same moment stays; whoever calls this finds it again, because it is not deleted yet.
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
    """The workload to be changed; NotFound for another kind's, a deleted or an unknown one."""
    workload: Workload | None = await context.store.get(WORKLOADS, workload_id)
    if workload is None or workload.kind != kind or workload.deleted_at is not None:
        raise NotFound(f"There is no workload {workload_id} of this kind")
    access.check(caller, f"{KINDS[kind].rest}:{verb}", workload.project_id)
    return workload


async def _set_desired_phase(
    context: Context, caller: Caller, kind: str, workload_id: str, desired: DesiredPhase, request_id: str
) -> Workload:
    """Retried when the loop or another request was faster, so that no word is lost."""
    for _ in range(_TRIES):
        workload = await load_for_change(context, caller, kind, workload_id, _VERB[desired])
        wanted = _with_desired_phase(workload, desired, context.clock())
        try:
            await context.store.commit(_change(wanted, workload, desired, caller, request_id, context.clock()))
        except Conflict:
            continue
        return wanted
    raise Conflict(f"Workload {workload_id} changed too often to be changed now; send the request again")


def _with_desired_phase(workload: Workload, desired: DesiredPhase, now: int) -> Workload:
    """The record with the new desire, or the same one where the desire has no effect."""
    if desired is DesiredPhase.DELETED:
        members = {"desired_phase": desired, "deleted_at": now, "delete_at": None}
        if workload.phase is not Phase.DELETING:
            members |= {"updated_at": now}
        return msgspec.structs.replace(workload, version=workload.version + 1, **members)
    if workload.is_terminal or workload.desired_phase is desired:
        return workload
    return msgspec.structs.replace(workload, version=workload.version + 1, desired_phase=desired, updated_at=now)


def _change(
    wanted: Workload, before: Workload, desired: DesiredPhase, caller: Caller, request_id: str, now: int
) -> Change:
    verb = _VERB[desired]
    if wanted is before:
        reason, message = "NoEffect", f"{verb} by {caller.name} had no effect: it is {before.phase}"
    else:
        reason, message = verb.capitalize(), f"{verb} was asked for by {caller.name}"
    return Change(
        writes=() if wanted is before else (Put(WORKLOADS, wanted),),
        events=(
            Event(
                at=now,
                subject=WORKLOADS.name,
                subject_id=wanted.id,
                project_id=wanted.project_id,
                reason=reason,
                message=message,
            ),
        ),
        audit=(
            AuditLine(
                at=now,
                caller=caller.name,
                operation=verb,
                subject=WORKLOADS.name,
                subject_id=wanted.id,
                request_id=request_id,
                details=message,
            ),
        ),
    )
