"""The victims' heap: who is evicted first. It is the order of queues and jobs reversed, one unit at a time.

An entry is a job or the rest of one. While a job has more active tasks than its minimum, a unit is one surplus task;
then a surplus subgroup; at last the whole job.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

from fairlead.scheduling.fairness.job_index import Entry, JobIndex
from fairlead.scheduling.fairness.job_order import QueueKey, job_key, queue_key
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveGroup, LiveJob, LivePodSet, LiveTask
from fairlead.scheduling.model.queues import NOTHING, Amounts, LiveQueue
from fairlead.scheduling.model.subgroups import Member, member_key
from fairlead.scheduling.solver.partial_job import PartialJob


def active_tasks(job: LiveJob) -> list[LiveTask]:
    """Active tasks of all pod sets, in task order inside each."""
    return [task for pod_set in job.root.all_pod_sets() for task in pod_set.tasks if st.ACTIVE[task.status]]


def next_unit(job: LiveJob) -> list[LiveTask]:
    """What is evicted of a job first: surplus before core, last task first."""
    surplus = _surplus(job.root)
    return surplus or [task for pod_set in job.root.all_pod_sets() for task in _active_reversed(pod_set)]


def _surplus(group: LiveGroup) -> list[LiveTask]:
    satisfied = group.satisfied_members
    if satisfied == 0:
        return []
    members = sorted(group.members, key=member_key, reverse=True)
    if _has_surplus(group):
        for member in members:
            if isinstance(member, LiveGroup):
                victims = _surplus(member)
            else:
                victims = _active_reversed(member)[:1] if member.active > member.minimum else []
            if victims:
                return victims
    if satisfied > group.threshold:
        for member in members:
            victims = _all_active(member)
            if victims:
                return victims
    return []


def _has_surplus(member: Member) -> bool:
    if isinstance(member, LivePodSet):
        return member.active > member.minimum
    return member.satisfied_members > member.threshold or any(_has_surplus(inner) for inner in member.members)


def _all_active(member: Member) -> list[LiveTask]:
    pod_sets = [member] if isinstance(member, LivePodSet) else member.all_pod_sets()
    return [task for pod_set in pod_sets for task in _active_reversed(pod_set)]


def _active_reversed(pod_set: LivePodSet) -> list[LiveTask]:
    return [task for task in reversed(pod_set.tasks) if st.ACTIVE[task.status]]


def held(job: LiveJob) -> Amounts:
    """What the allocated tasks of an entry count in its queue; pipelined ones are not in it."""
    cached = job.cache.get("held")
    if cached is not None and cached[0] == job.version:
        return cached[1]  # type: ignore[return-value]  # the cache holds values of several types
    cpu = memory = gpu = 0.0
    for task in job.tasks:
        if st.HELD[task.status] and task.charge is not None:
            cpu += task.charge[0]
            memory += task.charge[1]
            gpu += task.charge[2]
    job.cache["held"] = (job.version, (cpu, memory, gpu))
    return (cpu, memory, gpu)


class _Branch:
    __slots__ = (
        "accept",
        "at",
        "base",
        "children",
        "given",
        "is_known",
        "key",
        "parent",
        "pushed",
        "queue",
        "top_leaf",
    )

    def __init__(self, queue: LiveQueue | None, parent: _Branch | None = None) -> None:
        self.queue = queue
        self.parent = parent
        self.children: list[_Branch] = []
        self.base: Sequence[Entry] = ()
        #: Entries of the index from this position on were popped.
        self.at = 0
        self.pushed: list[Entry] = []
        self.accept: Callable[[LiveJob], bool] | None = None
        #: Resources of the entries popped from this leaf so far.
        self.given: Amounts = NOTHING
        self.top_leaf: _Branch | None = None
        #: For the best leaf below; None until it is asked for.
        self.key: QueueKey | None = None
        #: Whether the best leaf below is known: nothing below was popped or pushed since it was looked for.
        self.is_known = False

    def changed(self) -> None:
        """Its entries have changed: forget what was known here and above."""
        branch: _Branch | None = self
        while branch is not None:
            branch.is_known, branch.key = False, None
            branch = branch.parent

    def peek(self) -> Entry | None:
        while self.at > 0:
            entry = self.base[self.at - 1]
            if self.accept is None or self.accept(entry[1]):
                break
            self.at -= 1
        best = self.base[self.at - 1] if self.at > 0 else None
        if self.pushed and (best is None or self.pushed[-1][0] > best[0]):
            return self.pushed[-1]
        return best

    def pop(self) -> LiveJob:
        entry = self.peek()
        if entry is None:
            raise LookupError("no victim left in this queue")
        if self.pushed and self.pushed[-1] is entry:
            self.pushed.pop()
        else:
            self.at -= 1
        job = entry[1]
        own = held(job)
        self.given = (self.given[0] + own[0], self.given[1] + own[1], self.given[2] + own[2])
        self.changed()
        return job


class VictimOrder:
    """Victims from the allowed leaf queues, in order of eviction."""

    def __init__(
        self,
        index: JobIndex,
        queues: Iterable[LiveQueue],
        total: Amounts,
        accept: Callable[[LiveJob], bool] | None,
    ) -> None:
        """`queues`: the leaves whose jobs may be taken."""
        self.total = total
        self.root = _Branch(None)
        self.leaves: dict[str, _Branch] = {}
        branches: dict[str, _Branch] = {}
        for queue in sorted(queues, key=attrgetter("name")):
            entries = index.leaves.get(queue.name)
            if entries:
                leaf = self._branch(queue, branches)
                leaf.base, leaf.at, leaf.accept = entries, len(entries), accept
                self.leaves[queue.name] = leaf

    def _branch(self, queue: LiveQueue, branches: dict[str, _Branch]) -> _Branch:
        branch = branches.get(queue.name)
        if branch is None:
            parent = self.root if queue.parent is None else self._branch(queue.parent, branches)
            branch = branches[queue.name] = _Branch(queue, parent)
            parent.children.append(branch)
        return branch

    def pop(self) -> LiveJob | None:
        leaf = self._descend(self.root)
        return None if leaf is None else leaf.pop()

    def are_all(self, test: Callable[[LiveJob], bool]) -> bool:
        """Whether all that may be popped pass a test; then all are accepted or not, as if they were popped."""
        if not all(test(job) for leaf in self.leaves.values() for _, job in leaf.base):
            return False
        for leaf in self.leaves.values():
            if leaf.accept is not None:
                deque(map(leaf.accept, (job for _, job in leaf.base)), maxlen=0)
        return True

    def push(self, job: LiveJob, tasks: Sequence[LiveTask]) -> None:
        """Put the rest of a job back; its place in the order follows from the tasks that it still has."""
        remaining = PartialJob(job, tasks, shrink=False)
        leaf = self.leaves[job.queue.name]
        insort(leaf.pushed, (job_key(remaining), remaining), key=lambda entry: entry[0])
        leaf.changed()

    def _descend(self, branch: _Branch) -> _Branch | None:
        if branch.is_known:
            return branch.top_leaf
        branch.is_known = True
        if not branch.children:
            branch.top_leaf = branch if branch.peek() is not None else None
            return branch.top_leaf
        best: _Branch | None = None
        for child in branch.children:
            if self._descend(child) is not None and (best is None or self._goes_before(child, best)):
                best = child
        branch.top_leaf = best.top_leaf if best is not None else None
        return branch.top_leaf

    def _goes_before(self, left: _Branch, right: _Branch) -> bool:
        return self._key(left) > self._key(right)

    def _key(self, branch: _Branch) -> QueueKey:
        """The queue's current usage; only its dominant share subtracts what its best leaf gave and would give next."""
        if branch.key is None:
            leaf = branch.top_leaf
            entry = leaf.peek() if leaf is not None else None
            if leaf is None or entry is None:
                raise LookupError("a queue without victims has no place in the order")
            own = held(entry[1])
            minus = (leaf.given[0] + own[0], leaf.given[1] + own[1], leaf.given[2] + own[2])
            branch.key = queue_key(_queue(branch), NOTHING, minus, self.total)
        return branch.key


def _queue(branch: _Branch) -> LiveQueue:
    if branch.queue is None:
        raise LookupError("the root of the tree is not a queue")
    return branch.queue
