"""Metrics of the cluster and its node pools over time: GPUs, allocations, utilization.

Called by the API. Allocations at any time come from the records of pods. For nodes and quotas the present values are
used, because their history is not stored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.organization.inventory import nodes_by_pool
from fairlead.control.telemetry.metrics import Measurement, Span, measure_node
from fairlead.control.usage_samples import UsageSampler
from fairlead.model.clock import Millis
from fairlead.model.records.organization import Node
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS, WORKLOADS

_MAX_PODS = 10_000
_MAX_WORKLOADS = 10_000
#: By utilization metric: the capacity of a node that it is a share of.
_UTILIZATION: Mapping[str, Callable[[Node], float]] = {
    "CPU_UTILIZATION": lambda node: float(node.cpu_milli),
    "CPU_MEMORY_UTILIZATION": lambda node: float(node.memory_bytes),
}


class CapacityGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes, quotas and pods that a metric covers: of the cluster, a pool, or one group."""

    #: (key, value) by which it was grouped; empty for the whole.
    group: tuple[str, str] = ("", "")
    #: None if the group has no nodes or no quota of its own.
    nodes: tuple[Node, ...] | None = None
    quota: float | None = None
    pods: tuple[Pod, ...] = ()
    workloads: tuple[Workload, ...] = ()


class Records(msgspec.Struct, frozen=True, kw_only=True):
    pods: Sequence[Pod]
    workloads: Sequence[Workload]


async def load_records(context: Context, span: Span, pool: str) -> Records:
    """The pods and workloads that existed within the span, of one pool or of all."""
    before = Where("created_at", Comparison.AT_MOST, span.end)
    newest = (("created_at", True),)
    pods: list[Pod] = await context.store.find(Query(collection=PODS, where=(before,), order=newest, limit=_MAX_PODS))
    pods = [pod for pod in pods if pod.completed_at is None or pod.completed_at >= span.start]
    query = Query(
        collection=WORKLOADS, where=(before, *context.own_workload_conditions), order=newest, limit=_MAX_WORKLOADS
    )
    workloads: list[Workload] = await context.store.find(query)
    if context.own_workload_conditions:
        own = {workload.id for workload in workloads}
        pods = [pod for pod in pods if pod.workload_id in own]
    workloads = [each for each in workloads if each.deleted_at is None or each.deleted_at >= span.start]
    if pool:
        pods = [pod for pod in pods if pod.node_pool == pool]
        inside = {pod.workload_id for pod in pods}
        workloads = [each for each in workloads if each.id in inside or pool in each.node_pools]
    return Records(pods=pods, workloads=workloads)


def list_capacity_groups(
    context: Context, caller: Caller, records: Records, group_by: str, pool: str
) -> list[CapacityGroup]:
    """One group for everything, or the groups by `group_by`; of projects and departments, what the caller may see."""
    by_pool = nodes_by_pool(context)
    pools = [pool] if pool else [one.name for one in context.directory.node_pools.values()]
    if not group_by:
        nodes = tuple(node for name in pools for node in by_pool.get(name, ()))
        whole = CapacityGroup(nodes=nodes, quota=_quota(context, pools, lambda project_id: True))
        return [_filled(whole, records.pods, records.workloads)]
    if group_by == "Nodepool":
        return [
            _filled(
                CapacityGroup(
                    group=(group_by, name),
                    nodes=tuple(by_pool.get(name, ())),
                    quota=_quota(context, [name], lambda project_id: True),
                ),
                [pod for pod in records.pods if pod.node_pool == name],
                [each for each in records.workloads if name in each.node_pools],
            )
            for name in pools
        ]
    return list(_parts(context, caller, records, group_by, pools))


def _parts(
    context: Context, caller: Caller, records: Records, group_by: str, pools: Sequence[str]
) -> Iterator[CapacityGroup]:
    """The groups by project, department or category of workloads. Nodes belong to none of them."""
    part_of: Callable[[Workload], str] = {
        "Project": lambda workload: workload.project_name,
        "Department": lambda workload: workload.department_name,
        "Category": lambda workload: workload.category,
    }[group_by]
    seen = None if group_by == "Category" else access.visible_projects(caller, "projects:read")
    visible = [each for each in records.workloads if seen is None or each.project_id in seen]
    of_workload = {workload.id: part_of(workload) for workload in visible}
    projects = [one for one in context.directory.projects.values() if seen is None or one.id in seen]
    owners = {
        "Project": {one.name: {one.id} for one in projects},
        "Department": {
            name: {one.id for one in projects if one.department_name == name}
            for name in (one.department_name for one in projects)
        },
    }.get(group_by, {})
    for name in sorted({*of_workload.values(), *owners}):
        quota = _quota(context, pools, owners[name].__contains__) if name in owners else None
        pods = [pod for pod in records.pods if of_workload.get(pod.workload_id) == name]
        workloads = [each for each in visible if of_workload[each.id] == name]
        yield _filled(CapacityGroup(group=(group_by, name), quota=quota), pods, workloads)


def _filled(group: CapacityGroup, pods: Iterable[Pod], workloads: Iterable[Workload]) -> CapacityGroup:
    return msgspec.structs.replace(group, pods=tuple(pods), workloads=tuple(workloads))


def _quota(context: Context, pools: Sequence[str], is_meant: Callable[[str], bool]) -> float:
    """The GPU quota of projects; unlimited quotas are not counted."""
    projects = [one for one in context.directory.projects.values() if is_meant(one.id)]
    granted = [quota for project in projects for quota in project.resources if quota.node_pool_name in pools]
    return sum(quota.gpu.deserved or 0.0 for quota in granted)


def measure_capacity_group(
    group: CapacityGroup, types: Iterable[str], times: Sequence[Millis], usage_samples: UsageSampler
) -> list[Measurement]:
    """The metrics of one group; those that it lacks or that are not measured have no values."""
    return [_measure(group, type, times, usage_samples) for type in types]


def _measure(group: CapacityGroup, type: str, times: Sequence[Millis], usage_samples: UsageSampler) -> Measurement:
    if type == "ALLOCATED_GPU":
        return Measurement(type, tuple((at, _allocated_gpus(group, at)) for at in times))
    if type == "WORKLOADS_COUNT":
        return Measurement(
            type, tuple((at, float(sum(_existed_at(one, at) for one in group.workloads))) for at in times)
        )
    if type == "GPU_QUOTA" and group.quota is not None:
        return Measurement(type, tuple((at, group.quota) for at in times))
    if group.nodes is None:
        return Measurement(type, is_known=False)
    gpus = float(sum(len(node.gpus) for node in group.nodes))
    if type == "TOTAL_GPU":
        return Measurement(type, tuple((at, gpus) for at in times))
    if type == "UNALLOCATED_GPU":
        return Measurement(type, tuple((at, max(0.0, gpus - _allocated_gpus(group, at))) for at in times))
    if type == "TOTAL_GPU_NODES":
        return Measurement(type, tuple((at, float(sum(bool(node.gpus) for node in group.nodes))) for at in times))
    if type in _UTILIZATION:
        return _utilization(group, group.nodes, type, times, usage_samples)
    return Measurement(type, is_known=False)


def _allocated_gpus(group: CapacityGroup, at: Millis) -> float:
    pods = (pod for pod in group.pods if pod.exists_at(at))
    return sum(len(pod.gpu_devices) * pod.gpu_thousandths for pod in pods) / 1000


def _existed_at(workload: Workload, at: Millis) -> bool:
    return workload.created_at <= at and (workload.deleted_at is None or workload.deleted_at > at)


def _utilization(
    group: CapacityGroup, nodes: Sequence[Node], type: str, times: Sequence[Millis], usage_samples: UsageSampler
) -> Measurement:
    """The mean over nodes, weighted by size; times without a sample are left out."""
    sums: dict[Millis, float] = {}
    whole = sum(_UTILIZATION[type](node) for node in nodes)
    for node in nodes:
        pods = [pod for pod in group.pods if pod.node == node.name]
        (measurements,) = measure_node(node, pods, [type], times, usage_samples)
        for at, value in measurements.values:
            sums[at] = sums.get(at, 0.0) + value * _UTILIZATION[type](node)
    return Measurement(type, tuple((at, value / whole) for at, value in sorted(sums.items())) if whole else ())
