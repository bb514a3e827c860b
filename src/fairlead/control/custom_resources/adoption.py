"""Records a workload that only the cluster knows: its custom resource has the spec, its status what the server wrote.

Called by `loop.py` after a restore, or if the database was lost. The workload was accepted before, so its
project's rules and limits are not applied again, and its pods run on.
"""

import msgspec

from fairlead.admission.admit import admit
from fairlead.control.context import Context
from fairlead.control.decide.expand import expand_spec
from fairlead.control.decide.rollout import new_revision
from fairlead.control.workloads.submit import find_project, new_record
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis, from_iso
from fairlead.model.custom_resource import CustomResource
from fairlead.model.dialect import Dialect
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import TERMINAL, Phase
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.records.workload import Workload
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put
from fairlead.store.collections import REVISIONS, WORKLOADS

_ENDED = frozenset(phase.value for phase in TERMINAL)


async def adopt(context: Context, caller: Caller, resource: CustomResource, submission: Submission) -> Workload:
    """Record it under its id, as it was. Raises Invalid, or Conflict if another workload has its name by now."""
    kind, project = KINDS[submission.kind], find_project(context, submission)
    admitted = admit(kind, submission, max_completions=context.settings.max_completions)
    new = admitted.record(new_record(context, caller, kind, project, submission))
    workload = msgspec.structs.replace(new, run=max(1, resource.run), **_members(new, resource.status))
    revisions = _revisions(workload, resource.status) if kind.has_revisions else ()
    workload = msgspec.structs.replace(workload, revisions=revisions)
    event = Event(
        at=new.created_at,
        subject=WORKLOADS.name,
        subject_id=workload.id,
        project_id=workload.project_id,
        type="Warning",
        reason="Adopted",
        message="Adopted from its custom resource: the database did not know it",
        source="control",
    )
    writes = (Put(WORKLOADS, workload), *(Put(REVISIONS, revision) for revision in revisions))
    await context.store.commit(Change(writes=writes, events=(event,)))
    return workload


def _members(new: Workload, status: dict[str, object]) -> dict[str, object]:
    """What the status knows of the record."""
    members: dict[str, object] = {}
    for member, name in (("name", "workloadName"), ("created_by", "createdBy")):
        if value := _text(status, name):
            members[member] = value
    # Anybody may write into a status.
    if (dialect := _text(status, "dialect")) in tuple(Dialect):
        members["dialect"] = Dialect(dialect)
    members["requested_name"] = members.get("name", new.name)
    created_at = _time(status, "createdAt")
    if created_at is not None:
        members["created_at"] = created_at
    if _text(status, "phase") in _ENDED:
        members |= _end(new, status)
    return members


def _end(new: Workload, status: dict[str, object]) -> dict[str, object]:
    completed_at = _time(status, "completedAt") or new.created_at
    lifetime = expand_spec(new.kind, bytes(new.spec)).lifetime_after_end
    return {
        "phase": Phase(_text(status, "phase")),
        "phase_message": _text(status, "message"),
        "completed_at": completed_at,
        "delete_at": None if lifetime is None else completed_at + lifetime,
    }


def _revisions(workload: Workload, status: dict[str, object]) -> tuple[Revision, ...]:
    """The revision that serves, under its number: its objects in the cluster carry that in their names."""
    number, replicas = status.get("revision"), status.get("replicas")
    if not isinstance(number, int) or workload.is_terminal:
        return ()
    if not isinstance(replicas, int):
        replicas = expand_spec(workload.kind, bytes(workload.spec)).podsets[0].count
    now = workload.updated_at
    revision = new_revision(workload, number, replicas, now)
    return (msgspec.structs.replace(revision, stage=Stage.SERVING, serving_since=now),)


def _text(status: dict[str, object], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""


def _time(status: dict[str, object], name: str) -> Millis | None:
    try:
        return from_iso(_text(status, name))
    except ValueError:
        return None
