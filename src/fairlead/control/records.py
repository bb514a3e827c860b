"""Writes changes of records with an event each and one audit line, in one transaction.

Used by the use cases of the organization, assets and accounts. After a commit this server's directory is refreshed
before the caller gets a response, so that they see their own change; the loop learns of it from the store.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from fairlead.control.audit import AuditSubject, audit_line, changes_between
from fairlead.control.context import Context
from fairlead.control.ledger.intervals import close_moved_nodes, close_owner, has_other_quota
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, NotFound, Unavailable
from fairlead.model.records.event import Event
from fairlead.model.records.ledger import SupplyInterval
from fairlead.model.records.organization import Cluster, Department, NodePool
from fairlead.model.records.people import Caller
from fairlead.store.base import Change, Collection, Delete, Put, VersionedRecord
from fairlead.store.collections import CLUSTERS, DEPARTMENTS, NODE_POOLS, PROJECTS, SUPPLY

T = TypeVar("T")
_TRIES = 20


class RecordChange(NamedTuple):
    """One record to write (or, if it is None, to remove), and the event about it."""

    collection: Collection[VersionedRecord]
    id: str
    record: VersionedRecord | None
    reason: str
    message: str


class AuditedRequest(NamedTuple):
    """The caller and the operation, for the audit."""

    caller: Caller
    operation: str
    id: str = ""


async def record_steps(
    context: Context, request: AuditedRequest, steps: Sequence[RecordChange], numbers: Cluster | None
) -> None:
    """Commit the steps together. The first one is the requested change; `numbers` is the cluster with a new id."""
    now = context.clock()
    writes = [Put(CLUSTERS, numbers)] if numbers else []
    puts = [
        Delete(step.collection, step.id) if step.record is None else Put(step.collection, step.record) for step in steps
    ]
    events = tuple(
        Event(
            at=now,
            subject=step.collection.name,
            subject_id=step.id,
            reason=step.reason,
            message=step.message,
            source="control",
        )
        for step in steps
    )
    first = steps[0]
    before = await context.store.get(first.collection, first.id)
    changed_record = first.record or before
    name = str(getattr(changed_record, "name", ""))
    subject = AuditSubject(first.collection.name, first.id, name, context.directory.cluster_of_record(changed_record))
    line = audit_line(now, request.caller, request.operation, subject, request.id, first.message)
    audit = msgspec.structs.replace(line, changes=changes_between(before, first.record))
    closed = [Put(SUPPLY, interval) for interval in await _close_supply(context, steps, now)]
    await context.store.commit(Change(writes=(*writes, *puts, *closed), events=events, audit=(audit,)))
    changed = [(step.collection.name, step.id) for step in steps]
    await context.directory.refresh([*changed, (CLUSTERS.name, "")] if numbers else changed)


async def _close_supply(context: Context, steps: Sequence[RecordChange], now: Millis) -> list[SupplyInterval]:
    """What the ledger of usage must know of the quotas and node pools that are about to change."""
    closed: list[SupplyInterval] = []
    pools = context.directory.node_pools
    later = dict(pools)
    for step in steps:
        if step.collection in (PROJECTS, DEPARTMENTS):
            owner = await context.store.get(step.collection, step.id)
            if isinstance(owner, Department):
                stays = isinstance(step.record, Department) and not has_other_quota(owner, step.record)
                closed += [] if stays else [close_owner(owner, now)]
        elif step.collection is NODE_POOLS and isinstance(step.record, NodePool):
            later[step.id] = step.record
        elif step.collection is NODE_POOLS:
            later.pop(step.id, None)
    nodes = context.directory.nodes.values()
    if len(context.directory.clusters) <= 1:
        return closed + close_moved_nodes(nodes, pools, later, now)
    for cluster_id in context.directory.clusters:
        own = [node for node in nodes if context.directory.cluster_of(node) == cluster_id]
        before, after = (
            {id: pool for id, pool in each.items() if pool.cluster_id == cluster_id} for each in (pools, later)
        )
        closed += close_moved_nodes(own, before, after, now)
    return closed


def check_id(id: str, what: str) -> str:
    """The id, which must be a number; raises NotFound for anything else."""
    if not (id.isascii() and id.isdecimal() and len(id) < 20):
        raise NotFound(f"There is no {what} with the id {id[:60]!r}")
    return id


async def retry_on_conflict(attempt: Callable[[], Awaitable[T]]) -> T:
    """Retry while the record is changed at the same time; a taken name is not retried."""
    for _ in range(_TRIES):
        try:
            return await attempt()
        except Conflict as error:
            if error.columns:
                raise
    raise Conflict("The record was changed by others at the same time; send the request again")


async def load_cluster(context: Context, id: str = "") -> Cluster:
    """The record of a cluster as it is stored: of the first one, which has what belongs to the whole installation."""
    cluster: Cluster | None = await context.store.get(CLUSTERS, id or context.directory.cluster.id)
    if cluster is None:
        raise Unavailable("The cluster's record is missing; try again in a moment")
    return cluster


async def change_cluster(
    context: Context, request: AuditedRequest, cluster: Cluster, message: str, **members: object
) -> Cluster:
    """Replace members of the cluster's record; Conflict if it was changed since it was loaded."""
    after: Cluster = msgspec.structs.replace(cluster, version=cluster.version + 1, **members)
    await record_steps(context, request, [RecordChange(CLUSTERS, cluster.id, after, "Updated", message)], None)
    return after


async def allocate_id(
    context: Context, collection: Collection[VersionedRecord], known: Iterable[str]
) -> tuple[str, Cluster]:
    """A new id and the cluster's record that stores it; write both together with the new record."""
    cluster = await load_cluster(context)
    number = max(cluster.numbers.get(collection.name, 0), *(int(id) for id in known), 0) + 1
    numbers = {**cluster.numbers, collection.name: number}
    return str(number), msgspec.structs.replace(cluster, version=cluster.version + 1, numbers=numbers)
