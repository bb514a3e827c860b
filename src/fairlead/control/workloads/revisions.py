"""Reads revisions of a workload, their pods and events, from the store only.

Called by the API. Every function checks access first.
"""

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.lists import ListRequest, Page, normal_id
from fairlead.control.workloads.read import load_workload
from fairlead.kinds import KINDS
from fairlead.model.errors import NotFound
from fairlead.model.records.event import Event
from fairlead.model.records.people import Caller
from fairlead.model.records.revision import Revision
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import EVENTS, PODS, REVISIONS, WORKLOADS

_BATCH = 500


async def find_revisions(
    context: Context, caller: Caller, kind: str, workload_id: str, deleted: bool
) -> tuple[Workload, list[Revision]]:
    """The revisions of a workload, oldest first. Those of a deleted workload count as deleted."""
    workload = await load_workload(context, caller, workload_id, kind)
    if deleted != (workload.deleted_at is not None):
        return workload, []
    where = (Where("workload_id", Comparison.EQUAL, workload.id),)
    query = Query(collection=REVISIONS, where=where, order=(("number", False),))
    return workload, await context.store.find(query)


async def load_revision(context: Context, caller: Caller, kind: str, revision_id: str) -> tuple[Workload, Revision]:
    revision: Revision | None = await context.store.get(REVISIONS, normal_id(revision_id, "revision"))
    workload: Workload | None = None
    if revision is not None:
        workload = await context.store.get(WORKLOADS, revision.workload_id)
    missing = f"There is no revision with the id {revision_id}"
    if revision is None or workload is None or workload.kind != kind:
        raise NotFound(missing)
    access.check(caller, f"{KINDS[workload.kind].rest}:read", workload.project_id, missing=missing)
    return workload, revision


async def load_revision_pods(context: Context, revision: Revision, *, active_only: bool = False) -> list[Pod]:
    """Its pods in the order of their creation, including ended ones unless `active_only`."""
    where: tuple[Where, ...] = (
        Where("workload_id", Comparison.EQUAL, revision.workload_id),
        Where("revision_id", Comparison.EQUAL, revision.id),
    )
    if active_only:
        where = (*where, Where("is_active", Comparison.EQUAL, 1))
    order = (("created_at", False), ("name", False))
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=where, order=order))
    return pods


async def load_revision_events(context: Context, revision: Revision, request: ListRequest) -> Page[Event]:
    """The events of a revision and its pods, selected from the events of its workload."""
    where = (
        Where("subject_id", Comparison.EQUAL, revision.workload_id),
        Where("subject", Comparison.EQUAL, WORKLOADS.name),
    )
    needed = request.offset + request.limit + 1
    events: list[Event] = []
    offset = 0
    while len(events) < needed:
        batch = await context.store.find(
            Query(
                collection=EVENTS,
                where=where,
                order=(("revision", request.descending),),
                offset=offset,
                limit=_BATCH,
            )
        )
        events += [event for event in batch if event.revision_id == revision.id]
        offset += _BATCH
        if len(batch) < _BATCH:
            break
    end = request.offset + request.limit
    return Page(events[request.offset : end], end if len(events) > end else None)
