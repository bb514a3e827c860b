"""Change a running workload: the changes that its kind allows are written into its spec, and the loop reconciles it.

Called by the API. The last request wins, even if the loop has not carried out an earlier one.
"""

from collections.abc import Mapping

import msgspec

from fairlead.admission.admit import Admitted, admit
from fairlead.admission.project_rules import apply_project_rules, has_project_rules
from fairlead.control.context import Context
from fairlead.control.references.names import resolve_names
from fairlead.control.workloads.lifecycle import load_for_change
from fairlead.control.workloads.policies import policy_for
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict
from fairlead.model.records.event import AuditLine, Event
from fairlead.model.records.organization import Caller
from fairlead.model.records.workload import Workload
from fairlead.model.spec.fields import build
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


async def update(
    context: Context, caller: Caller, kind: str, workload_id: str, wanted: Mapping[str, object], request_id: str = ""
) -> Workload:
    """The change is committed on return; equal values change nothing. Raises Invalid or NotFound."""
    for _ in range(_TRIES):
        workload = await load_for_change(context, caller, kind, workload_id, "update")
        changed = await _build_changed_record(context, workload, wanted)
        if changed is workload:
            return workload
        try:
            await context.store.commit(_build_commit(context, changed, wanted, caller, request_id))
        except Conflict:
            continue
        return changed
    raise Conflict(f"Workload {workload_id} was changed by others at the same time; send the request again")


async def _build_changed_record(context: Context, workload: Workload, wanted: Mapping[str, object]) -> Workload:
    """The record with the new spec and what follows from it, or the same record if nothing differs."""
    before: dict[str, object] = msgspec.json.decode(workload.spec)
    spec = _merged(before, wanted)
    if spec == before:
        return workload
    admitted = await _admit(context, workload, spec)
    return msgspec.structs.replace(
        # Conditions are about the submission; the engine reviews a change with its revision.
        admitted.record(workload),
        version=workload.version + 1,
        spec=msgspec.Raw(msgspec.json.encode(spec)),
        updated_at=context.clock(),
    )


def _merged(before: Mapping[str, object], wanted: Mapping[str, object]) -> dict[str, object]:
    """Objects are merged member by member; everything else, including lists, is replaced."""
    after = dict(before)
    for name, value in wanted.items():
        known = before.get(name)
        after[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return after


async def _admit(context: Context, workload: Workload, spec: Mapping[str, object]) -> Admitted:
    """What follows from the changed spec; raises Invalid with every issue."""
    kind = KINDS[workload.kind]
    submission = Submission(
        kind=kind.key,
        name=workload.name,
        project_id=workload.project_id,
        cluster_id=workload.cluster_id,
        spec=build(kind.spec, spec),
    )
    policy = policy_for(context, kind, workload.project_id)
    admitted = admit(kind, submission, max_completions=context.settings.max_completions, policy=policy)
    project = context.directory.projects.get(workload.project_id)
    department = context.directory.departments.get(workload.department_id)
    if project is not None and has_project_rules(project, department):
        admitted = apply_project_rules(project, department, kind, submission.spec, admitted)
    await resolve_names(context, workload.project_id, workload.created_by, submission.spec, submission.dialect)
    return admitted


def _build_commit(
    context: Context, changed: Workload, wanted: Mapping[str, object], caller: Caller, request_id: str
) -> Change:
    now = context.clock()
    changes = ", ".join(f"{name} {msgspec.json.encode(value).decode()[:100]}" for name, value in wanted.items())
    message = f"Changed by {caller.name}: {changes}"
    event = Event(
        at=now,
        subject=WORKLOADS.name,
        subject_id=changed.id,
        project_id=changed.project_id,
        reason="Update",
        message=message,
    )
    line = AuditLine(
        at=now,
        caller=caller.name,
        operation="update",
        subject=WORKLOADS.name,
        subject_id=changed.id,
        request_id=request_id,
        details=message,
    )
    return Change(writes=(Put(WORKLOADS, changed),), events=(event,), audit=(line,))
