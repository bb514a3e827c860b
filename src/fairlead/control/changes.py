"""Change a workload that runs: what its kind allows to be changed is written into its spec, and the loop follows.

Called by the API. The last word holds: a request that comes while an earlier one is still being followed replaces it.
"""

from typing import Any

import msgspec

from fairlead.admission.admit import pod_name_violations
from fairlead.control.context import Context
from fairlead.control.lifecycle import load_for_change
from fairlead.kinds import KINDS
from fairlead.kinds.kind import spec_violations
from fairlead.model.errors import MALFORMED, Conflict, Invalid, Issue
from fairlead.model.event import AuditLine, Event
from fairlead.model.fields import build
from fairlead.model.org import Caller
from fairlead.model.rules import Limits
from fairlead.model.workload import Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS

_TRIES = 20


async def update(
    context: Context, caller: Caller, kind: str, workload_id: str, wanted: dict[str, Any], request_id: str = ""
) -> Workload:
    """Durable when it returns. Values that are so already change nothing. Raises Invalid, NotFound."""
    for _ in range(_TRIES):
        workload = await load_for_change(context, caller, kind, workload_id, "update")
        changed = _changed(context, workload, wanted)
        if changed is workload:
            return workload
        try:
            await context.store.commit(_change(context, changed, wanted, caller, request_id))
        except Conflict:
            continue
        return changed
    raise Conflict(f"Workload {workload_id} changed too often to be changed now; send the request again")


def _changed(context: Context, workload: Workload, wanted: dict[str, Any]) -> Workload:
    """The record with the new spec, or the same one where nothing is different."""
    before: dict[str, Any] = msgspec.json.decode(workload.spec)
    spec = before | wanted
    if spec == before:
        return workload
    kind = KINDS[workload.kind]
    built = build(kind.spec, spec)
    limits = Limits(completions=context.settings.completions_most)
    broken = spec_violations(kind, built, "spec", limits) + pod_name_violations(kind, built, workload.name, False)
    if broken:
        raise Invalid(MALFORMED, tuple(Issue(violation.path, violation.details) for violation in broken))
    return msgspec.structs.replace(
        workload,
        version=workload.version + 1,
        spec=msgspec.Raw(msgspec.json.encode(spec)),
        updated_at=context.clock(),
    )


def _change(context: Context, changed: Workload, wanted: dict[str, Any], caller: Caller, request_id: str) -> Change:
    now = context.clock()
    told = ", ".join(f"{name} {msgspec.json.encode(value).decode()[:100]}" for name, value in wanted.items())
    message = f"{caller.name} changed it: {told}"
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
