"""Changes to a snapshot, as data: what a question tries out. `apply` gives the changed snapshot.

The same changes stand in answers, in flags and in files, so that whatever an answer proposes can be asked about again.
Units are those of the snapshot: GPUs as devices, CPU in thousandths of a core, memory in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec
from msgspec.structs import replace

from fairlead.foresight.workloads import HOLDING, SnapshotWorkloads, UnknownName, key_of
from fairlead.scheduling.model.snapshot import (
    ForeignUsage,
    Job,
    JobPodSet,
    Plain,
    Queue,
    QueueShares,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
)

Resource = Literal["gpu", "cpu", "memory"]
ShareField = Literal["quota", "limit", "weight"]
Amount = Literal["gpu", "gpuPortion", "gpuMemoryMib", "cpuMilli", "memoryBytes"]
HOSTNAME = "kubernetes.io/hostname"
#: A question that adds nodes is refused beyond this many: each takes 2 KB of memory while it is answered.
_MAX_NODES = 100_000
_TASK_FIELDS = {
    "gpu": "gpu",
    "gpuPortion": "gpu_portion",
    "gpuMemoryMib": "gpu_memory_mib",
    "cpuMilli": "cpu_milli",
    "memoryBytes": "memory_bytes",
}


class SetRequest(Plain, frozen=True, kw_only=True, tag_field="change", tag="request"):
    """Waiting pods that request more than `value` request `value`."""

    workload: str
    amount: Amount
    value: float


class SetWorkers(Plain, frozen=True, kw_only=True, tag_field="change", tag="workers"):
    """A pod set with at most so many waiting and running pods."""

    workload: str
    pod_set: str
    value: int


class SetNodePools(Plain, frozen=True, kw_only=True, tag_field="change", tag="nodePools"):
    workload: str
    node_pools: tuple[str, ...]


class SetPriority(Plain, frozen=True, kw_only=True, tag_field="change", tag="priority"):
    workload: str
    value: int


class SetPreemptible(Plain, frozen=True, kw_only=True, tag_field="change", tag="preemptible"):
    workload: str
    value: bool


class DropConstraint(Plain, frozen=True, kw_only=True, tag_field="change", tag="withoutConstraint"):
    """Without one constraint of its waiting pods.

    `nodeSelector:KEY`, `nodeAffinity`, `podAffinity`, `podAntiAffinity`, `requiredTopology`, or `resource:NAME`.
    """

    workload: str
    constraint: str


class RemoveWorkload(Plain, frozen=True, kw_only=True, tag_field="change", tag="removeWorkload"):
    """Suspended, deleted or ended: its pods leave at once."""

    workload: str


class AddJobs(Plain, frozen=True, kw_only=True, tag_field="change", tag="addJobs"):
    """New jobs, in the form of the snapshot."""

    jobs: tuple[Job, ...]


class SetShare(Plain, frozen=True, kw_only=True, tag_field="change", tag="share"):
    """Quota, limit or over-quota weight of a queue; without a node pool in every pool that the queue has."""

    queue: str
    field: ShareField
    value: float
    resource: Resource = "gpu"
    node_pool: str | None = None


class AddNodes(Plain, frozen=True, kw_only=True, tag_field="change", tag="addNodes"):
    """Empty nodes of the same shape as one that exists."""

    like: str
    count: int


class SetNode(Plain, frozen=True, kw_only=True, tag_field="change", tag="node"):
    """Change one node. `drain` cordons it and removes its pods; `remove` takes the node away too."""

    node: str
    action: Literal["cordon", "uncordon", "drain", "remove", "makeReady", "untaint"]
    #: The key of the taint to take back.
    taint: str = ""


Change = (
    SetRequest
    | SetWorkers
    | SetNodePools
    | SetPriority
    | SetPreemptible
    | DropConstraint
    | RemoveWorkload
    | AddJobs
    | SetShare
    | AddNodes
    | SetNode
)
_OfWorkload = SetRequest | SetWorkers | SetNodePools | SetPriority | SetPreemptible | DropConstraint


def apply(snapshot: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """The snapshot with the changes, one after the other; raises UnknownName if it lacks what one of them names."""
    for change in changes:
        snapshot = _apply_one(snapshot, change)
    return snapshot


def _apply_one(snapshot: Snapshot, change: Change) -> Snapshot:
    if isinstance(change, SetShare):
        return _set_share(snapshot, change)
    if isinstance(change, AddNodes):
        return _add_nodes(snapshot, change)
    if isinstance(change, SetNode):
        return _set_node(snapshot, change)
    if isinstance(change, AddJobs):
        changed: Snapshot = replace(snapshot, jobs=snapshot.jobs + change.jobs)
        return changed
    keys = [key_of(job) for job in snapshot.jobs]
    key = change.workload if change.workload in keys else SnapshotWorkloads(snapshot).find(change.workload)
    keyed = zip(snapshot.jobs, keys, strict=True)
    if isinstance(change, RemoveWorkload):
        return _with_jobs(snapshot, [job for job, own in keyed if own != key])
    return _with_jobs(snapshot, [_change_job(job, change) if own == key else job for job, own in keyed])


def _with_jobs(snapshot: Snapshot, jobs: Iterable[Job]) -> Snapshot:
    changed: Snapshot = replace(snapshot, jobs=tuple(jobs))
    return changed


def _change_job(job: Job, change: _OfWorkload) -> Job:
    if isinstance(change, SetPriority):
        changed: Job = replace(job, priority=change.value)
    elif isinstance(change, SetPreemptible):
        changed = replace(job, preemptible=change.value)
    elif isinstance(change, SetNodePools):
        changed = replace(job, node_pools=change.node_pools)
    elif isinstance(change, SetWorkers):
        changed = _limit_pod_set(job, change.pod_set, change.value)
    elif isinstance(change, SetRequest):
        changed = _with_waiting_tasks(job, lambda task: _set_amount(task, change))
    else:
        changed = _drop_constraint(job, change.constraint)
    return changed


def _with_waiting_tasks(job: Job, change: Callable[[Task], Task]) -> Job:
    tasks = tuple(change(task) if task.status == "Pending" else task for task in job.tasks)
    changed: Job = replace(job, tasks=tasks)
    return changed


def _set_amount(task: Task, change: SetRequest) -> Task:
    """At most this much. A portion instead of whole GPUs asks for that part of each of them."""
    changed = task
    if change.amount == "gpuPortion" and task.gpu:
        changed = replace(task, gpu=0, gpu_devices=task.gpu, gpu_portion=change.value)
    else:
        field = _TASK_FIELDS[change.amount]
        current = getattr(task, field)
        if current > change.value:
            changed = replace(task, **{field: type(current)(change.value)})
    return changed


def _limit_pod_set(job: Job, pod_set: str, value: int) -> Job:
    """Waiting pods leave from the end; the minimum of the pod set follows."""
    others = [task for task in job.tasks if task.pod_set != pod_set]
    own = sorted((task for task in job.tasks if task.pod_set == pod_set), key=lambda task: task.status == "Pending")
    task_ids = {task.id for task in (*others, *own[:value])}
    changed: Job = replace(job, tasks=tuple(task for task in job.tasks if task.id in task_ids))
    if not job.groups and not job.pod_sets:
        return _replaced(changed, min_available=min(job.min_available, value))
    return _replaced(
        changed,
        pod_sets=_limited(job.pod_sets, pod_set, value),
        groups=tuple(_limit_group(group, pod_set, value) for group in job.groups),
    )


def _replaced(job: Job, **fields: object) -> Job:
    changed: Job = replace(job, **fields)
    return changed


def _limited(pod_sets: tuple[JobPodSet, ...], name: str, value: int) -> tuple[JobPodSet, ...]:
    return tuple(
        replace(each, min_available=min(each.min_available, value)) if each.name == name else each for each in pod_sets
    )


def _limit_group(group: SubGroup, name: str, value: int) -> SubGroup:
    changed: SubGroup = replace(
        group,
        pod_sets=_limited(group.pod_sets, name, value),
        groups=tuple(_limit_group(inner, name, value) for inner in group.groups),
    )
    return changed


def _drop_constraint(job: Job, constraint: str) -> Job:
    kind, _, name = constraint.partition(":")
    if kind == "requiredTopology":
        return _without_required_topology(job)
    if kind == "nodeSelector":
        return _with_waiting_tasks(
            job, lambda task: replace(task, node_selector={k: v for k, v in task.node_selector.items() if k != name})
        )
    if kind == "resource":
        return _with_waiting_tasks(job, lambda task: _without_resource(task, name))
    fields = {"nodeAffinity": "node_affinity", "podAffinity": "pod_affinity", "podAntiAffinity": "pod_anti_affinity"}
    if kind not in fields:
        raise UnknownName(f"'{constraint}' is not a constraint that can be left out.")
    return _with_waiting_tasks(job, lambda task: replace(task, **{fields[kind]: ()}))


def _without_resource(task: Task, name: str) -> Task:
    changed: Task = replace(
        task,
        extended={key: amount for key, amount in task.extended.items() if key != name},
        mig={key: amount for key, amount in task.mig.items() if key != name},
    )
    return changed


def _without_required_topology(job: Job) -> Job:
    def freed(group: SubGroup) -> SubGroup:
        changed: SubGroup = replace(
            group, topology=None, groups=tuple(map(freed, group.groups)), pod_sets=tuple(map(free, group.pod_sets))
        )
        return changed

    def free(pod_set: JobPodSet) -> JobPodSet:
        changed: JobPodSet = replace(pod_set, topology=None)
        return changed

    return _replaced(job, topology=None, groups=tuple(map(freed, job.groups)), pod_sets=tuple(map(free, job.pod_sets)))


def find_queue(snapshot: Snapshot, name: str) -> str:
    """The queue with this name, or with this name as users know it."""
    names = {queue.name for queue in snapshot.queues}
    if name in names:
        return name
    shown = sorted({queue.name for queue in snapshot.queues if queue.display_name == name})
    if len(shown) == 1:
        return shown[0]
    if shown:
        raise UnknownName(f"{len(shown)} queues are called '{name}'; name one of {', '.join(shown)}.")
    raise UnknownName(f"There is no project or department '{name}'.")


def _set_share(snapshot: Snapshot, change: SetShare) -> Snapshot:
    name = find_queue(snapshot, change.queue)
    pools = {queue.node_pool for queue in snapshot.queues if queue.name == name}
    if change.node_pool is not None and change.node_pool not in pools:
        raise UnknownName(f"'{change.queue}' has no quota in node pool '{change.node_pool}'.")
    changed: Snapshot = replace(
        snapshot,
        queues=tuple(
            _with_share(queue, change) if queue.name == name and change.node_pool in (None, queue.node_pool) else queue
            for queue in snapshot.queues
        ),
    )
    return changed


def _with_share(queue: Queue, change: SetShare) -> Queue:
    field = "over_quota_weight" if change.field == "weight" else change.field
    share = replace(getattr(queue.resources, change.resource), **{field: change.value})
    resources: QueueShares = replace(queue.resources, **{change.resource: share})
    changed: Queue = replace(queue, resources=resources)
    return changed


def _find_node(snapshot: Snapshot, name: str) -> SnapshotNode:
    node = next((node for node in snapshot.nodes if node.name == name), None)
    if node is None:
        raise UnknownName(f"There is no node '{name}'.")
    return node


def _add_nodes(snapshot: Snapshot, change: AddNodes) -> Snapshot:
    if change.count < 1:
        raise UnknownName(f"{change.count} is not a number of nodes to add.")
    if len(snapshot.nodes) + change.count > _MAX_NODES:
        raise UnknownName(f"{change.count} nodes are too many to add; a question may have {_MAX_NODES} nodes.")
    like = _find_node(snapshot, change.like)
    names = {node.name for node in snapshot.nodes}
    fresh: list[SnapshotNode] = []
    number = 0
    while len(fresh) < change.count:
        number += 1
        name = f"{like.name}-new-{number}"
        if name not in names:
            labels = {**like.labels, HOSTNAME: name} if HOSTNAME in like.labels else like.labels
            fresh.append(
                replace(like, name=name, labels=labels, ready=True, unschedulable=False, foreign=ForeignUsage())
            )
    changed: Snapshot = replace(snapshot, nodes=snapshot.nodes + tuple(fresh))
    return changed


def _set_node(snapshot: Snapshot, change: SetNode) -> Snapshot:
    node = _find_node(snapshot, change.node)
    if change.action in ("drain", "remove"):
        return _empty_node(snapshot, node, keeps=change.action == "drain")
    if change.action == "untaint":
        if not any(taint.key == change.taint for taint in node.taints):
            raise UnknownName(f"Node '{node.name}' has no taint '{change.taint}'.")
        changed = replace(node, taints=tuple(taint for taint in node.taints if taint.key != change.taint))
    elif change.action == "makeReady":
        changed = replace(node, ready=True)
    else:
        changed = replace(node, unschedulable=change.action == "cordon")
    return _with_node(snapshot, node.name, changed)


def _with_node(snapshot: Snapshot, name: str, node: SnapshotNode | None) -> Snapshot:
    nodes = [node if each.name == name else each for each in snapshot.nodes]
    changed: Snapshot = replace(snapshot, nodes=tuple(each for each in nodes if each is not None))
    return changed


def _empty_node(snapshot: Snapshot, node: SnapshotNode, keeps: bool) -> Snapshot:
    """Its pods wait again, as after an eviction; those of deleted workloads are gone."""
    jobs = []
    for job in snapshot.jobs:
        if any(_is_on(task, node.name) for task in job.tasks):
            tasks = tuple(_off_node(task, node.name) for task in job.tasks)
            if job.deleting:
                tasks = tuple(task for task in job.tasks if not _is_on(task, node.name))
            job = replace(job, tasks=tasks, last_eviction=snapshot.now)
        if job.tasks:
            jobs.append(job)
    emptied: Snapshot = replace(snapshot, jobs=tuple(jobs))
    return _with_node(emptied, node.name, replace(node, unschedulable=True) if keeps else None)


def _is_on(task: Task, node: str) -> bool:
    return task.node == node and task.status in HOLDING


def _off_node(task: Task, node: str) -> Task:
    if not _is_on(task, node):
        return task
    changed: Task = replace(task, status="Pending", node=None, gpu_groups=(), devices=())
    return changed


def encode_changes(changes: tuple[Change, ...]) -> bytes:
    """For keys and files; the same changes give the same bytes."""
    return msgspec.json.encode(changes)
