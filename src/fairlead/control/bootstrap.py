"""What exists before anybody asked for it: a cluster, a department, a project and a node pool, each called default.

Called by `app` at every start; what is there is left alone.
"""

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
)
from fairlead.store.base import Change, Put
from fairlead.store.collections import CLUSTERS, DEPARTMENTS, NODE_POOLS, PROJECTS

DEFAULT_NAME = "default"
_SYSTEM = "system"
#: Nobody has set a quota yet: the first project may use the whole machine, its guaranteed part included.
_UNBOUNDED = Quota(deserved=None)


async def ensure_defaults(context: Context, engine: str = "") -> None:
    """Make what a first start lacks, and load the directory; refused where another engine has been at work."""
    await context.directory.load()
    if not context.directory.clusters:
        # Another server on the same database may start at the same moment: its records are as good.
        with suppress(Conflict):
            await context.store.commit(_first_records(context.new_id(), context.clock()))
        await context.directory.load()
    if engine:
        await _agree_on_engine(context, engine)


async def ensure_same_on_all_servers(context: Context, member: str, fingerprint: str, refusal: str) -> None:
    """All servers on one database have the same of something: the first writes it down, others must have been given it.

    Several may start at the same moment, so whoever lost that race looks at what the other wrote.
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
    """What an engine runs, and where, no other one knows: each has its own records."""
    what = f"The workloads of this data folder (or database) are not those of a server with `--engine {engine}`"
    await ensure_same_on_all_servers(
        context, "engine", engine, f"{what}; give it a folder or a database of its own (--data-dir, --database)"
    )


def _first_records(cluster_id: str, now: Millis) -> Change:
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
    # The tenant's number stands in every answer; one installation is one tenant, so it follows from the cluster.
    tenant = zlib.crc32(cluster_id.encode()) & 0x7FFFFFFF
    cluster = Cluster(id=cluster_id, version=1, name=DEFAULT_NAME, tenant_id=tenant, created_at=now)
    records = ((CLUSTERS, cluster), (NODE_POOLS, pool), (DEPARTMENTS, department), (PROJECTS, project))
    return Change(
        writes=tuple(Put(collection, record) for collection, record in records),
        events=tuple(
            Event(at=now, subject=collection.name, subject_id=record.id, reason="Created", source="control")
            for collection, record in records
        ),
    )
