"""Views of a job with only some of its tasks: what is probed by the solver, and what is left of a victim."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveGroup, LiveJob, LivePodSet, LiveTask


class PartialJob(LiveJob):
    """Shares queue, tasks and rank with its job; its tree holds only the given tasks and is counted once."""

    __slots__ = ("whole",)

    def __init__(self, job: LiveJob, tasks: Sequence[LiveTask], shrink: bool) -> None:
        self.whole = job
        self.spec = job.spec
        self.id = job.id
        self.queue = job.queue
        self.priority = job.priority
        self.preemptible = job.preemptible
        self.created = job.created
        self.last_start = job.last_start
        self.stale_since = job.stale_since
        self.tasks = list(tasks)
        self.version = 0
        self.pending = sum(task.status == st.PENDING for task in tasks)
        self.cache = {}
        self.alike = None
        by_pod_set: dict[str, list[LiveTask]] = {}
        for task in tasks:
            by_pod_set.setdefault(task.pod_set.name, []).append(task)
        self._root = _copy(job.root, by_pod_set, shrink)
        self.pod_sets = self._root.all_pod_sets()


def _copy(group: LiveGroup, tasks: dict[str, list[LiveTask]], shrink: bool) -> LiveGroup:
    """The same tree over fewer tasks. A shrunk one demands no more members than it has tasks for."""
    copied = LiveGroup(group.name, group.minimum, group.topology)
    for inner in group.groups:
        child = _copy(inner, tasks, shrink)
        child.parent = copied
        copied.groups.append(child)
    for pod_set in group.pod_sets:
        own = tasks.get(pod_set.name, [])
        minimum = min(pod_set.minimum, len(own)) if shrink and own else pod_set.minimum
        leaf = LivePodSet(pod_set.name, minimum, pod_set.topology)
        leaf.parent = copied
        leaf.tasks = sorted(own, key=lambda task: task.order) if len(own) > 1 else own
        for task in own:
            leaf.count(task.status, 1)
        copied.pod_sets.append(leaf)
    if shrink:
        filled = sum(_has_tasks(child) for child in copied.groups) + sum(bool(leaf.tasks) for leaf in copied.pod_sets)
        copied.minimum = min(copied.threshold, filled)
    return copied


def _has_tasks(group: LiveGroup) -> bool:
    return any(pod_set.tasks for pod_set in group.all_pod_sets())
