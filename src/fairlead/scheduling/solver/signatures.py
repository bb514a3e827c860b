"""Skips jobs that must fail: after a failed search, jobs with the same signature that are not easier are not tried.

The signature is the constraints of the tasks without a place. Their requested amounts are compared separately.
"""

from __future__ import annotations

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveGroup, LiveJob, LivePodSet
from fairlead.scheduling.model.requests import RequestClass

Size = tuple[float, ...]


def signature(job: LiveJob) -> object:
    cached = job.cache.get("signature")
    if cached is not None and cached[0] == job.version:
        return cached[1]
    root = job.root
    if len(job.tasks) == 1 and root.topology is None and job.pod_sets[0].topology is None:
        signature: object = (job.priority, job.tasks[0].request_class.constraints)
    else:
        signature = (job.priority, tuple(sorted(_pod_set_signature(pod_set) for pod_set in job.pod_sets)))
    job.cache["signature"] = (job.version, signature)
    return signature


def _pod_set_signature(pod_set: LivePodSet) -> str:
    waiting = [task for task in pod_set.tasks if not st.ACTIVE[task.status]]
    if not waiting:
        return ""
    levels = [repr(pod_set.topology)]
    parent: LiveGroup | None = pod_set.parent
    while parent is not None:
        levels.append(repr(parent.topology))
        parent = parent.parent
    constraints: dict[str, int] = {}
    for task in waiting:
        key = task.request_class.constraints
        constraints[key] = constraints.get(key, 0) + 1
    return f"{levels}{sorted(constraints.items())}"


def _sizes(job: LiveJob) -> list[Size]:
    sizes = []
    for task in job.tasks:
        if task.status == st.PENDING:
            extended = sum(amount for _, amount in task.ext)
            sizes.append((task.request[2], task.cpu, task.memory, task.gpu_memory * task.devices, extended))
    return sorted(sizes)


def _fits_in(left: Size, right: Size) -> bool:
    return all(a <= b for a, b in zip(left, right, strict=True))


class Failures:
    """The smallest job that failed, per signature."""

    def __init__(self) -> None:
        self.smallest: dict[object, list[Size]] = {}
        #: Jobs of one task that cannot succeed: signature and request class. Entries are never removed.
        self.hopeless: set[tuple[object, RequestClass]] = set()

    def is_hopeless(self, job: LiveJob) -> bool:
        """Whether a job that is not harder than this one has failed."""
        key = signature(job)
        known = self.smallest.get(key)
        if known is None:
            return False
        if len(job.tasks) > 1:
            return self._is_hopeless(job, known)
        pair = (key, job.tasks[0].request_class)
        if pair in self.hopeless:
            return True
        if self._is_hopeless(job, known):
            self.hopeless.add(pair)
            return True
        return False

    def _is_hopeless(self, job: LiveJob, known: list[Size]) -> bool:
        own = _sizes(job)
        if not own or not known:
            return True
        if len(known) > len(own):
            return False
        easier = (a != b and _fits_in(a, b) for a, b in zip(own, known, strict=False))
        return not any(easier)

    def add(self, job: LiveJob) -> None:
        key, own = signature(job), _sizes(job)
        known = self.smallest.get(key)
        if known is not None:
            smaller = own and known and len(own) <= len(known)
            if not smaller or not all(_fits_in(a, b) for a, b in zip(own, known, strict=False)):
                return
        self.smallest[key] = own
