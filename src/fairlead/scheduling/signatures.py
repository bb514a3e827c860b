"""Jobs that look alike fail alike: after a failed search, jobs of the same signature that are not easier are skipped.

The signature covers what constrains the tasks without a place, not how much they ask for; that is compared.
"""

from __future__ import annotations

from fairlead.scheduling import status as st
from fairlead.scheduling.live import LiveGroup, LiveJob, LivePodSet, LiveTask

Size = tuple[float, ...]


def signature(job: LiveJob) -> object:
    return (job.priority, tuple(sorted(_pod_set_signature(pod_set) for pod_set in job.pod_sets.values())))


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
        key = _constraints(task)
        constraints[key] = constraints.get(key, 0) + 1
    return f"{levels}{sorted(constraints.items())}"


def _constraints(task: LiveTask) -> str:
    request_class = task.request_class
    if request_class is None:
        raise LookupError(f"task {task.id} was not measured")
    if request_class.constraints is None:
        spec = task.spec
        request_class.constraints = repr(
            (
                sorted(spec.node_selector.items()),
                spec.node_affinity,
                spec.preferred_node_affinity,
                spec.pod_affinity,
                spec.pod_anti_affinity,
                spec.tolerations,
            )
        )
    return request_class.constraints


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

    def is_hopeless(self, job: LiveJob) -> bool:
        """Whether a job that is not harder than this one has failed."""
        known = self.smallest.get(signature(job))
        if known is None:
            return False
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
