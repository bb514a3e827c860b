"""Reads workloads, pods and their events, from the store only.

Called by the API. Every function checks access first. The revision of a list is read before its records, so that a
watch from that revision misses nothing.
"""

from collections.abc import Iterable

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, build_query, find_page, normal_id, seen_by
from fairlead.control.workloads.elapsed import asks_for_elapsed, find_by_elapsed
from fairlead.kinds import KINDS
from fairlead.model.errors import NotFound
from fairlead.model.records.caller_environment import CallerEnvironment
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import CALLER_ENVIRONMENTS, EVENTS, PODS, WORKLOADS

_CHANGES_AT_ONCE = 500

#: The fields by which the list of workloads is filtered and sorted, by their names in the interface.
WORKLOAD_FIELDS: dict[str, FilterField[Workload]] = {
    "type": FilterField(column="type", stored_words={key: kind.title for key, kind in KINDS.items()}),
    "name": FilterField(column="name"),
    "clusterId": FilterField(column="cluster_id"),
    "projectId": FilterField(column="project_id"),
    "projectName": FilterField(column="project_name"),
    "departmentId": FilterField(column="department_id"),
    "departmentName": FilterField(column="department_name"),
    "createdAt": FilterField("time", "created_at"),
    "deletedAt": FilterField("time", "deleted_at"),
    "submittedBy": FilterField(column="submitted_by"),
    "phase": FilterField(column="phase"),
    "completedAt": FilterField("time", "completed_at"),
    "nodepool": FilterField(column="nodepool"),
    "distributedFramework": FilterField(column="distributed_framework"),
    "allocatedGPU": FilterField("number", "allocated_gpu"),
    "idleGpus": FilterField("number"),
    "idleAllocatedGpus": FilterField("number"),
    "phaseUpdatedAt": FilterField("time", "phase_updated_at"),
    "category": FilterField(column="category"),
    "totalPendingTimeSeconds": FilterField("number", "total_pending_time_seconds"),
    "totalRunningTimeSeconds": FilterField("number", "total_running_time_seconds"),
    "priority": FilterField("number", "priority"),
    "priorityClassName": FilterField(column="priority_class_name"),
    "guaranteedRuntimeEndsAt": FilterField("time"),
    "aiApplicationId": FilterField(),
    "aiApplicationName": FilterField(),
}
_WORKLOAD_SEARCH = ("name", "project_name", "department_name", "submitted_by", "phase", "id")

_POD_FIELDS = ("workloadId", "revisionId", "nodeName", "currentNodepool", "createdAt", "completedAt", "deletedAt")
POD_FIELD_NAMES = ("clusterId", *_POD_FIELDS)
_POD_SEARCH = ("name", "node", "phase")


async def load_revision(context: Context) -> int:
    """The newest revision: everything up to it is in the store."""
    newest: list[Event] = await context.store.find(Query(collection=EVENTS, order=(("revision", True),), limit=1))
    return newest[0].revision if newest else 0


async def find_workloads(context: Context, caller: Caller, request: ListRequest) -> Page[Workload]:
    access.check(caller, "workloads:read")
    revision = await load_revision(context)
    where = _listed(request) + seen_by(caller)
    if asks_for_elapsed(request, WORKLOAD_FIELDS):
        found = await find_by_elapsed(context, request, WORKLOAD_FIELDS, where, _WORKLOAD_SEARCH)
        return msgspec.structs.replace(found, revision=revision)
    query = build_query(WORKLOADS, WORKLOAD_FIELDS, request, where, _WORKLOAD_SEARCH)
    return await find_page(context, query, request, revision)


async def count_workloads(context: Context, caller: Caller, request: ListRequest) -> int:
    access.check(caller, "workloads:read")
    where = _listed(request) + seen_by(caller)
    if asks_for_elapsed(request, WORKLOAD_FIELDS):
        return (await find_by_elapsed(context, request, WORKLOAD_FIELDS, where, _WORKLOAD_SEARCH)).total
    query = build_query(WORKLOADS, WORKLOAD_FIELDS, request, where, _WORKLOAD_SEARCH)
    return 0 if query is None else await context.store.count(query)


async def load_workload(context: Context, caller: Caller, workload_id: str, kind: str = "") -> Workload:
    """The workload of that id (and kind, if one is given), deleted or not."""
    workload: Workload | None = await context.store.get(WORKLOADS, normal_id(workload_id, "workload"))
    missing = f"There is no {KINDS[kind].title if kind else 'workload'} with the id {workload_id}"
    if workload is None or (kind and workload.kind != kind):
        raise NotFound(missing)
    operation = f"{KINDS[kind].rest}:read" if kind else "workloads:read"
    access.check(caller, operation, workload.project_id, missing=missing)
    return workload


async def load_readable(context: Context, caller: Caller, workload_id: str) -> Workload:
    """The workload, if the caller may also read its spec: lists show workloads of every kind, but no specs."""
    workload = await load_workload(context, caller, workload_id)
    access.check(caller, f"{KINDS[workload.kind].rest}:read", workload.project_id)
    return workload


async def load_caller_environment(context: Context, caller: Caller, workload_id: str) -> CallerEnvironment:
    """The names of the variables that a workload took over; raises NotFound if it took none."""
    workload = await load_readable(context, caller, workload_id)
    record: CallerEnvironment | None = await context.store.get(CALLER_ENVIRONMENTS, workload.caller_environment)
    if record is None:
        raise NotFound(f"Workload {workload.name} has no environment of its caller")
    return record


async def load_live_pods(context: Context, workloads: Iterable[Workload]) -> dict[str, list[Pod]]:
    """By workload id, the pods that have not ended."""
    ids = [workload.id for workload in workloads if workload.is_active]
    if not ids:
        return {}
    where = (Where("is_active", Comparison.EQUAL, 1), Where("workload_id", Comparison.ONE_OF, ids))
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=where))
    by_workload: dict[str, list[Pod]] = {}
    for pod in pods:
        by_workload.setdefault(pod.workload_id, []).append(pod)
    return by_workload


async def load_workload_pods(context: Context, caller: Caller, workload_id: str, request: ListRequest) -> Page[Pod]:
    """The pods of one workload. Pods that were stopped or replaced under their name, and those of a
    workload that is gone, count as deleted."""
    workload = await load_workload(context, caller, workload_id)
    where: tuple[Where, ...] = (Where("workload_id", Comparison.EQUAL, workload.id),)
    if workload.is_listed:
        where += _stopped(request.deleted)
    elif not request.deleted:
        return Page([], None, await load_revision(context))
    query = build_query(PODS, {}, msgspec.structs.replace(request, sort_by=""), where, _POD_SEARCH)
    if query is not None:
        query = msgspec.structs.replace(query, order=(("created_at", False), ("name", False)))
    return await find_page(context, query, request, await load_revision(context))


async def find_pods(context: Context, caller: Caller, request: ListRequest, completed: bool | None) -> Page[Pod]:
    access.check(caller, "workloads:read")
    revision = await load_revision(context)
    return await find_page(context, _pod_query(context, caller, request, completed), request, revision)


async def count_pods(context: Context, caller: Caller, request: ListRequest) -> int:
    access.check(caller, "workloads:read")
    query = _pod_query(context, caller, request, None)
    return 0 if query is None else await context.store.count(query)


async def load_workloads_of(context: Context, pods: Iterable[Pod]) -> dict[str, Workload]:
    ids = sorted({pod.workload_id for pod in pods})
    if not ids:
        return {}
    where = (Where("id", Comparison.ONE_OF, ids),)
    workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=where))
    return {workload.id: workload for workload in workloads}


async def load_events(
    context: Context, caller: Caller, workload_id: str, request: ListRequest
) -> tuple[Workload, Page[Event]]:
    """The events of a workload, including changes of phase."""
    workload = await load_workload(context, caller, workload_id)
    where = (Where("subject_id", Comparison.EQUAL, workload.id), Where("subject", Comparison.EQUAL, WORKLOADS.name))
    query = Query(
        collection=EVENTS,
        where=where,
        order=(("revision", request.descending),),
        offset=request.offset,
        limit=request.limit + 1,
    )
    return workload, await find_page(context, query, request, await load_revision(context))


async def load_oldest_revision(context: Context) -> int:
    """The oldest revision that a watch can start from; older events were deleted."""
    oldest: list[Event] = await context.store.find(Query(collection=EVENTS, order=(("revision", False),), limit=1))
    return oldest[0].revision - 1 if oldest else 0


async def load_changes(
    context: Context, caller: Caller, since: int, project_id: str
) -> tuple[int, list[tuple[Event, Workload | None]]]:
    """The revision up to which events were read, and the workloads that changed after `since`: each once, with its
    newest event, in the order of events. A workload that was purged meanwhile is None.
    """
    access.check(caller, "workloads:read", project_id)
    newest_revision = await load_revision(context)
    where: tuple[Where, ...] = (
        Where("revision", Comparison.ABOVE, since),
        Where("subject", Comparison.EQUAL, WORKLOADS.name),
    )
    where += (Where("project_id", Comparison.EQUAL, project_id),) if project_id else seen_by(caller)
    events: list[Event] = await context.store.find(
        Query(collection=EVENTS, where=where, order=(("revision", False),), limit=_CHANGES_AT_ONCE)
    )
    if not events:
        return max(since, newest_revision), []
    through = events[-1].revision
    if len(events) < _CHANGES_AT_ONCE:
        through = max(through, newest_revision)
    newest = {event.subject_id: event for event in events}
    workloads: list[Workload] = await context.store.find(
        Query(collection=WORKLOADS, where=(Where("id", Comparison.ONE_OF, list(newest)),))
    )
    records = {workload.id: workload for workload in workloads}
    ordered = sorted(newest.values(), key=lambda event: event.revision)
    return through, [(event, records.get(event.subject_id)) for event in ordered]


def _listed(request: ListRequest) -> tuple[Where, ...]:
    """A workload that is being deleted is in both lists."""
    if request.deleted:
        return (Where("deleted_at", Comparison.IS_NULL, False),)
    return (Where("is_listed", Comparison.EQUAL, 1),)


def _stopped(deleted: bool) -> tuple[Where, ...]:
    comparison = Comparison.EQUAL if deleted else Comparison.NOT_EQUAL
    return (Where("phase", comparison, PodPhase.STOPPED.value),)


def _cluster_field(context: Context) -> FilterField[Pod]:
    """Records of pods do not say their cluster; their project does."""
    directory = context.directory
    if len(directory.clusters) <= 1:
        return FilterField(constant=directory.cluster.id)
    return FilterField(
        column="project_id", stored_words={id: project.cluster_id for id, project in directory.projects.items()}
    )


def _pod_query(context: Context, caller: Caller, request: ListRequest, completed: bool | None) -> Query[Pod] | None:
    fields: dict[str, FilterField[Pod]] = {
        "clusterId": _cluster_field(context),
        "workloadId": FilterField(column="workload_id"),
        "revisionId": FilterField(column="revision_id"),
        "nodeName": FilterField(column="node"),
        "currentNodepool": FilterField(column="node_pool"),
        "createdAt": FilterField("time", "created_at"),
        "completedAt": FilterField("time", "completed_at"),
        "deletedAt": FilterField("time"),
    }
    where = _stopped(request.deleted) + seen_by(caller)
    if completed is not None:
        where += (Where("is_active", Comparison.EQUAL, int(not completed)),)
    return build_query(PODS, fields, request, where, _POD_SEARCH)
