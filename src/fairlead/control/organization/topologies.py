"""Network topologies: create, list, delete. A node pool that has one keeps the pods of a gang near each other.

Called by the API. There are few, and they belong to the cluster, so its record holds them.
"""

import re

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.owners import name_issues
from fairlead.control.records import AuditedRequest, change_cluster, load_cluster, retry_on_conflict
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound, refuse_malformed
from fairlead.model.records.organization import Cluster, NetworkTopology
from fairlead.model.records.people import Caller

_MAX_LEVELS = 16
_HOSTNAME = "kubernetes.io/hostname"
_LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")


class TopologyInput(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    cluster_id: str
    levels: tuple[str, ...]


def list_topologies(context: Context, caller: Caller) -> tuple[NetworkTopology, ...]:
    access.check(caller, "network-topologies:read")
    return tuple(each for cluster in context.directory.clusters.values() for each in cluster.network_topologies)


def cluster_of_topology(context: Context, topology: NetworkTopology) -> Cluster:
    clusters = context.directory.clusters.values()
    return next((one for one in clusters if topology in one.network_topologies), context.directory.cluster)


def get_topology(context: Context, caller: Caller, id: str) -> NetworkTopology:
    return _find(list_topologies(context, caller), id)


def pools_with(context: Context, topology: NetworkTopology) -> tuple[str, ...]:
    """Names of the node pools that have this topology."""
    pools = context.directory.node_pools.values()
    return tuple(sorted(pool.name for pool in pools if pool.network_topology_id == topology.id))


async def create_topology(
    context: Context, caller: Caller, input: TopologyInput, request_id: str = ""
) -> NetworkTopology:
    access.check(caller, "network-topologies:create")

    async def attempt() -> NetworkTopology:
        known_id = input.cluster_id.lower() if input.cluster_id.lower() in context.directory.clusters else ""
        cluster = await load_cluster(context, known_id)
        issues = name_issues(input.name) + _level_issues(input.levels)
        if not known_id:
            issues.append(ComplianceIssue("clusterId", f"there is no cluster {input.cluster_id[:60]}"))
        if any(known.name == input.name for known in cluster.network_topologies):
            issues.append(ComplianceIssue("name", f"a network topology named {input.name} already exists"))
        refuse_malformed(issues)
        topology = NetworkTopology(
            id=context.new_id(),
            name=input.name,
            levels=input.levels,
            created_at=context.clock(),
            created_by=caller.name,
        )
        message = f"Network topology {topology.name} with the levels {', '.join(topology.levels)} was created"
        request = AuditedRequest(caller, "create", request_id)
        topologies = (*cluster.network_topologies, topology)
        await change_cluster(context, request, cluster, message, network_topologies=topologies)
        return topology

    return await retry_on_conflict(attempt)


async def delete_topology(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Delete a topology that no node pool has."""
    access.check(caller, "network-topologies:delete")

    async def attempt() -> None:
        topology = _find(list_topologies(context, caller), id)
        cluster = await load_cluster(context, cluster_of_topology(context, topology).id)
        pools = pools_with(context, topology)
        if pools:
            raise Invalid(
                f"Network topology {topology.name} is used by node pool {', '.join(pools)}; change that first"
            )
        rest = tuple(known for known in cluster.network_topologies if known.id != topology.id)
        message = f"Network topology {topology.name} was deleted by {caller.name}"
        request = AuditedRequest(caller, "delete", request_id)
        await change_cluster(context, request, cluster, message, network_topologies=rest)

    await retry_on_conflict(attempt)


def _find(known: tuple[NetworkTopology, ...], id: str) -> NetworkTopology:
    for topology in known:
        if topology.id == id.lower():
            return topology
    raise NotFound(f"There is no network topology with the id {id[:60]!r}")


def _level_issues(levels: tuple[str, ...]) -> list[ComplianceIssue]:
    issues = []
    if not 1 <= len(levels) <= _MAX_LEVELS:
        issues.append(ComplianceIssue("levels", f"has {len(levels)} levels; 1 to {_MAX_LEVELS} are allowed"))
    for number, level in enumerate(levels):
        if not _LABEL.match(level):
            issues.append(
                ComplianceIssue(f"levels[{number}]", f"is '{level[:80]}'; a level must be the name of a node label")
            )
        elif level in levels[:number]:
            issues.append(ComplianceIssue(f"levels[{number}]", f"{level} is given twice"))
        elif level == _HOSTNAME and number + 1 < len(levels):
            issues.append(ComplianceIssue(f"levels[{number}]", f"{_HOSTNAME} can only be the last level"))
    return issues
