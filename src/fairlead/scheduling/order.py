"""Which job next: a tree of heaps that mirrors the queues, best leaf by descent, best job in the leaf.

Queues are compared anew at every choice with their usage at that moment. The victims' heap of the solver uses the same
keys the other way round (see `victims`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence

from fairlead.scheduling.live import INFINITE, NOTHING, Amounts, LiveJob, LiveQueue
from fairlead.scheduling.subgroups import next_request

JobKey = tuple[int, int, float, str]
QueueKey = tuple[bool, bool, int, bool, float, float]


def job_key(job: LiveJob) -> JobKey:
    """Higher priority; below its minimum, at it, above it; older; id."""
    return (-job.priority, job.elastic_state(), job.created, job.id)


def queue_key(queue: LiveQueue, request: Amounts, minus: Amounts, total: Amounts) -> QueueKey:
    """The first six steps of the order of queues; smaller goes first.

    1. not above its fair share in all of CPU, memory and GPU
    2. within its quota with the job that it would place next
    3. higher priority
    4. with that job, uses nothing of which its allocatable share is zero
    5. smaller dominant share with the job (in victims' heaps less what was already proposed: `minus`)
    6. smaller dominant share without it
    Steps 7 and 8 are in `is_before`: they are no total order and cannot be part of a key.
    """
    used_cpu, used_memory, used_gpu = queue.allocated
    cpu, memory, gpu = used_cpu + request[0], used_memory + request[1], used_gpu + request[2]
    fair, quota, share = queue.fair, queue.quota, queue.share
    above = fair[0] < used_cpu and fair[1] < used_memory and fair[2] < used_gpu
    within = cpu <= quota[0] and memory <= quota[1] and gpu <= quota[2]
    barred = (share[0] == 0 and cpu > 0) or (share[1] == 0 and memory > 0) or (share[2] == 0 and gpu > 0)
    without = dominant_share(used_cpu, used_memory, used_gpu, share, total)
    with_job = dominant_share(cpu - minus[0], memory - minus[1], gpu - minus[2], share, total)
    return (above, not within, -queue.priority, barred, with_job, without)


def dominant_share(cpu: float, memory: float, gpu: float, share: Amounts, total: Amounts) -> float:
    """Largest part of an allocatable share in use; unlimited is measured by the cluster, nothing by a large factor."""
    dominant = 0.0
    for used, allowed, whole, unit in (
        (cpu, share[0], total[0], 1),
        (memory, share[1], total[1], 1),
        (gpu, share[2], total[2], 1000),
    ):
        if allowed == INFINITE:
            allowed = whole
        part = used / allowed if allowed else used / unit * 1000
        if part > dominant:
            dominant = part
    return dominant


def is_before(left: LiveQueue, right: LiveQueue) -> bool:
    """Steps 7 and 8: the smaller allocatable share in every resource; the older queue; the smaller name."""
    smaller = all(a <= b for a, b in zip(left.share, right.share, strict=True))
    larger = all(a >= b for a, b in zip(left.share, right.share, strict=True))
    if smaller != larger:
        return smaller
    return (left.spec.created, left.name) < (right.spec.created, right.name)


class Branch:
    """A queue in the tree of heaps; a leaf holds jobs, sorted, of which those from `head` on are still there."""

    __slots__ = ("children", "entries", "head", "key", "key_for", "parent", "queue", "top")

    def __init__(self, queue: LiveQueue | None, parent: Branch | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: list[Branch] = []
        self.entries: list[tuple[JobKey, LiveJob]] = []
        self.head = 0
        #: The best job below, known after a descent.
        self.top: LiveJob | None = None
        self.key: QueueKey | None = None
        self.key_for: tuple[int, str, int] | None = None


class JobOrder:
    """Jobs of a session in the order in which actions take them."""

    def __init__(self, total: Amounts, request: Callable[[LiveJob], Amounts] = next_request) -> None:
        self.total = total
        self.request = request
        self.root = Branch(None, None)
        self.branches: dict[str, Branch] = {}

    def fill(self, jobs: Iterable[LiveJob], depth: int | None = None) -> None:
        by_leaf: dict[str, list[tuple[JobKey, LiveJob]]] = {}
        for job in jobs:
            by_leaf.setdefault(job.queue.name, []).append((job_key(job), job))
        for entries in by_leaf.values():
            entries.sort(key=_first)
            branch = self._branch(entries[0][1].queue)
            branch.entries = entries if depth is None else entries[:depth]

    def _branch(self, queue: LiveQueue) -> Branch:
        found = self.branches.get(queue.name)
        if found is None:
            parent = self.root if queue.parent is None else self._branch(queue.parent)
            found = self.branches[queue.name] = Branch(queue, parent)
            parent.children.append(found)
        return found

    def push(self, job: LiveJob) -> None:
        branch = self._branch(job.queue)
        insort(branch.entries, (job_key(job), job), lo=branch.head, key=_first)

    def pop(self) -> LiveJob | None:
        leaf = self._descend(self.root)
        if leaf is None:
            return None
        job = leaf.entries[leaf.head][1]
        leaf.head += 1
        return job

    def _descend(self, branch: Branch) -> Branch | None:
        """The leaf with the best job below a branch; on the way up each branch learns its best job."""
        if not branch.children:
            if branch.head >= len(branch.entries):
                branch.top = None
                return None
            branch.top = branch.entries[branch.head][1]
            return branch
        best: Branch | None = None
        best_leaf: Branch | None = None
        for child in branch.children:
            leaf = self._descend(child)
            if leaf is not None and (best is None or self._goes_before(child, best)):
                best, best_leaf = child, leaf
        branch.top = best.top if best is not None else None
        return best_leaf

    def _goes_before(self, left: Branch, right: Branch) -> bool:
        left_key, right_key = self._key(left), self._key(right)
        if left_key != right_key:
            return left_key < right_key
        return is_before(_queue(left), _queue(right))

    def _key(self, branch: Branch) -> QueueKey:
        queue, job = _queue(branch), branch.top
        if job is None:
            raise LookupError(f"queue {queue.name} has no job")
        key_for = (queue.stamp, job.id, job.version)
        if branch.key is None or branch.key_for != key_for:
            branch.key = queue_key(queue, self.request(job), NOTHING, self.total)
            branch.key_for = key_for
        return branch.key


def _first(entry: tuple[JobKey, LiveJob]) -> JobKey:
    return entry[0]


def _queue(branch: Branch) -> LiveQueue:
    if branch.queue is None:
        raise LookupError("the root of the tree is no queue")
    return branch.queue


def by_creation(queues: Sequence[LiveQueue]) -> list[LiveQueue]:
    """The order without fairness: older first, then by name."""
    return sorted(queues, key=lambda queue: (queue.spec.created, queue.name))
