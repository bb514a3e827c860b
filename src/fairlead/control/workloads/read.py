"""All reads of workloads, pods and what happened to them. From the store only; no engine is asked.

Called by the API. Every function checks access first. Lists say at which revision they are at least true: it is read
before the records are, so that a watch from there on misses nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField, as_conditions, parse_filters
from fairlead.kinds import KINDS
from fairlead.model.errors import NotFound
from fairlead.model.records.event import Event
from fairlead.model.records.organization import Caller
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Collection, Comparison, Query, Where
from fairlead.store.collections import EVENTS, PODS, WORKLOADS

T = TypeVar("T")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CHANGES_AT_ONCE = 500

#: What the workload list is filtered and sorted by, under the interface's names.
WORKLOAD_FIELDS: dict[str, FilterField] = {
    "type": FilterField(column="type", words={kind.title: key for key, kind in KINDS.items()}),
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


class ListRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What every list is asked with."""

    filter_by: str = ""
    sort_by: str = ""
    descending: bool = False
    offset: int = 0
    limit: int = 50
    search: str = ""
    deleted: bool = False


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A piece of a list: its records, the offset of the next piece if there is one, and the revision."""

    items: list[T]
    next: int | None = None
    revision: int = 0
    #: How many match in all, where that is known without another question.
    total: int = 0


def normal_id(text: str, what: str) -> str:
    """The id in the form in which it is stored; what is no UUID names nothing."""
    if _UUID.fullmatch(text) is None:
        raise NotFound(f"There is no {what} with the id {text[:60]!r}; ids are UUIDs")
    return text.lower()


async def load_revision(context: Context) -> int:
    """The newest revision: everything up to it is in the store."""
    newest: list[Event] = await context.store.find(Query(collection=EVENTS, order=(("revision", True),), limit=1))
    return newest[0].revision if newest else 0


async def find_workloads(context: Context, caller: Caller, request: ListRequest) -> Page[Workload]:
    access.check(caller, "workloads:read")
    revision = await load_revision(context)
    where = _deleted(request) + seen_by(caller)
    query = _query(WORKLOADS, WORKLOAD_FIELDS, request, where, _WORKLOAD_SEARCH)
    return await _page(context, query, request, revision)


async def count_workloads(context: Context, caller: Caller, request: ListRequest) -> int:
    access.check(caller, "workloads:read")
    where = _deleted(request) + seen_by(caller)
    query = _query(WORKLOADS, WORKLOAD_FIELDS, request, where, _WORKLOAD_SEARCH)
    return 0 if query is None else await context.store.count(query)


async def load_workload(context: Context, caller: Caller, workload_id: str, kind: str = "") -> Workload:
    """The workload of that id, deleted or not; of that kind, if one is given."""
    workload: Workload | None = await context.store.get(WORKLOADS, normal_id(workload_id, "workload"))
    if workload is None or (kind and workload.kind != kind):
        raise NotFound(f"There is no {KINDS[kind].title if kind else 'workload'} with the id {workload_id}")
    access.check(caller, "workloads:read", workload.project_id)
    return workload


async def load_live_pods(context: Context, workloads: Iterable[Workload]) -> dict[str, list[Pod]]:
    """By workload id, the pods that have not ended, of those workloads that have any."""
    ids = [workload.id for workload in workloads if workload.is_active]
    if not ids:
        return {}
    where = (Where("is_active", Comparison.EQUAL, 1), Where("workload_id", Comparison.ONE_OF, ids))
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=where))
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.workload_id, []).append(pod)
    return found


async def load_workload_pods(context: Context, caller: Caller, workload_id: str, request: ListRequest) -> Page[Pod]:
    """The pods of one workload; those that were stopped, or whose workload was deleted, count as deleted."""
    workload = await load_workload(context, caller, workload_id)
    where: tuple[Where, ...] = (Where("workload_id", Comparison.EQUAL, workload.id),)
    if workload.deleted_at is None:
        where += _stopped(request.deleted)
    elif not request.deleted:
        return Page([], None, await load_revision(context))
    query = _query(PODS, {}, msgspec.structs.replace(request, sort_by=""), where, _POD_SEARCH)
    if query is not None:
        query = msgspec.structs.replace(query, order=(("created_at", False), ("name", False)))
    return await _page(context, query, request, await load_revision(context))


async def find_pods(context: Context, caller: Caller, request: ListRequest, completed: bool | None) -> Page[Pod]:
    access.check(caller, "workloads:read")
    revision = await load_revision(context)
    return await _page(context, _pod_query(context, caller, request, completed), request, revision)


async def count_pods(context: Context, caller: Caller, request: ListRequest) -> int:
    access.check(caller, "workloads:read")
    query = _pod_query(context, caller, request, None)
    return 0 if query is None else await context.store.count(query)


async def load_workloads_of(context: Context, pods: Iterable[Pod]) -> dict[str, Workload]:
    ids = sorted({pod.workload_id for pod in pods})
    if not ids:
        return {}
    where = (Where("id", Comparison.ONE_OF, ids),)
    found: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=where))
    return {workload.id: workload for workload in found}


async def load_events(
    context: Context, caller: Caller, workload_id: str, request: ListRequest
) -> tuple[Workload, Page[Event]]:
    """What happened to a workload, by default the newest first; changes of phase are among it."""
    workload = await load_workload(context, caller, workload_id)
    where = (Where("subject_id", Comparison.EQUAL, workload.id), Where("subject", Comparison.EQUAL, WORKLOADS.name))
    query = Query(
        collection=EVENTS,
        where=where,
        order=(("revision", request.descending),),
        offset=request.offset,
        limit=request.limit + 1,
    )
    return workload, await _page(context, query, request, await load_revision(context))


async def load_oldest_revision(context: Context) -> int:
    """The oldest revision that a watch can start from; before it, events have been dropped."""
    oldest: list[Event] = await context.store.find(Query(collection=EVENTS, order=(("revision", False),), limit=1))
    return oldest[0].revision - 1 if oldest else 0


async def load_changes(
    context: Context, caller: Caller, since: int, project_id: str
) -> tuple[int, list[tuple[Event, Workload | None]]]:
    """The workloads that changed after `since`, each once with its newest event, in the order of those events.

    Also the revision up to which this was read; ask again from there. A workload that was purged meanwhile is None.
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
    found: list[Workload] = await context.store.find(
        Query(collection=WORKLOADS, where=(Where("id", Comparison.ONE_OF, list(newest)),))
    )
    records = {workload.id: workload for workload in found}
    ordered = sorted(newest.values(), key=lambda event: event.revision)
    return through, [(event, records.get(event.subject_id)) for event in ordered]


async def load_page(
    context: Context,
    collection: Collection,
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField] | None = None,
) -> Page[Any]:
    """A piece of any collection that has names; the caller has checked access and says what may be seen."""
    query = _query(collection, fields or {}, request, where, ("name",))
    return await _page(context, query, request, 0)


async def count_page(
    context: Context,
    collection: Collection,
    where: tuple[Where, ...],
    request: ListRequest,
    fields: Mapping[str, FilterField],
) -> int:
    query = _query(collection, fields, request, where, ("name",))
    return 0 if query is None else await context.store.count(query)


def seen_by(caller: Caller) -> tuple[Where, ...]:
    """The condition that keeps a list to the projects that a caller may see; none for an administrator."""
    projects = access.visible_projects(caller)
    return () if projects is None else (Where("project_id", Comparison.ONE_OF, sorted(projects)),)


def _deleted(request: ListRequest) -> tuple[Where, ...]:
    return (Where("deleted_at", Comparison.IS_NULL, not request.deleted),)


def _stopped(deleted: bool) -> tuple[Where, ...]:
    comparison = Comparison.EQUAL if deleted else Comparison.NOT_EQUAL
    return (Where("phase", comparison, PodPhase.STOPPED.value),)


def _pod_query(context: Context, caller: Caller, request: ListRequest, completed: bool | None) -> Query | None:
    fields = {
        "clusterId": FilterField(constant=context.directory.cluster.id),
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
    return _query(PODS, fields, request, where, _POD_SEARCH)


def _query(
    collection: Collection,
    fields: Mapping[str, FilterField],
    request: ListRequest,
    where: tuple[Where, ...],
    search_in: tuple[str, ...],
) -> Query | None:
    """The store's query, for one record more than asked for; None when the filters leave nothing."""
    conditions = as_conditions(parse_filters(request.filter_by, fields))
    if conditions is None:
        return None
    sort = fields[request.sort_by].column if request.sort_by else "created_at"
    return Query(
        collection=collection,
        where=(*where, *conditions),
        search=request.search,
        search_in=search_in,
        order=((sort, request.descending),) if sort else (),
        offset=request.offset,
        limit=request.limit + 1,
    )


async def _page(context: Context, query: Query | None, request: ListRequest, revision: int) -> Page[Any]:
    if query is None:
        return Page([], None, revision)
    items = await context.store.find(query)
    more = len(items) > request.limit
    return Page(items[: request.limit], request.offset + request.limit if more else None, revision)
