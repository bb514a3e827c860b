"""Reads clusters, departments, projects, node pools and nodes, and their current usage.

Called by the API. The records come from the directory in memory, usage from the pods that have not ended.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.decide.expand import podsets_of
from fairlead.control.decide.placement.snapshot import pool_of
from fairlead.control.directory import age_key
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, page_of
from fairlead.control.references.scopes import visible_clusters
from fairlead.control.workloads.read import load_workloads_of
from fairlead.model.errors import NotFound
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Cluster, Department, Node, NodePool, Project
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model.decisions import FairShare
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS, WORKLOADS

T = TypeVar("T")
#: Up to this number of open workloads their requests are added up for every request; with more, the requests that the
#: scheduler saw last are used, or none if no scheduler runs.
_ADDED_UP = 1000

_AVERAGES = tuple(
    f"avg{what}{span}"
    for span in ("24h", "7d", "30d")
    for what in ("GpuAllocation", "GpuUtilization", "GpuMemoryUtilization")
)


class OwnerUsage(msgspec.Struct):
    """What running pods hold (GPU devices, millicores, bytes), and how much of it cannot be preempted."""

    gpu: float = 0.0
    cpu_milli: int = 0
    memory_bytes: int = 0
    fixed_gpu: float = 0.0
    fixed_cpu_milli: int = 0
    fixed_memory_bytes: int = 0
    #: GPU, CPU and memory of running and pending pods together; None if there are too many to add up.
    requested: tuple[float, float, float] | None = None

    def add(self, pod: Pod, is_fixed: bool) -> None:
        gpu = pod.gpu_thousandths * max(1, len(pod.gpu_devices)) / 1000
        self.gpu += gpu
        self.cpu_milli += pod.cpu_milli
        self.memory_bytes += pod.memory_bytes
        if is_fixed:
            self.fixed_gpu += gpu
            self.fixed_cpu_milli += pod.cpu_milli
            self.fixed_memory_bytes += pod.memory_bytes


#: Usage by (owner's id, name of the node pool); the total of an owner is under the pool "".
Usages = Mapping[tuple[str, str], OwnerUsage]


async def load_usage(context: Context) -> Usages:
    """What each project and department holds now; ids of departments have a leading slash."""
    active = (Where("is_active", Comparison.EQUAL, 1),)
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=active))
    open_count = await context.store.count(Query(collection=WORKLOADS, where=active))
    if open_count <= _ADDED_UP:
        found_open: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=active))
        workloads = {workload.id: workload for workload in found_open}
    else:
        workloads = await load_workloads_of(context, pods)
    usages: dict[tuple[str, str], OwnerUsage] = {}
    placed: dict[str, int] = {}
    for pod in pods:
        workload = workloads.get(pod.workload_id)
        if workload is None:
            continue
        placed[f"{workload.id}/{pod.role}"] = placed.get(f"{workload.id}/{pod.role}", 0) + 1
        for usage in _usages_of(usages, workload, pod.node_pool):
            usage.add(pod, not workload.preemptible)
    if open_count <= _ADDED_UP:
        for owner in (*context.directory.projects, *(f"/{id}" for id in context.directory.departments)):
            for name in ("", *(pool.name for pool in context.directory.node_pools.values())):
                usages.setdefault((owner, name), OwnerUsage())
        _add_requests(usages, workloads.values(), placed)
    else:
        for view in (context, *context.views.values()):
            add_shares(usages, view.fair_shares)
    return usages


async def count_waiting(context: Context) -> dict[tuple[str, str], int]:
    """The number of pending workloads by project and by the node pool that they try first."""
    where = (Where("is_active", Comparison.EQUAL, 1), Where("phase", Comparison.EQUAL, Phase.PENDING.value))
    pending: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=where))
    waiting: dict[tuple[str, str], int] = {}
    for workload in pending:
        pool = workload.node_pools[0] if workload.node_pools else DEFAULT_NODE_POOL
        waiting[workload.project_id, pool] = waiting.get((workload.project_id, pool), 0) + 1
    return waiting


def add_shares(usages: dict[tuple[str, str], OwnerUsage], shares: Iterable[FairShare]) -> None:
    """Add what queues requested in the scheduler's last cycle, per pool and in total."""
    for share in shares:
        kind, _, id = share.queue.partition("-")
        owner = id if kind == "project" else f"/{id}"
        for pool in ("", share.node_pool):
            usage = usages.setdefault((owner, pool), OwnerUsage())
            gpu, cpu, memory = usage.requested or (0.0, 0.0, 0.0)
            requested = share.requested
            usage.requested = (gpu + requested[0], cpu + requested[1], memory + requested[2])


def _usages_of(by_owner: dict[tuple[str, str], OwnerUsage], workload: Workload, pool: str) -> list[OwnerUsage]:
    owners = (workload.project_id, f"/{workload.department_id}")
    return [by_owner.setdefault((owner, name), OwnerUsage()) for owner in owners for name in ("", pool)]


def _add_requests(
    by_owner: dict[tuple[str, str], OwnerUsage], workloads: Iterable[Workload], placed: Mapping[str, int]
) -> None:
    """Add the requests of pending pods to what is held; they count in the first pool that is tried."""
    waiting: dict[int, tuple[OwnerUsage, list[float]]] = {}
    for workload in workloads:
        if workload.desired_phase is not DesiredPhase.RUNNING:
            continue
        pool = workload.node_pools[0] if workload.node_pools else DEFAULT_NODE_POOL
        usages = _usages_of(by_owner, workload, pool)
        for podset in podsets_of(workload):
            rest = podset.count if podset.completions is None else min(podset.count, podset.completions)
            rest -= placed.get(f"{workload.id}/{podset.role}", 0)
            request = podset.request
            gpu = request.gpu_devices * request.gpu_portion / 1000
            for usage in usages if rest > 0 else ():
                requested = waiting.setdefault(id(usage), (usage, [0.0, 0.0, 0.0]))[1]
                requested[0] += gpu * rest
                requested[1] += request.cpu_milli * rest
                requested[2] += request.memory_bytes * rest
    for usage in by_owner.values():
        _, requested = waiting.get(id(usage), (usage, [0.0, 0.0, 0.0]))
        usage.requested = (usage.gpu + requested[0], usage.cpu_milli + requested[1], usage.memory_bytes + requested[2])


def gpu_quota(record: Department) -> float | None:
    """The quota of GPUs over all pools; None if one is unlimited."""
    parts = [quota.gpu.deserved for quota in record.resources]
    return None if any(part is None for part in parts) else sum(part or 0.0 for part in parts)


def department_fields(usage: Usages) -> dict[str, FilterField[Department]]:
    return {
        "name": FilterField(read=lambda record: record.name),
        "clusterId": FilterField(read=lambda record: record.cluster_id),
        "totalGpuQuota": FilterField("number", read=gpu_quota),
        "gpuAllocated": FilterField("number", read=lambda record: usage.get((f"/{record.id}", ""), OwnerUsage()).gpu),
        "createdAt": FilterField("time", read=lambda record: record.created_at),
        **{name: FilterField("number") for name in _AVERAGES},
    }


def project_fields(usage: Usages) -> dict[str, FilterField[Project]]:
    return {
        "name": FilterField(read=lambda record: record.name),
        "clusterId": FilterField(read=lambda record: record.cluster_id),
        "departmentId": FilterField(read=lambda record: record.department_id),
        "parentId": FilterField(read=lambda record: record.department_id),
        "parentName": FilterField(read=lambda record: record.department_name),
        "phase": FilterField(read=lambda record: "Ready" if record.deleted_at is None else "Deleting"),
        "totalGpuQuota": FilterField("number", read=gpu_quota),
        "gpuAllocated": FilterField("number", read=lambda record: usage.get((record.id, ""), OwnerUsage()).gpu),
        "createdAt": FilterField("time", read=lambda record: record.created_at),
        **{name: FilterField("number") for name in _AVERAGES},
    }


def node_pool_fields(has_nodes: Callable[[NodePool], bool]) -> dict[str, FilterField[NodePool]]:
    return {
        "name": FilterField(read=lambda pool: pool.name),
        "clusterId": FilterField(read=lambda pool: pool.cluster_id),
        "phase": FilterField(read=lambda pool: "Ready" if has_nodes(pool) else "Empty"),
        "createdAt": FilterField("time", read=lambda pool: pool.created_at),
        "updatedAt": FilterField("time", read=lambda pool: pool.updated_at),
        "gpuNetworkAccelerationDetection": FilterField(constant="Auto"),
        "networkTopologyName": FilterField(),
        "gpuNetworkAccelerationDetected": FilterField(constant="false"),
        "gpuNetworkAccelerationLabelKey": FilterField(),
        "swapEnabled": FilterField(constant="false"),
        "nodeLevelSchedulerEnabled": FilterField(constant="false"),
    }


def node_fields(cluster_of: Callable[[Node], str], pool_name: Callable[[Node], str]) -> dict[str, FilterField[Node]]:
    return {
        "name": FilterField(read=lambda node: node.name),
        "status": FilterField(read=lambda node: "Ready" if node.ready else "NotReady"),
        "nodePool": FilterField(read=pool_name),
        "gpuType": FilterField(read=lambda node: node.gpu_type or None),
        "nvLinkDomainUid": FilterField(),
        "nvLinkCliqueId": FilterField(),
        "clusterUuid": FilterField(read=cluster_of),
    }


DEPARTMENT_FIELD_NAMES = tuple(department_fields({}))
PROJECT_FIELD_NAMES = tuple(project_fields({}))
NODE_POOL_FIELD_NAMES = tuple(node_pool_fields(lambda pool: False))
NODE_FIELD_NAMES = tuple(node_fields(lambda node: "", lambda node: ""))


def load_clusters(context: Context, caller: Caller) -> list[Cluster]:
    access.check(caller, "clusters:read")
    return sorted(context.directory.clusters.values(), key=age_key)


def find_departments(context: Context, caller: Caller, request: ListRequest, usage: Usages) -> Page[Department]:
    access.check(caller, "departments:read")
    return page_of(
        visible_departments(context, caller).values(), request, department_fields(usage), lambda owner: owner.name
    )


def visible_departments(context: Context, caller: Caller) -> dict[str, Department]:
    """The departments in which, or in a project of which, a caller has a role."""
    departments = context.directory.departments
    return {id: one for id, one in departments.items() if _is_visible(context, caller, one)}


def _is_visible(context: Context, caller: Caller, owner: Department) -> bool:
    seen = access.visible_projects(caller, "projects:read")
    if seen is None or (isinstance(owner, Project) and owner.id in seen):
        return True
    if access.is_allowed(caller, "departments:read", f"department/{owner.id}"):
        return True
    return any(
        context.directory.projects[id].department_id == owner.id for id in seen & context.directory.projects.keys()
    )


def check_department(context: Context, caller: Caller, operation: str, id: str) -> None:
    """Raise unless the caller may do this to the department; NotFound for one that they do not see."""
    department = context.directory.departments.get(id)
    if department is not None and not _is_visible(context, caller, department):
        raise NotFound(f"There is no department with the id {id[:60]!r}")
    access.check_at(caller, operation, f"department/{id}")


def find_projects(context: Context, caller: Caller, request: ListRequest, usage: Usages) -> Page[Project]:
    access.check(caller, "projects:read")
    seen = access.visible_projects(caller, "projects:read")
    projects = context.directory.projects
    mine = projects if seen is None else {id: project for id, project in projects.items() if id in seen}
    return page_of(mine.values(), request, project_fields(usage), lambda owner: owner.name)


def find_node_pools(context: Context, caller: Caller, request: ListRequest) -> Page[NodePool]:
    access.check(caller, "node-pools:read")
    fields = node_pool_fields(lambda pool: bool(nodes_by_pool(context.for_cluster(pool.cluster_id)).get(pool.name)))
    seen = visible_clusters(context, caller, "node-pools:read")
    pools = [pool for pool in context.directory.node_pools.values() if seen is None or pool.cluster_id in seen]
    return page_of(pools, request, fields, lambda pool: pool.name)


def find_nodes(context: Context, caller: Caller, request: ListRequest) -> Page[Node]:
    fields = node_fields(context.directory.cluster_of, lambda node: pool_name(context, node))
    return page_of(visible_nodes(context, caller), request, fields, lambda node: node.name)


def visible_nodes(context: Context, caller: Caller) -> list[Node]:
    """The nodes of the clusters in which a caller may read nodes somewhere."""
    access.check(caller, "nodes:read")
    seen, directory = visible_clusters(context, caller, "nodes:read"), context.directory
    return [node for node in directory.nodes.values() if seen is None or directory.cluster_of(node) in seen]


def load_record(context: Context, caller: Caller, records: Mapping[str, T], id: str, what: str) -> T:
    """The record of that id; raises `NotFound`."""
    operation = f"{what.replace(' ', '-')}s:read"
    access.check(caller, operation, id if what == "project" else "")
    record = records.get(id) or records.get(id.lower())
    if isinstance(record, NodePool):
        seen = visible_clusters(context, caller, operation)
        record = record if seen is None or record.cluster_id in seen else None
    if record is None or (isinstance(record, Department) and not _is_visible(context, caller, record)):
        raise NotFound(f"There is no {what} with the id {id[:60]!r}")
    return record


def load_node(context: Context, caller: Caller, id: str) -> Node:
    """The node with that id in the API; raises `NotFound`."""
    directory = context.directory
    by_id = {node_uuid(directory.cluster_of(node), node): node for node in visible_nodes(context, caller)}
    return load_record(context, caller, by_id, id, "node")


def node_uuid(cluster_id: str, node: Node) -> str:
    """The node's id in the API, which must be a UUID: it is derived from the node's name."""
    return str(uuid.uuid5(uuid.UUID(cluster_id), node.id))


def pool_name(context: Context, node: Node) -> str:
    """The name of the node pool that a node belongs to."""
    return pool_of(node, context.for_cluster(context.directory.cluster_of(node)).directory.node_pools.values())


def nodes_by_pool(context: Context) -> dict[str, list[Node]]:
    by_pool: dict[str, list[Node]] = {}
    for node in context.directory.nodes.values():
        by_pool.setdefault(pool_name(context, node), []).append(node)
    return by_pool
