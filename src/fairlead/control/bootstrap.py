"""The first records of an installation: a cluster, a department, a project and a node pool, each called default.

Called by `app` at every start. Existing records are left alone.
"""

import logging
import zlib
from contextlib import suppress
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, Refused
from fairlead.model.records.event import Event
from fairlead.model.records.organization import (
    DEFAULT_NODE_POOL,
    Cluster,
    Department,
    NodePool,
    PoolQuota,
    Project,
    Quota,
    RecoveredOrganization,
)
from fairlead.store.base import Change, Collection, Put
from fairlead.store.collections import CLUSTERS, DEPARTMENTS, NODE_POOLS, PROJECTS

log = logging.getLogger(__name__)

DEFAULT_NAME = "default"
_SYSTEM = "system"
#: The first project may use the whole machine, all of it guaranteed, until somebody sets a quota.
_UNBOUNDED = Quota(deserved=None)


async def ensure_defaults(context: Context, engine: str = "", recovered: RecoveredOrganization | None = None) -> None:
    """Create the missing records and load the directory; raises Refused if another engine owns the records.

    A database without records gets those that were recovered from a cluster, if there are any; one that was restored
    from a backup gets those that it does not have.
    """
    await context.directory.load()
    if not context.directory.clusters:
        now = context.clock()
        records = _first_records(context.new_id(), now) if recovered is None else _recovered_records(recovered, now)
        # Another server on the same database may start at the same moment; its records do as well.
        with suppress(Conflict):
            await context.store.commit(_creation(records, now))
        await context.directory.load()
    elif recovered is not None:
        await _add_recovered(context, recovered)
    if engine:
        await _agree_on_engine(context, engine)


async def _add_recovered(context: Context, recovered: RecoveredOrganization) -> None:
    """Add the departments, projects and node pools that were created after the backup, with their ids."""
    if recovered.cluster_id != context.directory.cluster.id:
        raise Refused(
            f"The cluster's objects belong to installation {recovered.cluster_id}, and the backup to "
            f"{context.directory.cluster.id}; run `fairlead restore` again without --from-cluster"
        )
    directory = context.directory
    present: dict[str, dict[str, Any]] = {
        NODE_POOLS.name: dict(directory.node_pools),
        DEPARTMENTS.name: dict(directory.departments),
        PROJECTS.name: dict(directory.projects),
    }
    missing = []
    for collection, record in _owned_records(recovered):
        known = present[collection.name]
        if record.id in known:
            continue
        if any(one.name == record.name for one in known.values()):
            log.warning(
                "%s %s of the cluster was not added: the backup has one with the same name",
                collection.name,
                record.name,
            )
            continue
        missing.append((collection, msgspec.structs.replace(record, version=1)))
    if missing:
        await context.store.commit(_creation(tuple(missing), context.clock()))
        await context.directory.load()


async def ensure_same_on_all_servers(context: Context, member: str, fingerprint: str, refusal: str) -> None:
    """Raise Refused unless all servers on this database have the same fingerprint; the first server records it.

    Several servers may start at the same moment, so the loser of that race reads what the winner wrote.
    """
    while not getattr(context.directory.cluster, member):
        cluster = context.directory.cluster
        members: dict[str, Any] = {"version": cluster.version + 1, member: fingerprint}
        with suppress(Conflict):
            await context.store.commit(Change(writes=(Put(CLUSTERS, msgspec.structs.replace(cluster, **members)),)))
        await context.directory.load()
    if getattr(context.directory.cluster, member) != fingerprint:
        raise Refused(refusal)


async def _agree_on_engine(context: Context, engine: str) -> None:
    """Each engine needs records of its own, because no other engine knows what it runs where."""
    what = f"The workloads of this data folder (or database) belong to another engine than `--engine {engine}`"
    await ensure_same_on_all_servers(
        context, "engine", engine, f"{what}; use another folder or database (--data-dir, --database)"
    )


_Records = tuple[tuple[Collection[Any], Any], ...]


def _first_records(cluster_id: str, now: Millis) -> _Records:
    pool = NodePool(
        id="1",
        version=1,
        name=DEFAULT_NODE_POOL,
        cluster_id=cluster_id,
        created_at=now,
        updated_at=now,
        created_by=_SYSTEM,
    )
    quota = PoolQuota(node_pool_id=pool.id, node_pool_name=pool.name, gpu=_UNBOUNDED, cpu=_UNBOUNDED, memory=_UNBOUNDED)
    owner: dict[str, Any] = {
        "id": "1",
        "version": 1,
        "name": DEFAULT_NAME,
        "cluster_id": cluster_id,
        "created_at": now,
        "updated_at": now,
        "created_by": _SYSTEM,
        "updated_by": _SYSTEM,
        "resources": (quota,),
    }
    department = Department(**owner)
    project = Project(**owner, department_id=department.id, department_name=department.name)
    cluster = _cluster(cluster_id, now)
    return ((CLUSTERS, cluster), (NODE_POOLS, pool), (DEPARTMENTS, department), (PROJECTS, project))


def _cluster(cluster_id: str, now: Millis, numbers: dict[str, int] | None = None) -> Cluster:
    # Every response contains the tenant's number. One installation is one tenant, so it is derived from the cluster.
    tenant = zlib.crc32(cluster_id.encode()) & 0x7FFFFFFF
    return Cluster(id=cluster_id, version=1, name=DEFAULT_NAME, tenant_id=tenant, created_at=now, numbers=numbers or {})


def _recovered_records(recovered: RecoveredOrganization, now: Millis) -> _Records:
    """The same ids as before, because objects in the cluster carry them; later ids continue after them."""
    owned = _owned_records(recovered)
    numbers: dict[str, int] = {}
    for collection, record in owned:
        number = int(record.id) if record.id.isdecimal() else 0
        numbers[collection.name] = max(number, numbers.get(collection.name, 0))
    again = [(collection, msgspec.structs.replace(record, version=1)) for collection, record in owned]
    return ((CLUSTERS, _cluster(recovered.cluster_id, now, numbers)), *again)


def _owned_records(recovered: RecoveredOrganization) -> _Records:
    return (
        *((NODE_POOLS, one) for one in recovered.node_pools),
        *((DEPARTMENTS, one) for one in recovered.departments),
        *((PROJECTS, one) for one in recovered.projects),
    )


def _creation(records: _Records, now: Millis) -> Change:
    return Change(
        writes=tuple(Put(collection, record) for collection, record in records),
        events=tuple(
            Event(at=now, subject=collection.name, subject_id=record.id, reason="Created", source="control")
            for collection, record in records
        ),
    )
