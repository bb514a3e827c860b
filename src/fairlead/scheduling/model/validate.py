"""Finding what contradicts itself in a snapshot. All contradictions are told at once.

Orphaned queues and jobs in queues that do not exist are no contradictions: the cycle leaves them out with a notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.snapshot import (
    DEFAULT_POD_SET,
    Job,
    JobPodSet,
    Queue,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
)


class SnapshotError(ValueError):
    """A snapshot that cannot be decided on; `problems` are all that were found."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("The snapshot contradicts itself: " + " ".join(self.problems))


def check(snapshot: Snapshot) -> None:
    """Raise SnapshotError if the snapshot contradicts itself."""
    problems = contradictions(snapshot)
    if problems:
        raise SnapshotError(problems)


def contradictions(snapshot: Snapshot) -> list[str]:
    problems = [
        *_twice("Node", (node.name for node in snapshot.nodes)),
        *_twice("Job", (job.id for job in snapshot.jobs)),
        *_twice("Task", (task.id for job in snapshot.jobs for task in job.tasks)),
        *_twice("Topology", (topology.name for topology in snapshot.topologies)),
        *queue_problems(snapshot.queues),
        *(problem for node in snapshot.nodes for problem in _bad_node(node)),
    ]
    nodes = {node.name: node for node in snapshot.nodes}
    for job in snapshot.jobs:
        problems += _bad_job(job, nodes)
    problems += _overbooked_devices(snapshot, nodes)
    return problems


def queue_problems(queues: Sequence[Queue]) -> list[str]:
    """What contradicts itself in queues alone."""
    return [
        *_twice("Queue", (f"{queue.name} in node pool {queue.node_pool}" for queue in queues)),
        *_cycles(queues),
        *(problem for queue in queues for problem in _bad_shares(queue)),
    ]


def _twice(what: str, names: Iterable[str]) -> list[str]:
    return [f"{what} {name} occurs {count} times." for name, count in Counter(names).items() if count > 1]


def _cycles(queues: Iterable[Queue]) -> list[str]:
    parents = {(queue.node_pool, queue.name): queue.parent for queue in queues}
    problems = []
    for pool, name in parents:
        seen = {name}
        current = parents[pool, name]
        while current is not None and (pool, current) in parents:
            if current == name:
                problems.append(f"Queue {name} in node pool {pool} is its own ancestor.")
                break
            if current in seen:
                break
            seen.add(current)
            current = parents[pool, current]
    return problems


def _bad_shares(queue: Queue) -> list[str]:
    problems = []
    for name in ("gpu", "cpu", "memory"):
        share = getattr(queue.resources, name)
        for field in ("quota", "limit", "over_quota_weight"):
            amount = getattr(share, field)
            if amount < 0 and (amount != -1 or field == "over_quota_weight"):
                problems.append(
                    f"Queue {queue.name}: {field} of {name} is {amount}; -1 is unlimited, no other is negative."
                )
    return problems


def _bad_node(node: SnapshotNode) -> list[str]:
    amounts = {"cpuMilli": node.cpu_milli, "memoryBytes": node.memory_bytes, "pods": node.pods, "gpu": node.gpu}
    amounts.update(node.extended)
    amounts.update(node.mig)
    return [f"Node {node.name} has {amount} of {name}." for name, amount in amounts.items() if amount < 0]


def _bad_job(job: Job, nodes: dict[str, SnapshotNode]) -> list[str]:
    sets = list(_pod_sets(job.groups, job.pod_sets)) or [
        JobPodSet(name=DEFAULT_POD_SET, min_available=job.min_available)
    ]
    names = Counter(pod_set.name for pod_set in sets)
    if job.groups and not any(True for _ in _pod_sets(job.groups, job.pod_sets)):
        return [f"Job {job.id} has groups and no pod set in any of them."]
    problems = [f"Job {job.id} has {count} pod sets named {name}." for name, count in names.items() if count > 1]
    problems += [
        f"Pod set {s.name} of job {job.id} needs {s.min_available} tasks." for s in sets if s.min_available < 0
    ]
    for task in job.tasks:
        if task.pod_set not in names:
            problems.append(f"Task {task.id} names pod set {task.pod_set}, which job {job.id} does not have.")
        problems += _bad_request(task)
        problems += _bad_place(task, nodes)
    return problems


def _pod_sets(groups: Iterable[SubGroup], pod_sets: Iterable[JobPodSet]) -> Iterable[JobPodSet]:
    yield from pod_sets
    for group in groups:
        yield from _pod_sets(group.groups, group.pod_sets)


def _bad_request(task: Task) -> list[str]:
    problems = []
    if not 0 <= task.gpu_portion < 1:
        problems.append(f"Task {task.id} asks for a portion of {task.gpu_portion}; it must be below 1.")
    kinds = [task.gpu > 0, task.gpu_portion > 0, task.gpu_memory_mib > 0, bool(task.mig)]
    if sum(kinds) > 1:
        problems.append(f"Task {task.id} asks for GPUs in more than one way.")
    if min(task.cpu_milli, task.memory_bytes, task.gpu, task.gpu_memory_mib) < 0 or task.gpu_devices < 1:
        problems.append(f"Task {task.id} asks for a negative amount.")
    return problems


def _bad_place(task: Task, nodes: dict[str, SnapshotNode]) -> list[str]:
    used = bool(st.USED[st.BY_NAME[task.status]])
    if task.node is None:
        return [f"Task {task.id} is {task.status} without a node."] if used else []
    if task.node not in nodes:
        if task.status in ("Succeeded", "Failed", "Deleted"):
            return []
        return [f"Task {task.id} is on node {task.node}, which does not exist."]
    problems = []
    shares = task.gpu_portion > 0 or task.gpu_memory_mib > 0
    if used and shares and len(task.gpu_groups) != task.gpu_devices:
        problems.append(f"Task {task.id} has {len(task.gpu_groups)} GPU groups for {task.gpu_devices} shared devices.")
    if used and len(set(task.devices)) < len(task.devices):
        problems.append(f"Task {task.id} holds one device twice: {', '.join(map(str, task.devices))}.")
    if used and task.devices and len(task.devices) != (task.gpu or task.gpu_devices):
        problems.append(
            f"Task {task.id} holds {len(task.devices)} devices for {task.gpu or task.gpu_devices} asked for."
        )
    problems += [
        f"Task {task.id} holds device {device}, which node {task.node} does not have."
        for device in task.devices
        if not 0 <= device < max(1, nodes[task.node].gpu)
    ]
    return problems


def _overbooked_devices(snapshot: Snapshot, nodes: dict[str, SnapshotNode]) -> list[str]:
    """Two holders of one device, unless both share it in the same group; portions of a group above one device."""
    holders: dict[tuple[str, int], dict[str, str]] = {}
    sums: dict[tuple[str, str], float] = {}
    for task in _placed(snapshot):
        node = task.node or ""
        for position, device in enumerate(task.devices):
            group = task.gpu_groups[position] if position < len(task.gpu_groups) else f"task {task.id}"
            holders.setdefault((node, device), {}).setdefault(group, task.id)
        for group in task.gpu_groups:
            sums[node, group] = sums.get((node, group), 0) + _part_of_device(task, nodes.get(node))
    problems = [
        f"Device {device} of node {node} is held by {' and '.join(sorted(by.values()))}, which do not share it."
        for (node, device), by in sorted(holders.items())
        if len(by) > 1
    ]
    problems += [
        f"GPU group {group} on node {node} is given out {total:.2f} times."
        for (node, group), total in sorted(sums.items())
        if total > 1.001
    ]
    return problems


def _part_of_device(task: Task, node: SnapshotNode | None) -> float:
    if node is not None and task.gpu_memory_mib and node.gpu_memory_mib:
        return task.gpu_memory_mib / node.gpu_memory_mib
    return task.gpu_portion


def _placed(snapshot: Snapshot) -> list[Task]:
    return [
        task
        for job in snapshot.jobs
        for task in job.tasks
        if st.USED[st.BY_NAME[task.status]] and task.status != "Pipelined" and task.node is not None
    ]
