"""Which job next: a tree of heaps that mirrors the queues, best leaf by descent, best job in the leaf.

Queues are compared anew at every choice with their usage at that moment. The victims' heap of the solver uses the same
keys the other way round (see `victims`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from functools import cmp_to_key
from heapq import heappop, heappush

from fairlead.scheduling.model.live import Alike, LiveJob
from fairlead.scheduling.model.queues import INFINITE, NOTHING, Amounts, LiveQueue
from fairlead.scheduling.model.subgroups import next_request

#: No job has this in common with others.
_NONE: object = object()

JobKey = tuple[int, int, float, str]
QueueKey = tuple[bool, bool, int, bool, float, float, int]


def job_key(job: LiveJob) -> JobKey:
    """Higher priority; below its minimum, at it, above it; older; id."""
    return (-job.priority, job.elastic_state(), job.created, job.id)


def queue_key(queue: LiveQueue, request: Amounts, minus: Amounts, total: Amounts) -> QueueKey:
    """The order of queues; smaller goes first.

    1. not above its fair share in all of CPU, memory and GPU
    2. within its quota with the job that it would place next
    3. higher priority
    4. with that job, uses nothing of which its allocatable share is zero
    5. smaller dominant share with the job (in victims' heaps less what was already proposed: `minus`)
    6. smaller dominant share without it
    7. and 8. rank among its siblings, see `rank_siblings`
    """
    used_cpu, used_memory, used_gpu = queue.allocated
    cpu, memory, gpu = used_cpu + request[0], used_memory + request[1], used_gpu + request[2]
    fair, quota, share = queue.fair, queue.quota, queue.share
    above = fair[0] < used_cpu and fair[1] < used_memory and fair[2] < used_gpu
    within = cpu <= quota[0] and memory <= quota[1] and gpu <= quota[2]
    barred = (share[0] == 0 and cpu > 0) or (share[1] == 0 and memory > 0) or (share[2] == 0 and gpu > 0)
    without = dominant_share(used_cpu, used_memory, used_gpu, share, total)
    with_job = dominant_share(cpu - minus[0], memory - minus[1], gpu - minus[2], share, total)
    return (above, not within, -queue.priority, barred, with_job, without, queue.rank)


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


def rank_siblings(siblings: Sequence[LiveQueue]) -> None:
    """Steps 7 and 8: the smaller allocatable share in every resource; the older queue; the smaller name.

    Shares stay as they are for a cycle, so the rank among siblings does too.
    """
    for rank, queue in enumerate(_sorted_by_share(siblings)):
        queue.rank = rank
        if queue.children:
            rank_siblings(queue.children)


def _sorted_by_share(siblings: Sequence[LiveQueue]) -> list[LiveQueue]:
    """Shares that differ in one resource only are in order by themselves; otherwise each pair is compared."""
    if len({queue.share[:2] for queue in siblings}) == 1:
        return sorted(siblings, key=lambda queue: (queue.share[2], queue.spec.created, queue.name))
    return sorted(siblings, key=cmp_to_key(_compare))


def _compare(left: LiveQueue, right: LiveQueue) -> int:
    smaller = all(a <= b for a, b in zip(left.share, right.share, strict=True))
    larger = all(a >= b for a, b in zip(left.share, right.share, strict=True))
    if smaller != larger:
        return -1 if smaller else 1
    return -1 if (left.spec.created, left.name) < (right.spec.created, right.name) else 1


class Branch:
    """A queue in the tree of heaps; a leaf holds jobs, sorted, of which those from `head` on are still there."""

    __slots__ = ("children", "entries", "head", "heap", "key_for", "parent", "queue", "top", "version")

    def __init__(self, queue: LiveQueue | None, parent: Branch | None) -> None:
        self.queue = queue
        self.parent = parent
        self.children = 0
        self.entries: list[tuple[JobKey, LiveJob]] = []
        self.head = 0
        #: Children by key; entries of an older version are stale.
        self.heap: list[tuple[QueueKey, int, Branch]] = []
        self.version = 0
        #: The best job below.
        self.top: LiveJob | None = None
        #: Usage and request for which the entry in the parent's heap was made.
        self.key_for: tuple[int, Amounts] | None = None

    def best(self) -> Branch | None:
        while self.heap:
            _, version, child = self.heap[0]
            if child.version == version:
                return child
            heappop(self.heap)
        return None


class JobOrder:
    """Jobs of a session in the order in which actions take them.

    A queue is placed anew among its siblings when its usage or its best job changed, and only then.
    """

    def __init__(self, total: Amounts, changed: Sequence[LiveQueue]) -> None:
        self.total = total
        #: Grows with every change of a queue's usage.
        self.changed = changed
        self.read = len(changed)
        self.root = Branch(None, None)
        self.branches: dict[str, Branch] = {}

    def fill(self, leaves: Iterable[Sequence[tuple[JobKey, LiveJob]]], depth: int | None = None) -> None:
        """Entries are given sorted, one list per leaf."""
        for entries in leaves:
            if entries:
                branch = self._branch(entries[0][1].queue)
                branch.entries = list(entries if depth is None else entries[:depth])
                self._place(branch)

    def _branch(self, queue: LiveQueue) -> Branch:
        branch = self.branches.get(queue.name)
        if branch is None:
            parent = self.root if queue.parent is None else self._branch(queue.parent)
            parent.children += 1
            branch = self.branches[queue.name] = Branch(queue, parent)
        return branch

    def push(self, job: LiveJob) -> None:
        branch = self._branch(job.queue)
        insort(branch.entries, (job_key(job), job), lo=branch.head, key=_first)
        self._place(branch)

    def pop(self, settled: Callable[[LiveJob], bool], skip_alike: bool) -> LiveJob | None:
        """The next job that is not settled. Settled ones change nothing, so a leaf gives up a run of them at once.

        A run ends before a job that requests more than its first one: other queues may go before such a job.
        `skip_alike`: jobs alike to one that is settled need not be asked about.
        """
        while (branch := self._best_leaf()) is not None:
            entries, head = branch.entries, branch.head
            count, alike = len(entries), _NONE
            first, same = next_request(entries[head][1]), None
            while head < count:
                next_job = entries[head][1]
                if next_job.alike is not alike:
                    lone = next_job.tasks[0].request_class if len(next_job.tasks) == 1 else None
                    if lone is None or lone is not same:
                        if not _is_within(next_request(next_job), first):
                            break
                        same = lone
                    if not settled(next_job):
                        break
                    alike = next_job.alike if skip_alike and isinstance(next_job.alike, Alike) else _NONE
                head += 1
            job = entries[head][1] if head < count and head == branch.head else None
            branch.head = head if job is None else head + 1
            self._place(branch)
            if job is not None:
                return job
        return None

    def _best_leaf(self) -> Branch | None:
        self._catch_up()
        branch = self.root
        while branch.children:
            child = branch.best()
            if child is None:
                return None
            branch = child
        return None if branch is self.root else branch

    def _catch_up(self) -> None:
        if self.read == len(self.changed):
            return
        names = {queue.name for queue in self.changed[self.read :]}
        self.read = len(self.changed)
        for name in names:
            branch = self.branches.get(name)
            if branch is not None and not branch.children:
                self._place(branch)

    def _place(self, branch: Branch) -> None:
        """Put a branch and all above it where they belong now."""
        current: Branch = branch
        while current.queue is not None and current.parent is not None:
            if current.children:
                best = current.best()
                current.top = best.top if best is not None else None
            else:
                current.top = current.entries[current.head][1] if current.head < len(current.entries) else None
            if current.top is None:
                current.version += 1
                current.key_for = None
            else:
                request = next_request(current.top)
                if current.key_for != (current.queue.stamp, request):
                    current.version += 1
                    current.key_for = (current.queue.stamp, request)
                    key = queue_key(current.queue, request, NOTHING, self.total)
                    heappush(current.parent.heap, (key, current.version, current))
            current = current.parent


def _is_within(request: Amounts, bound: Amounts) -> bool:
    return request[0] <= bound[0] and request[1] <= bound[1] and request[2] <= bound[2]


def _first(entry: tuple[JobKey, LiveJob]) -> JobKey:
    return entry[0]
