"""A proof that a scenario fails where no GPU is free: everybody who goes before the winner gets a place again.

Victims of whole GPUs are placed in the order of their queues' keys, each on the fullest node with room for it. While
all of them find a place, the key of each is known in advance: its queue then uses what it uses now, less what it and
younger victims hold. So sorting is enough, and nodes with equal room need not be told apart. Once all victims that are
not small (`LastInLine.is_small`) have a place, the winner gets none. Called by `last_in_line`; false if there is no
telling.

Often the order does not matter: `packing` knows cases, and with at most one task of several GPUs that is smaller than a
node everybody gets a place. A task can only take the place of another one if it breaks into a node that is free as a
whole although no more such nodes are free than tasks of that size still come. As the victims just fill the room, what
is free in parts of nodes is then as much as the smaller tasks need that still come, but none of these parts has room
for this task. If a task of one GPU comes, any part has room. If the only larger one comes, either its own node still
has room, or single GPUs went there; they use up the smallest part first and then the next one, so all parts that are
left are as large as that one was, or there is but one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairlead.scheduling.fairness.job_order import JobKey
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import GPU, INFINITE, LiveQueue
from fairlead.scheduling.model.requests import KIND_WHOLE
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.forecast import has_limit
from fairlead.scheduling.solver.scenarios import Unit


def plain_sizes(job: LiveJob) -> tuple[int, ...]:
    """GPUs of each task of a running gang that asks for whole GPUs and nothing else; empty for all other jobs."""
    cached = job.cache.get("plain")
    if cached is not None and cached[0] == job.version:
        return cached[1]  # type: ignore[return-value]  # the cache holds values of several types
    sizes = tuple(task.gpu for task in job.pod_sets[0].tasks) if _is_plain(job) else ()
    job.cache["plain"] = (job.version, sizes)
    return sizes


def _is_plain(job: LiveJob) -> bool:
    root = job.root
    if root.groups or len(root.pod_sets) != 1 or root.topology is not None or has_limit(job):
        return False
    pod_set = root.pod_sets[0]
    if pod_set.topology is not None or pod_set.minimum != len(job.tasks):
        return False
    classes = {task.request_class for task in job.tasks}
    if any(each.kind != KIND_WHOLE or not each.undemanding or each.cpu or each.memory or each.ext for each in classes):
        return False
    return all(
        st.HELD[task.status] and task.leaving is None and not task.spec.nominated_node and task.node is not None
        for task in job.tasks
    )


#: A request, in thousandths of GPUs, and the sorted keys of the jobs that wait with it.
Waiting = Sequence[tuple[float, Sequence[JobKey]]]


class _Leaf:
    """Amounts are thousandths of GPUs."""

    __slots__ = ("most_waiting", "priority", "quota", "rank", "share", "used", "waiting")

    def __init__(self, queue: LiveQueue, share: float, waiting: Waiting) -> None:
        self.used = queue.allocated[GPU]
        self.quota = queue.quota[GPU]
        self.share = share
        self.priority = -queue.priority
        self.rank = queue.rank
        self.waiting = waiting
        self.most_waiting = max((request for request, _ in waiting), default=0)

    def most_between(self, older: JobKey | None, younger: JobKey) -> float:
        """The largest request of a job that waits between two victims."""
        largest: float = 0
        for request, keys in self.waiting:
            at = bisect_right(keys, older) if older is not None else 0
            if request > largest and at < len(keys) and keys[at] < younger:
                largest = request
        return largest


#: The key of a leaf at the turn of a victim, as far as leaves differ in it; see `job_order.queue_key`.
_Turn = tuple[bool, int, float, float, int]


class _Victim(NamedTuple):
    leaf: _Leaf
    key: JobKey
    amount: int
    #: Node and GPUs of each task, in the order of the tasks.
    places: tuple[tuple[int, int], ...]
    is_small: bool
    #: Tasks of several GPUs that are less than a node.
    parts: int


class Refill:
    """For one probe."""

    def __init__(
        self,
        session: SchedulingSession,
        is_small: Callable[[LiveJob], bool],
        goes_before: Callable[[LiveJob], bool],
        find_waiting: Callable[[LiveQueue], Waiting | None],
    ) -> None:
        """`find_waiting`: what waits in a leaf before its last victim; None if that is more than whole GPUs."""
        self.session = session
        self.is_small = is_small
        self.goes_before = goes_before
        self.find_waiting = find_waiting
        self.most = max((node.gpu_count for node in session.nodes), default=0)
        self.leaves: dict[str, _Leaf | None] = {}
        self.victims: dict[str, _Victim | None] = {}
        #: Of the victims for which `is_known` was asked: their parts, and whether one of them is on several nodes.
        self.parts = 0
        self.is_spread = False

    def is_known(self, job: LiveJob) -> bool:
        """Whether this victim, and all others that were asked about, come back in any order or each leave one node."""
        victim = self._find(job)
        if victim is None:
            return False
        self.parts += victim.parts
        self.is_spread = self.is_spread or len({node for node, _ in victim.places}) > 1
        return self.parts <= 1 or not self.is_spread

    def comes_first(self, units: Sequence[Unit]) -> bool:
        """Whether all but small victims certainly get a place before the winner."""
        leaves: dict[_Leaf, list[_Victim]] = {}
        rooms: dict[int, int] = {}
        large = parts = 0
        for unit in units:
            victim = self._find(unit[0].job)
            if victim is None or len(unit) != len(victim.places):
                return False
            leaves.setdefault(victim.leaf, []).append(victim)
            for node, size in victim.places:
                rooms[node] = rooms.get(node, 0) + size
            large += not victim.is_small
            parts += victim.parts
        if not large or parts <= 1:
            return True
        order: list[tuple[_Turn, int, _Victim]] = []
        for leaf, victims in leaves.items():
            if not _append_turns(leaf, victims, order):
                return False
        counts = [0] * (self.most + 1)
        for room in rooms.values():
            counts[room] += 1
        order.sort()
        for _, _, victim in order:
            if not large:
                break
            if not _place(victim, counts):
                return False
            large -= not victim.is_small
        return True

    def places(self, job: LiveJob) -> Sequence[tuple[int, int]]:
        """Node and GPUs of each task of a victim that comes before the winner; nothing if that is not known."""
        victim = self._find(job)
        return () if victim is None else victim.places

    def _find(self, job: LiveJob) -> _Victim | None:
        if job.id not in self.victims:
            self.victims[job.id] = self._describe(job)
        return self.victims[job.id]

    def _describe(self, job: LiveJob) -> _Victim | None:
        sizes = plain_sizes(job)
        if not sizes or any(map(self.session.affinities.concerns, job.tasks)):
            return None
        is_small = self.is_small(job)
        leaf = self._find_leaf(job.queue) if is_small or self.goes_before(job) else None
        if leaf is None:
            return None
        places = tuple((task.home.index, task.gpu) for task in job.pod_sets[0].tasks)
        parts = sum(1 < size < self.most for size in sizes)
        return _Victim(leaf, (-job.priority, 0, job.created, job.id), 1000 * sum(sizes), places, is_small, parts)

    def _find_leaf(self, queue: LiveQueue) -> _Leaf | None:
        if queue.name not in self.leaves:
            self.leaves[queue.name] = self._describe_leaf(queue)
        return self.leaves[queue.name]

    def _describe_leaf(self, queue: LiveQueue) -> _Leaf | None:
        """None if more than GPUs decides when it is the leaf's turn."""
        cpu, memory, _ = queue.allocated
        share = self.session.total[GPU] if queue.share[GPU] == INFINITE else queue.share[GPU]
        waiting = self.find_waiting(queue) if share and not (cpu or memory) else None
        return None if waiting is None else _Leaf(queue, share, waiting)


def _append_turns(leaf: _Leaf, victims: Sequence[_Victim], order: list[tuple[_Turn, int, _Victim]]) -> bool:
    """The victims of a leaf, which are given youngest first. False if they are not.

    A larger job that waits before a victim puts off its turn and that of all younger ones.
    """
    used = leaf.used - sum(victim.amount for victim in victims)
    older: JobKey | None = None
    turn: _Turn | None = None
    for victim in reversed(victims):
        if older is not None and victim.key <= older:
            return False
        largest: float = victim.amount
        if leaf.most_waiting > largest:
            largest = max(largest, leaf.most_between(older, victim.key))
        then = used + largest
        own = (then > leaf.quota, leaf.priority, then / leaf.share, used / leaf.share, leaf.rank)
        if turn is None or own > turn:
            turn = own
        order.append((turn, len(order), victim))
        used += victim.amount
        older = victim.key
    return True


def _place(victim: _Victim, counts: list[int]) -> bool:
    """Put each task on a node with the least room that suffices; `counts`: how many nodes have so much room."""
    for _, size in victim.places:
        room, length = size, len(counts)
        while room < length and not counts[room]:
            room += 1
        if room == length:
            return False
        counts[room] -= 1
        counts[room - size] += 1
    return True
