"""The order in which winner and victims place themselves inside a simulation.

All jobs with pending tasks are in the order, because they influence it. Jobs that are not concerned are popped and
dropped. The plain algorithm pops jobs one by one until no concerned job is left.

Dropping a job changes nothing but the heap. So the walk may start at the lowest queue that has all concerned jobs below
it, and skip its children without any: they do not change the order among the concerned jobs.

If those children are leaves, it need not pop one by one either. A leaf reaches its next concerned job after the largest
key of the jobs before it: a leaf whose largest key is smaller gets there before the other one has passed its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice

from fairlead.scheduling.fairness.job_index import Entry
from fairlead.scheduling.fairness.job_order import JobKey, QueueKey, job_key, queue_key
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import NOTHING, Amounts, LiveQueue
from fairlead.scheduling.model.subgroups import next_request
from fairlead.scheduling.session.session import SchedulingSession


class _Branch:
    __slots__ = (
        *("at", "barrier", "base", "by_request", "children", "extra", "key", "key_for", "left", "parent", "queue"),
        *("skip", "top"),
    )

    def __init__(self, queue: LiveQueue | None, skip: dict[str, LiveJob]) -> None:
        self.queue = queue
        self.parent: _Branch | None = None
        #: Concerned jobs below that are not popped yet.
        self.left = 0
        self.children: list[_Branch] = []
        self.base: Sequence[Entry] = ()
        self.by_request: dict[Amounts, list[JobKey]] = {}
        self.at = 0
        #: Of a leaf: its next concerned job, and what the jobs before that one request.
        self.barrier: tuple[Entry, list[Amounts]] | None = None
        #: Concerned jobs, last first.
        self.extra: list[Entry] = []
        self.skip = skip
        self.top: LiveJob | None = None
        self.key: QueueKey | None = None
        self.key_for: tuple[int, int, int] | None = None

    def peek(self) -> Entry | None:
        base, skip = self.base, self.skip
        at, length = self.at, len(base)
        while at < length and base[at][1].id in skip:
            at += 1
        self.at = at
        best = base[at] if at < length else None
        if self.extra and (best is None or self.extra[-1][0] < best[0]):
            return self.extra[-1]
        return best

    def requests_before(self, entry: Entry) -> list[Amounts]:
        """What the jobs before a concerned one, and after the one before it, request; each request once."""
        if self.barrier is None or self.barrier[0] is not entry:
            requests = []
            last = None if self.barrier is None else self.barrier[0][0]
            for request, keys in self.by_request.items():
                after = 0 if last is None else bisect_right(keys, last)
                first = next((key for key in islice(keys, after, None) if key[3] not in self.skip), None)
                if first is not None and first < entry[0]:
                    requests.append(request)
            self.barrier = (entry, requests)
        return self.barrier[1]


class SimulationOrder:
    def __init__(
        self, session: SchedulingSession, concerned: dict[str, LiveJob], evicted: dict[str, Amounts] | None = None
    ) -> None:
        """`evicted`: jobs to treat as if all their tasks were evicted, with the resources they would then request."""
        self.total = session.total
        self.evicted = dict(evicted) if evicted is not None else {}
        self.plain = session.plain
        self.concerned = concerned
        self.root = _Branch(None, concerned)
        branches: dict[str, _Branch] = {}
        pending = session.pending_jobs()
        for name in self._leaves_to_walk(pending.leaves):
            entries = pending.leaves.get(name)
            if entries:
                leaf = self._branch(session.queues[name], branches)
                leaf.base, leaf.by_request = entries, pending.by_request(name)
        for job in concerned.values():
            leaf = self._branch(job.queue, branches)
            key = job_key(job)
            leaf.extra.append(((key[0], 0, key[2], key[3]) if job.id in self.evicted else key, job))
            self._count(leaf, 1)
        for branch in branches.values():
            if len(branch.extra) > 1:
                branch.extra.sort(key=lambda entry: entry[0], reverse=True)

    def _leaves_to_walk(self, leaves: Iterable[str]) -> Iterable[str]:
        """Those of concerned jobs, if they are children of one queue; otherwise all."""
        own = {job.queue.name: job.queue.parent for job in self.concerned.values()}
        return leaves if self.plain or len(set(own.values())) > 1 else own

    def _branch(self, queue: LiveQueue, branches: dict[str, _Branch]) -> _Branch:
        branch = branches.get(queue.name)
        if branch is None:
            branch = branches[queue.name] = _Branch(queue, self.concerned)
            parent = self.root if queue.parent is None else self._branch(queue.parent, branches)
            parent.children.append(branch)
            branch.parent = parent
        return branch

    def _count(self, leaf: _Branch, change: int) -> None:
        branch: _Branch | None = leaf
        while branch is not None:
            branch.left += change
            branch = branch.parent

    def pop(self) -> LiveJob | None:
        """The next concerned job, or None after the last one."""
        while self.root.left:
            leaf = self._descend(self.root) if self.plain else self._next_leaf()
            if leaf is None:
                return None
            entry = leaf.peek() if leaf.barrier is None else leaf.extra[-1]
            if leaf.extra and leaf.extra[-1] is entry:
                leaf.extra.pop()
                self._count(leaf, -1)
                return entry[1]
            leaf.at += 1
        return None

    def _next_leaf(self) -> _Branch | None:
        branch = self.root
        while branch.children:
            concerned = [child for child in branch.children if child.left]
            if len(concerned) > 1:
                if any(child.children or child.at for child in concerned):
                    return self._best_of(branch, concerned)
                return min(concerned, key=self._largest_key)
            branch = concerned[0]
        # Only this leaf is left, so the jobs between its concerned jobs do not matter.
        branch.at = len(branch.base)
        branch.barrier = None
        return branch

    def _largest_key(self, leaf: _Branch) -> QueueKey:
        """The largest key of a leaf until its next concerned job has been popped."""
        entry, queue = leaf.extra[-1], leaf.queue
        if queue is None:
            raise LookupError("the root of the tree is not a queue")
        job = entry[1]
        key_for = (queue.stamp, id(job), job.version)
        if leaf.key is None or leaf.key_for != key_for:
            before = leaf.requests_before(entry)
            own = self.evicted.get(job.id) or next_request(job)
            leaf.key = max(queue_key(queue, request, NOTHING, self.total) for request in (own, *before))
            leaf.key_for = key_for
        return leaf.key

    def _best_of(self, branch: _Branch, children: Sequence[_Branch]) -> _Branch | None:
        best: _Branch | None = None
        best_leaf: _Branch | None = None
        for child in children:
            leaf = self._descend(child)
            if leaf is not None and (best is None or self._goes_before(child, best)):
                best, best_leaf = child, leaf
        branch.top = best.top if best is not None else None
        return best_leaf

    def _descend(self, branch: _Branch) -> _Branch | None:
        if not branch.children:
            entry = branch.peek()
            branch.top = entry[1] if entry is not None else None
            return branch if entry is not None else None
        return self._best_of(branch, branch.children)

    def _goes_before(self, left: _Branch, right: _Branch) -> bool:
        return self._key(left) < self._key(right)

    def _key(self, branch: _Branch) -> QueueKey:
        queue, job = branch.queue, branch.top
        if queue is None or job is None:
            raise LookupError("a queue without jobs has no place in the order")
        key_for = (queue.stamp, id(job), job.version)
        if branch.key is None or branch.key_for != key_for:
            request = self.evicted.get(job.id) or next_request(job)
            branch.key = queue_key(queue, request, NOTHING, self.total)
            branch.key_for = key_for
        return branch.key
