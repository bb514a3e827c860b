"""The clusters of an installation: adding, connecting, renaming and removing them. Called by the API.

The first cluster came with the installation and stays. Each further one has its own node pools, departments and
projects; `loop/fleet.py` runs it.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.owners import name_issues
from fairlead.control.organization.scoped_records import scoped_record_steps
from fairlead.control.people.callers import has_administrator
from fairlead.control.records import (
    AuditedRequest,
    RecordChange,
    allocate_id,
    change_cluster,
    record_steps,
    retry_on_conflict,
)
from fairlead.formats.kubeconfig import read_kubeconfig
from fairlead.model.errors import ComplianceIssue, Forbidden, Invalid, NotFound, refuse_malformed
from fairlead.model.records.organization import (
    DEFAULT_NODE_POOL,
    Cluster,
    ClusterConnection,
    Department,
    Node,
    NodePool,
    PoolQuota,
    Quota,
)
from fairlead.model.records.people import Caller
from fairlead.store.base import Collection, VersionedRecord
from fairlead.store.collections import CLUSTERS, DEPARTMENTS, NODE_POOLS, NODES

_LOCAL = "local"
#: The first department of a cluster may use all of it until somebody sets a quota.
_UNBOUNDED = Quota(deserved=None)


class ClusterInput(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    domain: str = ""
    #: `kubernetes` or `local`; empty if the cluster is connected later.
    engine: str = ""
    kubeconfig: str = ""
    #: For `local`, the name of the machine.
    machine: str = _LOCAL


async def create_cluster(context: Context, caller: Caller, input: ClusterInput, request_id: str = "") -> Cluster:
    """Add a cluster, with a default node pool and a department of the same name."""
    access.check(caller, "clusters:create")
    _refuse_without_administrator(context)

    async def attempt() -> Cluster:
        _check_new_name(context, input.name)
        id = context.new_id()
        cluster = Cluster(
            id=id,
            version=1,
            name=input.name,
            tenant_id=context.directory.cluster.tenant_id,
            created_at=context.clock(),
            domain=input.domain,
            is_added=True,
            connection=_connect(context, id, input),
        )
        step = RecordChange(CLUSTERS, id, cluster, "Created", f"Cluster {input.name} was added by {caller.name}")
        steps, numbers = await _create_defaults(context, caller, cluster)
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step, *steps], numbers)
        return cluster

    return await retry_on_conflict(attempt)


def _check_new_name(context: Context, name: str) -> None:
    issues = name_issues(name)
    clusters, departments = context.directory.clusters.values(), context.directory.departments.values()
    if name in {*(each.name for each in clusters), *(each.name for each in departments)}:
        issues.append(ComplianceIssue("name", f"a cluster or department named {name} already exists"))
    refuse_malformed(issues)


async def _create_defaults(context: Context, caller: Caller, cluster: Cluster) -> tuple[list[RecordChange], Cluster]:
    """The default node pool and the first department of a new cluster; and the record with the ids that they take."""
    directory, now = context.directory, cluster.created_at
    pool_id, numbers = await allocate_id(context, NODE_POOLS, directory.node_pools)
    department_id, further = await allocate_id(context, DEPARTMENTS, directory.departments)
    pool = NodePool(
        id=pool_id,
        version=1,
        name=DEFAULT_NODE_POOL,
        cluster_id=cluster.id,
        created_at=now,
        updated_at=now,
        created_by=caller.name,
    )
    quota = PoolQuota(node_pool_id=pool_id, node_pool_name=pool.name, gpu=_UNBOUNDED, cpu=_UNBOUNDED, memory=_UNBOUNDED)
    department = Department(
        id=department_id,
        version=1,
        name=cluster.name,
        cluster_id=cluster.id,
        created_at=now,
        updated_at=now,
        created_by=caller.name,
        updated_by=caller.name,
        resources=(quota,),
    )
    steps = [
        RecordChange(NODE_POOLS, pool_id, pool, "Created", f"Node pool {pool.name} of cluster {cluster.name}"),
        RecordChange(DEPARTMENTS, department_id, department, "Created", f"Department {cluster.name} was created"),
    ]
    return steps, msgspec.structs.replace(numbers, numbers={**further.numbers, **numbers.numbers})


def _refuse_without_administrator(context: Context) -> None:
    """With several clusters, a role for one of them does not make an administrator of the whole installation."""
    directory = context.directory
    wide = [rule for rule in directory.access_rules.values() if rule.scope.type != "cluster"]
    if not has_administrator(directory.users.values(), wide):
        raise Forbidden(
            "No administrator would be left for the whole installation, because all of them have their role for the "
            "first cluster only. Give one of them the role System administrator with the scope tenant first"
        )


def _connect(context: Context, id: str, input: ClusterInput) -> ClusterConnection | None:
    """How the server reaches the cluster; None if it is connected later. Raises Invalid."""
    if input.engine == _LOCAL:
        others = (one.connection for one in context.directory.clusters.values())
        is_taken = not context.engine.is_cluster or any(one is not None and one.engine == _LOCAL for one in others)
        if is_taken or input.kubeconfig:
            details = "needs no kubeconfig" if input.kubeconfig else "is this machine, which is a cluster already"
            raise Invalid(issues=(ComplianceIssue("engine", details),))
        return ClusterConnection(engine=_LOCAL, machine=input.machine)
    if not input.kubeconfig:
        return None
    sealed = context.vault.seal({"kubeconfig": read_kubeconfig(input.kubeconfig)}, id)
    return ClusterConnection(engine="kubernetes", sealed=sealed)


async def update_cluster(
    context: Context, caller: Caller, id: str, input: ClusterInput, request_id: str = ""
) -> Cluster:
    """Rename a cluster, and give it another kubeconfig if one is given."""
    access.check(caller, "clusters:update")

    async def attempt() -> Cluster:
        before = await _load(context, id)
        issues = name_issues(input.name)
        others = (one for one in context.directory.clusters.values() if one.id != before.id)
        if any(one.name == input.name for one in others):
            issues.append(ComplianceIssue("name", f"a cluster named {input.name} already exists"))
        refuse_malformed(issues)
        members: dict[str, Any] = {"name": input.name}
        message = f"Cluster {before.name} was changed by {caller.name}"
        if input.kubeconfig:
            if before.id == context.directory.cluster.id:
                raise Forbidden(
                    f"Cluster {before.name} is connected by the server's own flags, not by a kubeconfig here"
                )
            members["connection"] = _connect(context, before.id, input)
        return await change_cluster(context, AuditedRequest(caller, "update", request_id), before, message, **members)

    return await retry_on_conflict(attempt)


async def delete_cluster(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Remove a cluster that was added and has no project any more; nothing is deleted in the cluster itself."""
    access.check(caller, "clusters:delete")

    async def attempt() -> None:
        cluster = await _load(context, id)
        directory = context.directory
        if cluster.id == directory.cluster.id:
            raise Forbidden(f"Cluster {cluster.name} was not deleted: it came with the installation")
        projects = sorted(one.name for one in directory.projects.values() if one.cluster_id == cluster.id)
        if projects:
            raise Forbidden(
                f"Cluster {cluster.name} was not deleted: delete its projects first ({', '.join(projects[:5])})"
            )
        steps = [RecordChange(CLUSTERS, cluster.id, None, "Deleted", f"Cluster {cluster.name} was removed")]
        owned: tuple[tuple[Collection[VersionedRecord], Iterable[Department | NodePool | Node]], ...] = (
            (DEPARTMENTS, directory.departments.values()),
            (NODE_POOLS, directory.node_pools.values()),
            (NODES, directory.nodes.values()),
        )
        for collection, records in owned:
            inside = [one for one in records if one.cluster_id == cluster.id]
            steps += [RecordChange(collection, one.id, None, "Deleted", f"{one.name} was removed") for one in inside]
        departments = [one.id for one in directory.departments.values() if one.cluster_id == cluster.id]
        scopes = {f"cluster/{cluster.id}", *(f"department/{id}" for id in departments)}
        # Their rules would apply to everything as soon as one cluster is left.
        why = f"It was for cluster {cluster.name}, which was removed"
        steps += await scoped_record_steps(context, scopes, why)
        await record_steps(context, AuditedRequest(caller, "delete", request_id), steps, None)

    await retry_on_conflict(attempt)


async def _load(context: Context, id: str) -> Cluster:
    cluster: Cluster | None = await context.store.get(CLUSTERS, id.lower())
    if cluster is None:
        raise NotFound(f"There is no cluster with the id {id[:60]!r}")
    return cluster
