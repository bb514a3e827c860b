"""Numbers the GPUs of pods that a cluster placed. Pure.

Called by `loop/schedule.py`. A cluster reports how many GPUs a pod has and which pods share one, but not the numbers
of whole GPUs. So these numbers only keep different GPUs apart, and are the same for the same pods.
"""

from collections import defaultdict
from collections.abc import Collection
from itertools import count, islice

import msgspec

from fairlead.scheduling.model.snapshot import Job, Snapshot, SnapshotNode, Task

#: Portions are decimal fractions: those of a full GPU may add up to a little more than one.
_SLACK = 0.001


def number_devices(snapshot: Snapshot, ids: Collection[str]) -> Snapshot:
    """The snapshot with devices for these tasks; two tasks have the same device only if they share a GPU."""
    nodes = {node.name: node for node in snapshot.nodes}
    tasks_by_node: dict[str, list[Task]] = defaultdict(list)
    for job in snapshot.jobs:
        for task in job.tasks:
            if task.id in ids and task.devices and task.node is not None:
                tasks_by_node[task.node].append(task)
    if not tasks_by_node:
        return snapshot
    numbered: dict[str, Task] = {}
    for name, tasks in tasks_by_node.items():
        numbered |= _number_node(name, nodes.get(name), sorted(tasks, key=lambda task: task.id))
    jobs = tuple(_with_tasks(job, numbered) for job in snapshot.jobs)
    changed: Snapshot = msgspec.structs.replace(snapshot, jobs=jobs)
    return changed


def _with_tasks(job: Job, numbered: dict[str, Task]) -> Job:
    if not any(task.id in numbered for task in job.tasks):
        return job
    changed: Job = msgspec.structs.replace(job, tasks=tuple(numbered.get(task.id, task) for task in job.tasks))
    return changed


def _number_node(name: str, node: SnapshotNode | None, tasks: list[Task]) -> dict[str, Task]:
    """Shared GPUs first, then the whole ones, from 0 on."""
    groups = _assign_shared_gpus(name, node, [task for task in tasks if not task.gpu])
    devices = {
        group: number for number, group in enumerate(dict.fromkeys(each for of in groups.values() for each in of))
    }
    following = len(devices)
    numbered: dict[str, Task] = {}
    for task in tasks:
        if task.gpu:
            own: tuple[int, ...] = tuple(range(following, following + task.gpu))
            following += task.gpu
        else:
            own = tuple(devices[group] for group in groups[task.id])
        numbered[task.id] = msgspec.structs.replace(task, devices=own, gpu_groups=groups.get(task.id, ()))
    return numbered


def _assign_shared_gpus(name: str, node: SnapshotNode | None, tasks: list[Task]) -> dict[str, tuple[str, ...]]:
    """The shared GPUs of each task: those that the cluster named, or else the first with room for its part."""
    known = {task.id: task.gpu_groups for task in tasks if len(task.gpu_groups) == task.gpu_devices}
    used: dict[str, float] = {}
    for task in tasks:
        for group in known.get(task.id, ()):
            used[group] = used.get(group, 0) + _part(task, node)
    groups = dict(known)
    for task in tasks:
        if task.id in known:
            continue
        part = _part(task, node)
        chosen = [group for group, used_part in used.items() if used_part + part <= 1 + _SLACK][: task.gpu_devices]
        unnamed = (group for number in count() if (group := f"{name}-shared-{number}") not in used)
        chosen += islice(unnamed, task.gpu_devices - len(chosen))
        for group in chosen:
            used[group] = used.get(group, 0) + part
        groups[task.id] = tuple(chosen)
    return groups


def _part(task: Task, node: SnapshotNode | None) -> float:
    """The part of each of its GPUs that a task has; 1 if the GPU's memory is not known."""
    if not task.gpu_memory_mib:
        return task.gpu_portion
    return task.gpu_memory_mib / node.gpu_memory_mib if node is not None and node.gpu_memory_mib else 1.0
