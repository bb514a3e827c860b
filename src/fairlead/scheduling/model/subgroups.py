"""The tree of subgroups of a job: which member goes first, which tasks are tried next, whether it is ready."""

from __future__ import annotations

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveGroup, LiveJob, LivePodSet, LiveTask
from fairlead.scheduling.model.queues import NOTHING, Amounts

Member = LiveGroup | LivePodSet


def member_key(member: Member) -> tuple[int, int, float, str]:
    """Unsatisfied first; then required before optional; then the least filled; then by name."""
    if not member.satisfied:
        return (0, 0, 0, member.name)
    if isinstance(member, LivePodSet):
        threshold, filled = member.minimum, member.active
    else:
        threshold, filled = member.threshold, member.satisfied_members
    if threshold == 0:
        return (1, 1, filled, member.name)
    return (1, 0, filled / threshold, member.name)


def tasks_to_place(job: LiveJob, real: bool) -> list[LiveTask]:
    """The tasks of the next attempt: what completes the gang, or one task more of a complete one.

    In a simulation (`real` is false) virtually evicted tasks are tried again beside the pending ones.
    """
    key = "real" if real else "virtual"
    cached = job.cache.get(key)
    if cached is not None and cached[0] == job.version:
        return cached[1]  # type: ignore[return-value]  # the cache holds values of several types
    tasks = _collect(job.root, real)
    job.cache[key] = (job.version, tasks)
    return tasks


def _collect(group: LiveGroup, real: bool) -> list[LiveTask]:
    if len(group.pod_sets) == 1 and not group.groups:
        return _from_pod_set(group.pod_sets[0], real)
    members = sorted(group.members, key=member_key)
    if not group.satisfied:
        tasks: list[LiveTask] = []
        # A satisfied member among the first ones is skipped and yet uses up a place.
        for member in members[: group.threshold]:
            if not member.satisfied:
                tasks += _from_member(member, real)
        return tasks
    for member in members:
        tasks = _from_member(member, real)
        if tasks:
            return tasks
    return []


def _from_member(member: Member, real: bool) -> list[LiveTask]:
    return _from_pod_set(member, real) if isinstance(member, LivePodSet) else _collect(member, real)


def _from_pod_set(pod_set: LivePodSet, real: bool) -> list[LiveTask]:
    wanted = max(1, pod_set.minimum - pod_set.active)
    tasks: list[LiveTask] = []
    for task in pod_set.tasks:
        if task.status == st.PENDING or (not real and task.status == st.RELEASING and task.virtual):
            tasks.append(task)
            if len(tasks) == wanted:
                break
    return tasks


def next_request(job: LiveJob) -> Amounts:
    """What the next attempt of a job would add to its queue; this orders queues."""
    cached = job.cache.get("request")
    if cached is not None and cached[0] == job.version:
        return cached[1]  # type: ignore[return-value]  # the cache holds values of several types
    tasks = tasks_to_place(job, real=False)
    total = sum_requests(tasks)
    job.cache["request"] = (job.version, total)
    return total


def sum_requests(tasks: list[LiveTask]) -> Amounts:
    if not tasks:
        return NOTHING
    if len(tasks) == 1:
        return tasks[0].request
    cpu = memory = gpu = 0.0
    for task in tasks:
        cpu += task.request[0]
        memory += task.request[1]
        gpu += task.request[2]
    return (cpu, memory, gpu)


def is_ready(member: Member) -> bool:
    """Enough tasks exist that are not held back by a gate."""
    if isinstance(member, LivePodSet):
        return member.alive - member.gated >= member.minimum
    if not member.groups and len(member.pod_sets) == 1 and member.minimum is None:
        only = member.pod_sets[0]
        return only.alive - only.gated >= only.minimum
    return sum(is_ready(inner) for inner in member.members) >= member.threshold
