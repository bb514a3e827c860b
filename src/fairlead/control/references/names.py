"""Checks that the objects which a submission names exist. Workloads in the older dialect wait for missing ones.

Called by `workloads/submit.py`. Whoever creates an object calls `recheck_waiting_workloads`, and so does the loop
when a workload ends for which others may wait.
"""

import msgspec

from fairlead.admission.names import missing_names, names_used
from fairlead.control.context import Context
from fairlead.control.decide.dependencies import format_waiting
from fairlead.control.references.dependencies import recheck_dependencies
from fairlead.control.references.resolve import load_existing
from fairlead.formats.sent_paths import sent_path
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, read_stored_spec
from fairlead.model.clock import Millis
from fairlead.model.dialect import Dialect
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid
from fairlead.model.records.event import Event
from fairlead.model.records.workload import WAITS_FOR_NAMES, Condition, Workload
from fairlead.model.spec.fields import Spec
from fairlead.model.spec.references import NamedReference
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import WORKLOADS


async def find_missing(
    context: Context, project_id: str, creator: str, spec: msgspec.Struct
) -> list[tuple[NamedReference, ComplianceIssue]]:
    """The objects that the spec names and that do not exist. Reads the store only if it names any."""
    uses = names_used(spec)
    if not uses:
        return []
    return missing_names(uses, await load_existing(context, project_id, creator, uses))


async def resolve_names(context: Context, creator: str, submission: Submission) -> tuple[str, ...]:
    """The missing names that a workload in the older dialect waits for; raises Invalid for other dialects."""
    missing = await find_missing(context, submission.project_id, creator, submission.spec)
    if not missing or _is_in_cluster(context, submission.project_id):
        return ()
    if submission.dialect.has_yaml_names:
        kind = KINDS[submission.kind]
        raise Invalid(issues=tuple(_in_yaml(kind, submission.spec, issue) for _, issue in missing))
    if not submission.dialect.is_lenient:
        raise Invalid(issues=tuple(issue for _, issue in missing))
    return tuple(dict.fromkeys(f"{use.reference} {use.name}" for use, _ in missing))


def _in_yaml(kind: Kind, spec: Spec, issue: ComplianceIssue) -> ComplianceIssue:
    path = sent_path(kind, spec, issue.field.removeprefix("spec."), Dialect.WORKLOAD_YAML)
    return msgspec.structs.replace(issue, field=path)


def _is_in_cluster(context: Context, project_id: str) -> bool:
    """Whether the cluster that runs it checks names by itself."""
    project = context.directory.projects.get(project_id)
    return context.engine_of(project.cluster_id if project else context.directory.cluster_id).is_cluster


def waiting_condition(names: tuple[str, ...], now: Millis) -> Condition:
    return Condition(
        type=WAITS_FOR_NAMES,
        status="True",
        reason="NotFound",
        message=format_waiting(names),
        last_transition_time=now,
    )


async def recheck_waiting_workloads(context: Context) -> None:
    """Check every workload that waits for objects or for other workloads, and let those continue that have them all."""
    waiting = (Where("waits_for", Comparison.IS_NULL, False), Where("is_active", Comparison.EQUAL, 1))
    workloads = await context.store.find(Query(collection=WORKLOADS, where=waiting))
    for workload in workloads:
        names = await _missing_names(context, workload) + await recheck_dependencies(context, workload.waits_for)
        if names != workload.waits_for:
            await _record(context, workload, names)


async def _missing_names(context: Context, workload: Workload) -> tuple[str, ...]:
    if not workload.dialect.is_lenient or _is_in_cluster(context, workload.project_id):
        return ()
    spec = read_stored_spec(KINDS[workload.kind], bytes(workload.spec))
    missing = await find_missing(context, workload.project_id, workload.created_by, spec)
    return tuple(dict.fromkeys(f"{use.reference} {use.name}" for use, _ in missing))


async def _record(context: Context, workload: Workload, names: tuple[str, ...]) -> None:
    now = context.clock()
    others = tuple(condition for condition in workload.conditions if condition.type != WAITS_FOR_NAMES or not names)
    conditions = (*others, waiting_condition(names, now)) if names else others
    after = msgspec.structs.replace(
        workload, version=workload.version + 1, waits_for=names, conditions=conditions, updated_at=now
    )
    event = Event(
        at=now,
        subject=WORKLOADS.name,
        subject_id=workload.id,
        project_id=workload.project_id,
        reason=WAITS_FOR_NAMES,
        message=format_waiting(names) or "Everything that it waited for exists now",
        source="control",
    )
    try:
        await context.store.commit(Change(writes=(Put(WORKLOADS, after),), events=(event,)))
    except Conflict:
        # The loop changed the record at the same time, so try again with the newest one.
        newest: Workload | None = await context.store.get(WORKLOADS, workload.id)
        if newest is not None and newest.waits_for == workload.waits_for:
            await _record(context, newest, names)
