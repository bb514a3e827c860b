"""Families of changes that may start a waiting workload: what its user, an administrator or time can do.

Each family is ordered from the smallest change to the largest. `why.py` searches them; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import ceil, floor
from typing import Literal, NamedTuple

from fairlead.foresight.changes import (
    HOSTNAME,
    AddNodes,
    Amount,
    Change,
    DropConstraint,
    RemoveWorkload,
    Resource,
    SetNode,
    SetNodePools,
    SetPreemptible,
    SetPriority,
    SetRequest,
    SetShare,
    SetWorkers,
    ShareField,
)
from fairlead.foresight.search import FEW_JOBS, Changes, Pick, Steps
from fairlead.foresight.workloads import SnapshotWorkloads, gpus_of, is_waiting
from fairlead.model.priority import CURRENT_PRIORITIES, PRIORITIES
from fairlead.scheduling.model.decisions import FairShare
from fairlead.scheduling.model.snapshot import Job, NodeTaint, Queue, Snapshot, SnapshotNode, Task

Party = Literal["user", "administrator", "time"]
GIB = 1 << 30
#: More weight than this is not tried.
MAX_WEIGHT = 10
#: Shapes of nodes, the most frequent first.
MAX_SHAPES = 3
_UNITS: dict[Resource, float] = {"gpu": 1, "cpu": 1000, "memory": GIB}
_POSITION: dict[Resource, int] = {"gpu": 0, "cpu": 1, "memory": 2}


class Family(NamedTuple):
    by: Party
    name: str
    space: Steps | Pick
    #: Not searched if another family of this name has an answer.
    is_fallback: bool = False


class WaitingWorkload(NamedTuple):
    """The workload that waits, and what it waits among."""

    snapshot: Snapshot
    workloads: SnapshotWorkloads
    key: str
    #: Workloads that the caller may suspend, by key.
    own: frozenset[str]
    #: As the scheduler divides them now.
    shares: tuple[FairShare, ...]

    @property
    def waiting(self) -> list[Job]:
        return [job for job in self.workloads.jobs[self.key] if is_waiting(job)]

    @property
    def tasks(self) -> list[Task]:
        return [task for job in self.waiting for task in job.tasks if task.status == "Pending"]

    @property
    def pools(self) -> tuple[str, ...]:
        return self.waiting[0].node_pools

    @property
    def is_large(self) -> bool:
        """Whether only the most telling changes are tried, so that an answer takes seconds."""
        return len(self.snapshot.jobs) > FEW_JOBS

    @property
    def nodes(self) -> list[SnapshotNode]:
        """Nodes of its pools, by name."""
        return sorted((node for node in self.snapshot.nodes if node.node_pool in self.pools), key=lambda n: n.name)


def families(question: WaitingWorkload) -> Iterator[Family]:
    """All of them, the cheapest and most telling first."""
    yield from _requests(question)
    yield from _workers(question)
    yield from _attributes(question)
    yield from _constraints(question)
    holding = _removals(question, question.own)
    yield Family("user", "suspend", Pick([*holding, *_waiting_removals(question, holding)]))
    yield from _nodes(question)
    yield from _shares(question)
    yield Family("time", "ends", Pick(_removals(question, question.workloads.holders())))


def _steps(by: Party, name: str, candidates: Iterable[Changes]) -> Iterator[Family]:
    chosen = tuple(candidates)
    if chosen:
        yield Family(by, name, Steps(chosen))


# What the user can do


def _requests(question: WaitingWorkload) -> Iterator[Family]:
    tasks = question.tasks

    def less(amount: Amount, values: Iterable[float]) -> Iterator[Family]:
        changes = ((SetRequest(workload=question.key, amount=amount, value=value),) for value in values)
        yield from _steps("user", amount, changes)

    gpus = max(task.gpu for task in tasks)
    yield from less("gpu", range(gpus - 1, 0, -1))
    portion = max((task.gpu_portion for task in tasks), default=0)
    if gpus == 1 and not portion:
        portion = 1
    tenths = ceil(round(portion * 10, 6)) - 1
    yield from less("gpuPortion", [tenth / 10 for tenth in range(tenths, 0, -1)])
    memory_mib = max(task.gpu_memory_mib for task in tasks)
    yield from less("gpuMemoryMib", _below(memory_mib, 1024))
    cpu = max(task.cpu_milli for task in tasks)
    yield from less("cpuMilli", _below(cpu, 1000 if cpu > 1000 else 100))
    yield from less("memoryBytes", _below(max(task.memory_bytes for task in tasks), GIB))


def _below(value: int, unit: int) -> list[int]:
    """Whole units below a value, the largest first, but not zero."""
    return [count * unit for count in range(ceil(value / unit) - 1, 0, -1)]


def _workers(question: WaitingWorkload) -> Iterator[Family]:
    job = question.waiting[0]
    sizes: dict[str, int] = {}
    for task in job.tasks:
        sizes[task.pod_set] = sizes.get(task.pod_set, 0) + 1
    for pod_set, size in sorted(sizes.items()):
        changes = (
            (SetWorkers(workload=question.key, pod_set=pod_set, value=value),) for value in range(size - 1, 0, -1)
        )
        yield from _steps("user", "workers", changes)


def _attributes(question: WaitingWorkload) -> Iterator[Family]:
    key, job = question.key, question.waiting[0]
    known = {queue.node_pool for queue in question.snapshot.queues if queue.name == job.queue}
    for pool in sorted(known - set(question.pools)):
        yield from _steps("user", "nodePool", [(SetNodePools(workload=key, node_pools=(pool,)),)])
    higher = sorted(PRIORITIES[name] for name in CURRENT_PRIORITIES if PRIORITIES[name] > job.priority)
    yield from _steps("user", "priority", [(SetPriority(workload=key, value=value),) for value in higher])
    if not job.preemptible:
        yield from _steps("user", "preemptible", [(SetPreemptible(workload=key, value=True),)])


def _constraints(question: WaitingWorkload) -> Iterator[Family]:
    constraints: dict[str, None] = {}
    for task in question.tasks:
        constraints |= dict.fromkeys(f"nodeSelector:{key}" for key in task.node_selector)
        constraints |= dict.fromkeys(["nodeAffinity"] if task.node_affinity else ())
        constraints |= dict.fromkeys(["podAffinity"] if task.pod_affinity else ())
        constraints |= dict.fromkeys(["podAntiAffinity"] if task.pod_anti_affinity else ())
        constraints |= dict.fromkeys(f"resource:{name}" for name in (*task.extended, *task.mig))
    if any(job.topology is not None and job.topology.required for job in question.waiting):
        constraints["requiredTopology"] = None
    for constraint in sorted(constraints):
        yield from _steps("user", "constraint", [(DropConstraint(workload=question.key, constraint=constraint),)])


def _removals(question: WaitingWorkload, keys: Iterable[str]) -> list[Change]:
    """Other workloads on nodes of its pools: least important first, then those that started last."""
    nodes = {node.name for node in question.nodes}
    jobs = question.workloads.jobs
    # A workload that has no pods yet is not in the snapshot.
    chosen = [key for key in keys if key != question.key and key in jobs and _is_on(jobs[key], nodes)]

    def order(key: str) -> tuple[int, float, str]:
        job = question.workloads.jobs[key][0]
        return (job.priority, -(job.last_start or 0), key)

    return [RemoveWorkload(workload=key) for key in sorted(chosen, key=order)]


def _waiting_removals(question: WaitingWorkload, holding: list[Change]) -> list[Change]:
    """Own workloads that only wait: they may be next in line for what others leave."""
    if question.is_large:
        return []
    jobs, pools = question.workloads.jobs, set(question.pools)
    waiting = (
        RemoveWorkload(workload=key)
        for key in sorted(question.own - {question.key})
        if any(is_waiting(job) and pools & set(job.node_pools) for job in jobs.get(key, ()))
    )
    return [removal for removal in waiting if removal not in holding]


def _is_on(jobs: Iterable[Job], nodes: set[str]) -> bool:
    return any(task.node in nodes for job in jobs for task in job.tasks)


# What an administrator can do


def _nodes(question: WaitingWorkload) -> Iterator[Family]:
    nodes = question.nodes
    cordoned = [SetNode(node=node.name, action="uncordon") for node in nodes if node.unschedulable]
    yield Family("administrator", "uncordon", Pick(cordoned))
    away = [SetNode(node=node.name, action="makeReady") for node in nodes if not node.ready]
    yield Family("administrator", "nodeReady", Pick(away))
    tainted = [
        SetNode(node=node.name, action="untaint", taint=taint.key)
        for node in nodes
        for taint in node.taints
        if taint.effect != "PreferNoSchedule" and not all(_tolerates(task, taint) for task in question.tasks)
    ]
    yield Family("administrator", "untaint", Pick(tainted))
    max_count = max(len(job.tasks) for job in question.waiting)
    if not question.is_large:
        # Others that wait may come first.
        max_count += sum(
            task.status == "Pending"
            for job in question.snapshot.jobs
            if job not in question.waiting and set(question.pools) & set(job.node_pools)
            for task in job.tasks
        )
    for like in _shapes(nodes, _labels(question)):
        changes = ((AddNodes(like=like, count=count),) for count in range(1, max_count + 1))
        yield from _steps("administrator", "addNodes", changes)


def _tolerates(task: Task, taint: NodeTaint) -> bool:
    return any(
        (not each.key or each.key == taint.key)
        and (each.operator == "Exists" or each.value == taint.value)
        and each.effect in ("", taint.effect)
        for each in task.tolerations
    )


def _labels(question: WaitingWorkload) -> frozenset[str]:
    """Node labels that make a difference to its pods."""
    tasks = question.tasks
    selected = {key for task in tasks for key in task.node_selector}
    required = {each.key for task in tasks for term in task.node_affinity for each in term}
    return frozenset(selected | required) - {HOSTNAME}


def _shapes(nodes: Iterable[SnapshotNode], telling: frozenset[str]) -> list[str]:
    """One node of each shape, by how many there are of it."""
    shapes: dict[object, list[str]] = {}
    for node in nodes:
        labels = frozenset((key, value) for key, value in node.labels.items() if key in telling)
        shape = (node.gpu, node.gpu_memory_mib, node.cpu_milli, node.memory_bytes, node.node_pool, labels, node.taints)
        shapes.setdefault(shape, []).append(node.name)
    ordered = sorted(shapes.values(), key=lambda names: (-len(names), names[0]))
    return [names[0] for names in ordered[:MAX_SHAPES]]


def _shares(question: WaitingWorkload) -> Iterator[Family]:
    """Quota, limit and weight of the project and of the departments above it; both quotas together at last."""
    pool = question.pools[0]
    queues = {queue.name: queue for queue in question.snapshot.queues if queue.node_pool == pool}
    path: list[Queue] = []
    name: str | None = question.waiting[0].queue
    while name is not None and name in queues:
        path.append(queues[name])
        name = queues[name].parent
    for resource in _requested(question.tasks):
        raised: list[list[Changes]] = []
        for queue in path:
            quotas = list(_raises(question, queue, "quota", resource))
            raised.append(quotas)
            yield from _steps("administrator", "quota", quotas)
            yield from _steps("administrator", "limit", _raises(question, queue, "limit", resource))
        if len([quotas for quotas in raised if quotas]) > 1:
            yield Family("administrator", "quota", Steps(tuple(_together(raised))), is_fallback=True)
    for queue in path:
        weight = queue.resources.gpu.over_quota_weight
        values = range(floor(weight) + 1, MAX_WEIGHT + 1)
        changes = (
            (SetShare(queue=queue.name, field="weight", value=float(value), node_pool=pool),) for value in values
        )
        yield from _steps("administrator", "weight", changes)


def _requested(tasks: Iterable[Task]) -> list[Resource]:
    amounts: dict[Resource, Callable[[Task], float]] = {
        "gpu": gpus_of,
        "cpu": lambda task: task.cpu_milli,
        "memory": lambda task: task.memory_bytes,
    }
    chosen = list(tasks)
    return [resource for resource, amount in amounts.items() if any(amount(task) for task in chosen)]


def _raises(question: WaitingWorkload, queue: Queue, field: ShareField, resource: Resource) -> Iterator[Changes]:
    """Whole units above the present value, up to what the queue requests in all."""
    current = getattr(getattr(queue.resources, resource), field)
    if current < 0:
        return
    share = next((s for s in question.shares if s.queue == queue.name and s.node_pool == queue.node_pool), None)
    requested = share.requested[_POSITION[resource]] if share is not None else 0
    unit = _UNITS[resource]
    for count in range(floor(current / unit) + 1, ceil(round(requested / unit, 6)) + 1):
        yield (
            SetShare(
                queue=queue.name, field=field, resource=resource, value=float(count * unit), node_pool=queue.node_pool
            ),
        )


def _together(raised: list[list[Changes]]) -> Iterator[Changes]:
    """One unit more for each, step by step."""
    longest = max(map(len, raised))
    for step in range(longest):
        yield tuple(changes for each in raised if each for changes in each[min(step, len(each) - 1)])
