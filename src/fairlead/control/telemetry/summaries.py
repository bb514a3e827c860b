"""Summaries of now by groups: numbers of workloads; capacity, allocation and usage of nodes.

Called by the API. Only what a caller may see is counted.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.lists import seen_by
from fairlead.control.organization.inventory import pool_name, visible_nodes
from fairlead.control.telemetry.metrics import take_usage_samples
from fairlead.control.usage_samples import UsageSampler
from fairlead.control.workloads.read import load_live_pods
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.records.organization import Node
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.resource_usage import node_key
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS, WORKLOADS

_MEBIBYTE = 1024 * 1024
#: The upper bounds, in seconds, of the histogram of pending times.
_WAITS = (60, 300, 900, 3600, 14400, 86400)
_WAITING = (Phase.CREATING, Phase.PENDING, Phase.RESUMING)

#: One group: (key, value, name).
Group = tuple[str, str, str]
Sums = dict[tuple[Group, ...], float]


class WorkloadQuestion(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    group_by: tuple[str, ...] = ()
    cluster_id: str = ""
    node_pool: str = ""
    department_id: str = ""
    phases: tuple[str, ...] = ()


_WORKLOAD_GROUPS: Mapping[str, Callable[[Workload, tuple[str, ...]], tuple[str, str]]] = {
    "ClusterId": lambda workload, pools: (workload.cluster_id, ""),
    "DepartmentId": lambda workload, pools: (workload.department_id, workload.department_name),
    "ProjectId": lambda workload, pools: (workload.project_id, workload.project_name),
    "Type": lambda workload, pools: (KINDS[workload.kind].title, ""),
    "CurrentNodepools": lambda workload, pools: (",".join(pools), ""),
    "Phase": lambda workload, pools: (workload.phase.value, ""),
    "Category": lambda workload, pools: (workload.category, ""),
}


async def count_workloads(context: Context, caller: Caller, question: WorkloadQuestion) -> Sums:
    """The number of workloads, their GPUs, or the distribution of pending times, by groups."""
    access.check(caller, "workloads:read")
    where = [Where("is_listed", Comparison.EQUAL, 1), *seen_by(caller)]
    if question.cluster_id:
        where.append(Where("cluster_id", Comparison.EQUAL, question.cluster_id))
    if question.department_id:
        where.append(Where("department_id", Comparison.EQUAL, question.department_id))
    if question.phases:
        where.append(Where("phase", Comparison.ONE_OF, question.phases))
    workloads: list[Workload] = await context.store.find(Query(collection=WORKLOADS, where=tuple(where)))
    pods = await load_live_pods(context, workloads)
    sums: Sums = {}
    for workload in workloads:
        pools = tuple(sorted({pod.node_pool for pod in pods.get(workload.id, ()) if pod.node_pool}))
        if question.node_pool and question.node_pool not in (pools or workload.node_pools):
            continue
        groups = [(name, *_WORKLOAD_GROUPS[name](workload, pools)) for name in question.group_by]
        value = workload.allocated_gpu if question.type == "GPU_ALLOCATION" else 1.0
        if question.type == "PENDING_TIME_DISTRIBUTION":
            if workload.phase not in _WAITING:
                continue
            groups.append(("PendingTimeSeconds", _wait_of(workload, context.clock()), ""))
        sums[tuple(groups)] = sums.get(tuple(groups), 0.0) + value
    return sums if sums or question.group_by else {(): 0.0}


def _wait_of(workload: Workload, now: Millis) -> str:
    """The bucket of a workload's pending time: `0-60`, …, `86400-`."""
    waited = (workload.pending_time + max(0, now - workload.phase_updated_at)) // 1000
    bounds = (0, *_WAITS)
    bucket = sum(waited >= bound for bound in _WAITS)
    return f"{bounds[bucket]}-{bounds[bucket + 1] if bucket < len(_WAITS) else ''}"


#: Capacity and allocation of a node.
_NODE_FIGURES: Mapping[str, Callable[[Node, list[Pod]], float]] = {
    "READY_GPU_NODES": lambda node, pods: float(bool(node.gpus) and node.ready),
    "READY_GPUS": lambda node, pods: float(len(node.gpus) if node.ready else 0),
    "TOTAL_GPU_NODES": lambda node, pods: float(bool(node.gpus)),
    "TOTAL_GPUS": lambda node, pods: float(len(node.gpus)),
    "FREE_GPUS": lambda node, pods: len(node.gpus) - _gpus(pods),
    "ALLOCATED_GPUS": lambda node, pods: _gpus(pods),
    "TOTAL_CPU_CORES": lambda node, pods: node.cpu_milli / 1000,
    "ALLOCATED_CPU_CORES": lambda node, pods: sum(pod.cpu_milli for pod in pods) / 1000,
    "TOTAL_GPU_MEMORY_BYTES": lambda node, pods: float(sum(gpu.memory_mib for gpu in node.gpus) * _MEBIBYTE),
    "TOTAL_CPU_MEMORY_BYTES": lambda node, pods: float(node.memory_bytes),
    "ALLOCATED_CPU_MEMORY_BYTES": lambda node, pods: float(sum(pod.memory_bytes for pod in pods)),
    "FULLY_FREE_GPU_NODES": lambda node, pods: float(bool(node.gpus) and not _gpus(pods)),
}
_NODE_USAGE = ("USED_CPU_CORES", "USED_CPU_MEMORY_BYTES")


def _gpus(pods: Iterable[Pod]) -> float:
    return sum(len(pod.gpu_devices) * pod.gpu_thousandths for pod in pods) / 1000


async def count_nodes(context: Context, caller: Caller, type: str, group_by: tuple[str, ...], node_pool: str) -> Sums:
    """A metric of nodes by groups; empty if it is not measured here."""
    nodes = visible_nodes(context, caller)
    if type not in _NODE_FIGURES and type not in _NODE_USAGE:
        return {}
    active = (Where("is_active", Comparison.EQUAL, 1),)
    pods_by_node: dict[str, list[Pod]] = {}
    for pod in await context.store.find(Query(collection=PODS, where=active)):
        pods_by_node.setdefault(pod.node, []).append(pod)
    usage_samples = await take_usage_samples(context) if type in _NODE_USAGE else None
    sums: Sums = {}
    for node in nodes:
        pool = pool_name(context, node)
        if node_pool and pool != node_pool:
            continue
        labels = {
            "ClusterId": (context.directory.cluster_of(node), ""),
            "Nodepool": (pool, ""),
            "Node": (node.name, ""),
        }
        groups = tuple((name, *labels[name]) for name in group_by)
        pods = pods_by_node.get(node.name, [])
        figure = _NODE_FIGURES.get(type)
        value = figure(node, pods) if figure else _used(type, node, pods, usage_samples, context.clock())
        if value is not None:
            sums[groups] = sums.get(groups, 0.0) + value
    return sums


def _used(type: str, node: Node, pods: list[Pod], usage_samples: UsageSampler | None, now: Millis) -> float | None:
    """The usage of the machine; for a declared node the usage of its pods."""
    if usage_samples is None:
        return None
    ids = [pod.id for pod in pods] if node.declared else [node_key(node.name)]
    series = [usage_samples.of(id) for id in ids]
    measured = [each.cores(now) if type == "USED_CPU_CORES" else each.memory(now) for each in series]
    values = [value for value in measured if value is not None]
    return sum(values) if values or node.declared else None
