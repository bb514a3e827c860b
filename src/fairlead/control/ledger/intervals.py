"""The intervals that a change closes, for the same transaction as the change. Pure.

Called wherever pods, workloads, nodes, node pools or owners are written, and by the report for what is still open.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from fairlead.control.decide.draft import Draft
from fairlead.control.decide.placement.snapshot import pool_of
from fairlead.model.clock import SECOND, Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.ledger import PoolDeserved, ResourceAmounts, SupplyInterval, UsageInterval
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Department, Node, NodePool, PoolQuota, Project
from fairlead.model.records.workload import Pod, Workload

#: The id and subject of the one interval before the ledger.
LEDGER = "ledger"
#: Shorter waits are left out: nearly every short job has one of some milliseconds, until it is placed.
_LEAST_WAIT: Millis = 1 * SECOND


def close_usage(draft: Draft) -> list[UsageInterval]:
    """What ended with this decision: pods, and the time that the workload waited."""
    before = {pod.id for pod in draft.entry.pods if pod.has_ended}
    closed = [
        use_of_pod(draft.workload, pod, draft.now)
        for pod in draft.pods.values()
        if pod.has_ended and pod.id not in before
    ]
    waited = draft.workload.pending_time - draft.entry.workload.pending_time
    if waited >= _LEAST_WAIT:
        since = draft.entry.workload.phase_updated_at
        closed.append(wait_of_workload(draft.entry.workload, draft.entry.podsets, since, since + waited))
    return closed


def use_of_pod(workload: Workload, pod: Pod, now: Millis) -> UsageInterval:
    """What a pod held from its placement to its end, or until now if it has not ended."""
    until = now if pod.completed_at is None else pod.completed_at
    return msgspec.structs.replace(
        _interval(workload, pod.id, pod.created_at, until),
        node_pool=pod.node_pool,
        node=pod.node,
        amounts=ResourceAmounts(pod.gpu_thousandths * len(pod.gpu_devices), pod.cpu_milli, pod.memory_bytes),
    )


def wait_of_workload(workload: Workload, podsets: Iterable[PodSet], since: Millis, until: Millis) -> UsageInterval:
    """What a workload requested while it waited. It waits in the first pool that it may use."""
    gpu = cpu = memory = 0
    for podset in podsets:
        pods = podset.count * podset.groups
        if podset.completions is not None:
            pods = min(pods, podset.completions)
        gpu += podset.request.gpu_devices * podset.request.gpu_portion * pods
        cpu += podset.request.cpu_milli * pods
        memory += podset.request.memory_bytes * pods
    return msgspec.structs.replace(
        _interval(workload, f"{workload.id}-{workload.version}", since, until),
        type="waited",
        amounts=ResourceAmounts(gpu, cpu, memory),
    )


def _interval(workload: Workload, id: str, since: Millis, until: Millis) -> UsageInterval:
    return UsageInterval(
        id=id,
        since=since,
        until=max(since, until),
        workload_id=workload.id,
        workload_name=workload.name,
        user=workload.created_by,
        project_id=workload.project_id,
        project_name=workload.project_name,
        department_id=workload.department_id,
        department_name=workload.department_name,
        node_pool=workload.node_pools[0] if workload.node_pools else DEFAULT_NODE_POOL,
        preemptible=workload.preemptible,
    )


def close_node(name: str, node: Node | None, pools: Iterable[NodePool], now: Millis) -> SupplyInterval:
    """What a node was until now; None if it did not exist."""
    if node is None:
        return SupplyInterval(id=f"node/{name}/0/{now}", subject=name, until=now)
    return SupplyInterval(
        id=f"node/{name}/{node.version}/{now}",
        subject=name,
        until=now,
        node_pool=pool_of(node, pools),
        capacity=ResourceAmounts(1000 * len(node.gpus), node.cpu_milli, node.memory_bytes),
        available=node.ready and not node.cordoned,
    )


def has_other_supply(before: Node, after: Node) -> bool:
    """Whether a change of a node concerns the ledger."""
    return _supply(before) != _supply(after)


def _supply(node: Node) -> tuple[object, ...]:
    return len(node.gpus), node.cpu_milli, node.memory_bytes, node.ready, node.cordoned, node.labels


def close_owner(owner: Department, now: Millis) -> SupplyInterval:
    """The quotas of a project or department until now."""
    type: Literal["project", "department"] = "project" if isinstance(owner, Project) else "department"
    return SupplyInterval(
        id=f"{type}/{owner.id}/{owner.version}",
        type=type,
        subject=owner.id,
        until=now,
        name=owner.name,
        deserved=_deserved_by_pool(owner),
    )


def has_other_quota(before: Department, after: Department) -> bool:
    """Whether a change of an owner concerns the ledger."""
    return (before.name, _deserved_by_pool(before)) != (after.name, _deserved_by_pool(after))


def _deserved_by_pool(owner: Department) -> dict[str, PoolDeserved]:
    return {quota.node_pool_name: _deserved(quota) for quota in owner.resources}


def _deserved(quota: PoolQuota) -> PoolDeserved:
    gpu, cpu, memory = quota.gpu.deserved, quota.cpu.deserved, quota.memory.deserved
    return PoolDeserved(
        None if gpu is None else round(1000 * gpu),
        None if cpu is None else round(cpu),
        None if memory is None else round(memory),
    )


def close_moved_nodes(
    nodes: Iterable[Node], before: Mapping[str, NodePool], after: Mapping[str, NodePool], now: Millis
) -> list[SupplyInterval]:
    """The nodes that change their pool because the pools change."""
    return [
        close_node(node.unique_name, node, before.values(), now)
        for node in nodes
        if pool_of(node, before.values()) != pool_of(node, after.values())
    ]


def close_ledger(now: Millis) -> SupplyInterval:
    """Nothing is recorded until now."""
    return SupplyInterval(id=LEDGER, type="ledger", subject=LEDGER, until=now)
