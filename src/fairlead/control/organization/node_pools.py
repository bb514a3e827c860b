"""Node pools: create, change, delete. In a new pool every project may borrow, and none has a quota.

Called by the API. The default pool has no label, holds the nodes of no other pool, and cannot be deleted.
"""

from typing import Any

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inputs import NodePoolInput
from fairlead.control.organization.owners import name_issues
from fairlead.control.records import (
    AuditedRequest,
    RecordChange,
    allocate_id,
    check_id,
    record_steps,
    retry_on_conflict,
)
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid, NotFound, refuse_malformed
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Department, NodePool, PoolQuota, Project
from fairlead.model.records.people import Caller
from fairlead.store.base import Collection, Query
from fairlead.store.collections import DEPARTMENTS, NODE_POOLS, PROJECTS


async def create_node_pool(context: Context, caller: Caller, input: NodePoolInput, request_id: str = "") -> NodePool:
    access.check(caller, "node-pools:create")

    async def attempt() -> NodePool:
        issues = name_issues(input.name) + _label_issues(context, input, "")
        cluster_id = input.cluster_id.lower()
        if cluster_id not in context.directory.clusters:
            issues.append(ComplianceIssue("clusterId", f"there is no cluster {input.cluster_id}"))
        present = context.directory.node_pools.values()
        if any(pool.name == input.name and pool.cluster_id == cluster_id for pool in present):
            issues.append(ComplianceIssue("name", f"a node pool named {input.name} already exists"))
        refuse_malformed(issues)
        now = context.clock()
        id, numbers = await allocate_id(context, NODE_POOLS, context.directory.node_pools)
        pool = NodePool(
            id=id,
            version=1,
            name=input.name,
            cluster_id=cluster_id,
            created_at=now,
            updated_at=now,
            created_by=caller.name,
            updated_by=caller.name,
            **_members(input, {}),
        )
        message = f"Node pool {pool.name} for nodes with {pool.label_key}={pool.label_value} was created"
        steps = [RecordChange(NODE_POOLS, id, pool, "Created", message), *await _grants(context, pool)]
        try:
            await record_steps(context, AuditedRequest(caller, "create", request_id), steps, numbers)
        except Conflict as error:
            if "name" in error.columns:
                # Two requests at the same moment; the contract has no other response for a taken name here.
                raise Invalid(
                    issues=(ComplianceIssue("name", f"a node pool named {input.name} already exists"),)
                ) from None
            raise
        return pool

    return await retry_on_conflict(attempt)


async def update_node_pool(
    context: Context, caller: Caller, id: str, input: NodePoolInput, request_id: str = ""
) -> NodePool:
    """Change the given members. The loop reassigns nodes after a change of the label."""
    access.check(caller, "node-pools:update")

    async def attempt() -> NodePool:
        before = await _load(context, id)
        issues = _label_issues(context, input, id)
        if before.name == DEFAULT_NODE_POOL and (
            input.label_key is not msgspec.UNSET or input.label_value is not msgspec.UNSET
        ):
            issues.append(
                ComplianceIssue(
                    "labelKey", "the default node pool has no label: it holds all nodes that are in no other pool"
                )
            )
        refuse_malformed(issues)
        after: NodePool = msgspec.structs.replace(
            before,
            version=before.version + 1,
            updated_at=context.clock(),
            updated_by=caller.name,
            **_members(input, before.settings),
        )
        step = RecordChange(NODE_POOLS, id, after, "Updated", f"Node pool {before.name} was changed by {caller.name}")
        await record_steps(context, AuditedRequest(caller, "update", request_id), [step], None)
        return after

    return await retry_on_conflict(attempt)


async def delete_node_pool(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Delete the pool with all quotas in it. Its nodes move to another pool with their label, or to default."""
    access.check(caller, "node-pools:delete")

    async def attempt() -> None:
        pool = await _load(context, id)
        if pool.name == DEFAULT_NODE_POOL:
            raise Invalid("The default node pool cannot be deleted: it holds all nodes that are in no other pool")
        steps = [RecordChange(NODE_POOLS, id, None, "Deleted", f"Node pool {pool.name} was deleted by {caller.name}")]
        for collection, owner in await _owners(context, pool.cluster_id):
            quotas = tuple(quota for quota in owner.resources if quota.node_pool_id != id)
            pools = tuple(name for name in owner.default_node_pools if name != pool.name)
            if quotas != owner.resources or pools != owner.default_node_pools:
                after = _changed(owner, resources=quotas, default_node_pools=pools)
                steps.append(RecordChange(collection, owner.id, after, "Updated", f"Node pool {pool.name} was deleted"))
        await record_steps(context, AuditedRequest(caller, "delete", request_id), steps, None)

    await retry_on_conflict(attempt)


async def _load(context: Context, id: str) -> NodePool:
    pool: NodePool | None = await context.store.get(NODE_POOLS, check_id(id, "node pool"))
    if pool is None:
        raise NotFound(f"There is no node pool with the id {id[:60]!r}")
    return pool


async def _owners(context: Context, cluster_id: str) -> list[tuple[Collection[Department], Department]]:
    owned: list[tuple[Collection[Department], Department]] = []
    for collection in (DEPARTMENTS, PROJECTS):
        owners = await context.store.find(Query(collection=collection))
        owned += [(collection, owner) for owner in owners if owner.cluster_id == cluster_id]
    return owned


async def _grants(context: Context, pool: NodePool) -> list[RecordChange]:
    """Every department and project with the new pool: no GPU quota, CPU and memory unlimited, borrowing allowed."""
    steps = []
    for collection, owner in await _owners(context, pool.cluster_id):
        quota = PoolQuota(node_pool_id=pool.id, node_pool_name=pool.name)
        after = _changed(owner, resources=(*owner.resources, quota))
        steps.append(RecordChange(collection, owner.id, after, "Updated", f"Node pool {pool.name} was added"))
    return steps


def _changed(owner: Department, **members: Any) -> Department:
    changed: Department | Project = msgspec.structs.replace(owner, version=owner.version + 1, **members)
    return changed


def _members(input: NodePoolInput, settings: dict[str, Any]) -> dict[str, Any]:
    names = (
        "label_key",
        "label_value",
        "placement_gpu",
        "placement_cpu",
        "min_guaranteed_runtime_seconds",
        "network_topology_id",
    )
    members = {name: getattr(input, name) for name in names if getattr(input, name) is not msgspec.UNSET}
    return members | {"settings": {**settings, **input.settings}}


def _label_issues(context: Context, input: NodePoolInput, id: str) -> list[ComplianceIssue]:
    """Raise issues for an unknown topology, and for the label of another pool: both would claim its nodes."""
    own = context.directory.node_pools.get(id)
    key = input.label_key if input.label_key is not msgspec.UNSET else own.label_key if own else ""
    value = input.label_value if input.label_value is not msgspec.UNSET else own.label_value if own else ""
    issues = []
    cluster_id = own.cluster_id if own else input.cluster_id.lower()
    cluster = context.directory.clusters.get(cluster_id)
    topologies = cluster.network_topologies if cluster else ()
    if input.network_topology_id and all(known.id != input.network_topology_id for known in topologies):
        issues.append(ComplianceIssue("networkTopologyId", f"there is no network topology {input.network_topology_id}"))
    issues += [
        ComplianceIssue("labelValue", f"{key}={value} is the label of node pool {pool.name}")
        for pool in context.directory.node_pools.values()
        if pool.id != id
        and pool.cluster_id == cluster_id
        and pool.label_key
        and (pool.label_key, pool.label_value) == (key, value)
    ]
    return issues
