"""A proof that a scenario fails because the job that it makes room for comes last, and everybody gets a place again.

In a simulation, winner and victims place themselves in the order of queues and jobs. A job in whose queue a larger one
waits before it comes late, often after all victims. Each of them finds a place again if they leave one node together,
because that node keeps room for those still to come, or if all are equally large, because each place serves any of
them; `packing` knows some more cases. What is left is what was free before, and the winner fails if that is fewer GPUs
than it asks for. It also fails if no node had enough for it, and all victims ask for a multiple of what no node had:
then each node ends up with what it had before.

Called by `solver` before it simulates a scenario; whatever this does not understand is simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from fairlead.scheduling.fairness.job_order import JobKey, QueueKey, job_key, queue_key
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveNode, LiveTask
from fairlead.scheduling.model.queues import GPU, NOTHING, Amounts, LiveQueue
from fairlead.scheduling.model.requests import KIND_WHOLE, RequestClass
from fairlead.scheduling.model.subgroups import next_request
from fairlead.scheduling.placement.predicates import static_cause
from fairlead.scheduling.solver.filters import EPSILON, asked_gpus
from fairlead.scheduling.solver.forecast import has_limit
from fairlead.scheduling.solver.packing import all_fit_again
from fairlead.scheduling.solver.refill import Refill, Waiting, plain_sizes
from fairlead.scheduling.solver.returns import ReturnsByNode
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.victims import VictimOrder, held

#: Later than every job.
_END: JobKey = (1 << 62, 0, 0, "")
#: Earlier than every job.
_START: JobKey = (-(1 << 62), 0, 0, "")


class LastInLine:
    """For one probe. `fails` is true only if the simulation of a scenario would fail."""

    def __init__(self, probe: PlacementProbe) -> None:
        self.probe = probe
        self.session = probe.session
        self.queue = probe.job.queue
        exact = self.session.free_gpus().exact
        free = [exact[index] for index in probe.nodes if exact[index] > 0]
        #: GPUs that the winner asks for and that are not free.
        self.missing = sum(asked_gpus(task) for task in probe.tasks) - sum(free)
        self.is_short = self.missing > EPSILON
        #: GPUs that are free on one node.
        self.most_free = max(free, default=0)
        self.is_scattered = self.most_free + EPSILON < min(task.gpu for task in probe.tasks)
        self.applies = (
            (self.is_short or self.is_scattered)
            and not self.session.classes.has_memory_requests
            and all(task.kind == KIND_WHOLE for task in probe.tasks)
        )
        self.key: QueueKey | None = None
        #: By leaf and what a victim holds: it goes before the winner if it comes before this in the order of its queue.
        self.limits: dict[tuple[str, Amounts], JobKey] = {}
        #: By job: whether it goes before the winner and is placed again at once, wherever there is room for it.
        self.known: dict[str, bool] = {}
        self._open_nodes: bool | None = None
        self._packed: bool | None = None
        #: By leaf and size: whether small victims go before the winner, but for the few of `late`.
        self.on_time: dict[tuple[str, int], bool] = {}
        #: GPUs by leaf of small victims that may come after the winner; together fewer than are missing.
        self.late: dict[str, int] = {}
        self.refill: Refill | None = None
        #: No task that the winner asks for is smaller.
        self.smallest = min((task.gpu for task in probe.tasks), default=0)

    @property
    def has_open_nodes(self) -> bool:
        """Whether free GPUs are all that a node needs to take a task of whole GPUs that asks for nothing else."""
        if self._open_nodes is None:
            self._open_nodes = all(
                node.open_to_all and node.idle_pods >= node.gpu_count and not _is_overbooked(node)
                for node in self.session.nodes
            )
        return self._open_nodes

    def knows_small(self) -> bool:
        """Whether `is_small` may be asked."""
        return self.applies and self.is_short and self.has_open_nodes

    def is_small(self, job: LiveJob) -> bool:
        """Whether this victim cannot help the winner, alone or together with any others like it.

        It is one task that is not larger than the winner's, and goes before the winner. If it finds no place at its
        turn, no node has room for the winner either, and there will not be more room. If each of them finds a place,
        what is left is what was free before. A few may come after the winner, if they leave too little for it.
        """
        sizes = plain_sizes(job)
        if len(sizes) != 1 or sizes[0] > self.smallest or self.session.affinities.concerns(job.tasks[0]):
            return False
        size = sizes[0]
        key = (job.queue.name, size)
        known = self.on_time.get(key)
        if known is None:
            known = self.on_time[key] = self._is_on_time(job.queue, size)
        return known

    def describe_all(self, victims: VictimOrder) -> Refill | None:
        """What is known of all victims together, see `Refill.is_known`; None if it is not true of them."""
        if not self.is_packed:
            return None
        refill = self._refill()
        return refill if victims.are_all(refill.is_known) else None

    def returns_by_node(self) -> ReturnsByNode | None:
        """For victims of this probe; None if sums by node do not suffice."""
        if self.probe.loaded or not self.knows_small() or not self.is_packed:
            return None
        refill = self._refill()
        return ReturnsByNode(refill.places, refill.most)

    @property
    def is_packed(self) -> bool:
        """Whether each victim goes to the fullest node with room for it: no GPU is idle, not even one that is promised.

        A task goes to a node with an idle GPU before all others, though another task waits for that GPU.
        """
        if self._packed is None:
            is_full = not self.most_free and self.session.settings.placement.gpu == "binpack"
            self._packed = is_full and all(node.idle_gpu <= 0 for node in self.session.nodes)
        return self._packed

    def _refill(self) -> Refill:
        if self.refill is None:
            self.refill = Refill(self.session, self.is_small, self._goes_before, self._find_waiting)
        return self.refill

    def _find_waiting(self, queue: LiveQueue) -> Waiting | None:
        by_request = self.session.pending_jobs().by_request
        requests = list(self._requests_before_victims(queue))
        if any(cpu or memory for cpu, memory, _ in requests):
            return None
        return [(request[GPU], by_request(queue.name)[request]) for request in requests]

    def _is_on_time(self, queue: LiveQueue, size: int) -> bool:
        """Victims of a leaf are late from the first one on at whose turn the leaf has a larger key than the winner.

        If the leaf has the smaller key when it uses `gone` less than now, fewer GPUs than that are late.
        """
        if queue is self.queue or queue.parent is not self.queue.parent:
            return False
        winner, total = self._winner_key(), self.session.total
        requests: list[Amounts] = [(0, 0, 1000 * size), *self._requests_before_victims(queue)]
        others = sum(late for name, late in self.late.items() if name != queue.name)
        gone, late = size, 0
        while others + late + EPSILON < self.missing:
            if all(queue_key(queue, request, (0, 0, 1000 * gone), total) < winner for request in requests):
                self.late[queue.name] = max(late, self.late.get(queue.name, 0))
                return True
            late, gone = gone, gone + 1
        return False

    def _requests_before_victims(self, queue: LiveQueue) -> Iterator[Amounts]:
        """What jobs request that wait in a leaf before the last of its victims."""
        waiting, victims = self.session.pending_jobs(), self.session.possible_victims().leaves[queue.name]
        if waiting.leaves.get(queue.name):
            # In a simulation, an evicted job has none of its tasks.
            last = max((-job.priority, 0, job.created, job.id) for _, job in victims)
            for request, keys in waiting.by_request(queue.name).items():
                if keys[0] < last:
                    yield request

    def _winner_key(self) -> QueueKey:
        """The largest key of the winner's queue until it is the winner's turn."""
        if self.key is None:
            job = self.probe.job
            own, total = job_key(job), self.session.total
            requests = [next_request(job)]
            for request, keys in self.session.pending_jobs().by_request(self.queue.name).items():
                first = next((key for key in islice(keys, 2) if key[3] != job.id), _END)
                if first < own:
                    requests.append(request)
            self.key = max(queue_key(self.queue, request, NOTHING, total) for request in requests)
        return self.key

    def fails(self, units: Sequence[Unit]) -> bool:
        if not self.applies:
            return False
        if self.knows_small() and self.is_packed and self._refill().comes_first(units):
            return True
        nodes: set[int] = set()
        classes: set[RequestClass] = set()
        for unit in units:
            job = unit[0].job
            known = self.known.get(job.id)
            if known is None:
                known = self.known[job.id] = self._goes_before(job) and self._comes_back(job)
            if not known or len(unit) != len(job.tasks):
                return False
            for task in unit:
                nodes.add(task.home.index)
                classes.add(task.request_class)
        if not self.is_short and not self._leave_nodes_as_they_were(classes):
            return False
        return len(nodes) == 1 or len(classes) == 1 or self._all_fit_again(units, classes)

    def _leave_nodes_as_they_were(self, classes: Iterable[RequestClass]) -> bool:
        size = min((each.gpu for each in classes), default=0)
        return self.is_scattered and self.most_free + EPSILON < size and not any(each.gpu % size for each in classes)

    def _all_fit_again(self, units: Sequence[Unit], classes: Iterable[RequestClass]) -> bool:
        if self.session.settings.placement.gpu != "binpack" or not self.has_open_nodes:
            return False
        if any(each.cpu or each.memory or not each.undemanding for each in classes):
            return False
        rooms = {index: node.idle_gpu + node.releasing_gpu for index, node in self.probe.nodes.items()}
        idle = {index: node.idle_gpu for index, node in self.probe.nodes.items() if node.idle_gpu > 0}
        sizes: dict[int, int] = {}
        for unit in units:
            for task in unit:
                node = task.home
                if task.spec.nominated_node:
                    return False
                rooms[node.index] = rooms.get(node.index, node.idle_gpu + node.releasing_gpu) + task.gpu
                sizes[task.gpu] = sizes.get(task.gpu, 0) + 1
        return all_fit_again(rooms, idle, sizes)

    def _goes_before(self, job: LiveJob) -> bool:
        own = held(job)
        limit = self.limits.get((job.queue.name, own))
        if limit is None:
            limit = self.limits[job.queue.name, own] = self._limit(job.queue, own)
        return (-job.priority, 0, job.created, job.id) < limit

    def _limit(self, queue: LiveQueue, own: Amounts) -> JobKey:
        """Usage is at most that of now less the victim's own; a smaller usage or request makes a queue go earlier."""
        if queue is self.queue or queue.parent is not self.queue.parent:
            return _START
        winner, total, waiting = self._winner_key(), self.session.total, self.session.pending_jobs()
        if queue_key(queue, NOTHING, NOTHING, total) >= winner:
            return _START
        if not waiting.leaves.get(queue.name):
            return _END
        requests = waiting.by_request(queue.name).items()
        late = (keys[0] for request, keys in requests if queue_key(queue, request, own, total) >= winner)
        return min(late, default=_END)

    def _comes_back(self, job: LiveJob) -> bool:
        root = job.root
        if root.groups or len(root.pod_sets) != 1 or root.topology is not None or job.pending or has_limit(job):
            return False
        pod_set = root.pod_sets[0]
        if pod_set.topology is not None or pod_set.minimum != len(job.tasks):
            return False
        return all(self._returns(task) for task in job.tasks)

    def _returns(self, task: LiveTask) -> bool:
        node = task.node
        return (
            node is not None
            and task.kind == KIND_WHOLE
            and not task.ext
            and bool(st.HELD[task.status])
            and task.leaving is None
            and static_cause(task, node) is None
            and not _is_overbooked(node)
            and not self.session.affinities.concerns(task)
        )


def _is_overbooked(node: LiveNode) -> bool:
    """Then it may not have room for what leaves it."""
    return (
        node.idle_gpu + node.releasing_gpu < 0
        or node.idle_cpu + node.releasing_cpu < 0
        or node.idle_memory + node.releasing_memory < 0
        or node.idle_pods + node.releasing_pods < 0
    )
