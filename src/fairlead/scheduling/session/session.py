"""One node pool in one cycle: the live model built from a snapshot, and the four moves that change it.

Evict, pipeline, allocate and un-evict write into an undo log; `checkpoint`, `rollback` and `commit` frame an attempt.
Everything an action does goes through here, so that a failed attempt leaves no trace.
"""

from __future__ import annotations

import msgspec

from fairlead.scheduling.fairness.fairshare import set_fair_shares
from fairlead.scheduling.fairness.job_index import JobIndex, could_start, has_pending, may_be_victim
from fairlead.scheduling.fairness.job_order import rank_siblings
from fairlead.scheduling.fairness.usage import UsageTracker
from fairlead.scheduling.model import snapshot as plain
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.live import (
    BOOK_PIPELINED,
    BOOK_RELEASING,
    BOOK_USED,
    UNKNOWN,
    UNKNOWN_GPU_MEMORY,
    Alike,
    LiveJob,
    LiveNode,
    LiveTask,
)
from fairlead.scheduling.model.queues import INFINITE, Amounts, LiveQueue
from fairlead.scheduling.model.requests import KIND_CPU, RequestClass, RequestClasses
from fairlead.scheduling.placement.affinity import Affinities
from fairlead.scheduling.placement.defragment import Fragmentation
from fairlead.scheduling.placement.free_gpus import FreeGpus
from fairlead.scheduling.placement.node_index import NodeIndex
from fairlead.scheduling.placement.predicates import could_stay
from fairlead.scheduling.placement.topology import TopologyTree

#: Node, groups, how, sign: one line of a node's book.
Booking = tuple[LiveNode, tuple[str, ...], int, int]
#: Task fields before a move, in the order of `_restore`, and the bookings made.
Undo = tuple[
    LiveTask,
    int,
    LiveNode | None,
    tuple[str, ...],
    bool,
    int,
    tuple[LiveNode, tuple[str, ...]] | None,
    Amounts | None,
    tuple[Booking, ...],
]

_NOTHING = plain.Share(limit=0)
#: The queue of jobs that no queue here answers for.
NOBODY = plain.Queue(
    name="", resources=plain.QueueShares(gpu=_NOTHING, cpu=_NOTHING, memory=_NOTHING), node_pool=plain.DEFAULT_POOL
)

_HOW = {st.PIPELINED: BOOK_PIPELINED, st.RELEASING: BOOK_RELEASING}


class SchedulingSession:
    """Nodes, queues and jobs of one pool; `log` is the undo log of the attempt under way."""

    def __init__(self, snapshot: plain.Snapshot, pool: str, queues: dict[str, LiveQueue]) -> None:
        self.now = snapshot.now
        self.pool = pool
        self.settings = pool_settings(snapshot.settings, pool)
        self.topologies = snapshot.topologies
        self._trees: dict[str, TopologyTree] | None = None
        specs = sorted((node for node in snapshot.nodes if node.node_pool == pool), key=lambda node: node.name)
        self.nodes = [LiveNode(spec, index) for index, spec in enumerate(specs)]
        self.node_by_name = {node.name: node for node in self.nodes}
        self.queues = queues
        self.jobs: dict[str, LiveJob] = {}
        self.log: list[Undo] = []
        #: Indices of nodes in the order in which their books changed; caches read on from where they stopped.
        self.touched: list[int] = []
        self.affinities = Affinities(self.nodes, self.touched)
        #: Queues in the order in which their usage changed.
        self.used_queues: list[LiveQueue] = []
        #: Rises with every change that was kept: what failed at one value fails again at the same one.
        self.commits = 0
        #: Jobs of which a task was changed for good.
        self.changed: set[str] = set()
        #: Per leaf, the lowest priority of a job that may be preempted.
        self.lowest_priority: dict[str, int] = {}
        self.total = self._total()
        memories = [node.gpu_memory for node in self.nodes if node.gpu_memory > UNKNOWN_GPU_MEMORY]
        self.classes = RequestClasses(min(memories, default=None), max(memories, default=None))
        #: Largest amount that a single node has of each resource.
        self.largest = self._largest()
        #: Whether some job asks that nobody is evicted for it for a while: searches note when that ends.
        self.has_delays = False
        #: When the result may change by time alone.
        self.next_change: float | None = None
        self._pending: JobIndex | None = None
        self._victims: JobIndex | None = None
        self._ready: JobIndex | None = None
        self._free: FreeGpus | None = None
        self._usage: UsageTracker | None = None
        #: Placed tasks of jobs that are scheduled in another pool, or nowhere.
        self.foreign_tasks: list[LiveTask] = []
        #: Requested, allocated, non-preemptible amounts of new jobs by leaf.
        self._arrived: dict[str, list[float]] = {}
        self._fragmentation: Fragmentation | None = None
        self._node_indexes: dict[RequestClass | None, NodeIndex] = {}
        #: Do everything the plain way, without indexes and bounds; tests compare both.
        self.plain = False
        #: Reasons of jobs of one task, by what such jobs have in common, with the commit at which they were true.
        self.refused: dict[Alike, tuple[int, Reason]] = {}
        #: By queue, preemptible or not, request, priority, and whether the job delays evictions.
        self.alike_jobs: dict[tuple[str, bool, RequestClass, int, bool], Alike] = {}
        #: Whether anybody reads why jobs wait.
        self.is_explained = True
        #: Reasons by request class and size of the gang, with the commit at which they were true.
        self.known_reasons: dict[tuple[RequestClass | None, int, int], tuple[int, Reason]] = {}

    def _total(self) -> Amounts:
        """What fair share divides: ready nodes without what others use there, MIG instances by their weight."""
        cpu = memory = gpu = 0
        for node in self.nodes:
            if node.spec.ready:
                foreign = node.spec.foreign
                cpu += node.allocatable_cpu - foreign.cpu_milli
                memory += node.allocatable_memory - foreign.memory_bytes
                gpu += (node.gpu_count - foreign.gpu + node.mig_weight) * 1000
        return (cpu, memory, gpu)

    def _largest(self) -> dict[str, int]:
        largest: dict[str, int] = {}
        for node in self.nodes:
            amounts = {**node.idle_ext, **node.spec.extended}
            amounts.update(cpu=node.allocatable_cpu, memory=node.allocatable_memory, gpu=node.gpu_count)
            for name, amount in amounts.items():
                largest[name] = max(amount, largest.get(name, 0))
        return largest

    def changes_at(self, moment: float) -> None:
        """Something counted against `now` and will count differently at this moment."""
        if moment > self.now and (self.next_change is None or moment < self.next_change):
            self.next_change = moment

    # Jobs

    def add_job(self, spec: plain.Job) -> LiveJob:
        """Add a job with the bookings and usage of its placed tasks; `divide_fair_shares` passes usage on upwards."""
        queue = self.queues[spec.queue]
        job = LiveJob(spec, queue, self.classes)
        self.jobs[job.id] = job
        if job.preemptible and job.priority < self.lowest_priority.get(queue.name, INFINITE):
            self.lowest_priority[queue.name] = job.priority
        if spec.preemption_delay:
            self.has_delays = True
        arrived = self._arrived.get(queue.name)
        if arrived is None:
            arrived = self._arrived[queue.name] = [0] * 9
        for task in job.tasks:
            if task.spec.pod_anti_affinity:
                self.affinities.add(task)
            status = task.status
            if status == st.PENDING:
                _add(arrived, 0, task.request)
                continue
            if st.USED[status] and task.spec.node in self.node_by_name:
                self._book_placed(task, self.node_by_name[task.spec.node])
            if st.HELD[status]:
                charge = task.charge = task.charge or task.request
                cpu, memory, gpu = charge
                arrived[0] += cpu
                arrived[1] += memory
                arrived[2] += gpu
                arrived[3] += cpu
                arrived[4] += memory
                arrived[5] += gpu
                if not job.preemptible:
                    _add(arrived, 6, charge)
        return job

    def book_foreign_tasks(self, spec: plain.Job) -> None:
        """Book the tasks of a job that this pool does not schedule but whose tasks are on its nodes."""
        foreign_job = LiveJob(spec, LiveQueue(NOBODY), self.classes)
        for task in foreign_job.tasks:
            if st.USED[task.status] and task.spec.node in self.node_by_name:
                self._book_placed(task, self.node_by_name[task.spec.node])
                self.foreign_tasks.append(task)

    def _book_placed(self, task: LiveTask, node: LiveNode) -> None:
        task.node = node
        task.groups = task.spec.gpu_groups
        task.charge = node.charge(task)
        node.book(task, task.groups, _HOW.get(task.status, BOOK_USED), 1)
        self.touched.append(node.index)

    def remove_job(self, job: LiveJob) -> None:
        """Take out a job that holds nothing, so that another pool may try it."""
        del self.jobs[job.id]
        for task in job.tasks:
            if task.status == st.PENDING:
                for queue in job.queue.path:
                    for resource in (0, 1, 2):
                        queue.requested[resource] -= task.request[resource]

    def take_out(self, job: LiveJob) -> None:
        """Take out a job of whole GPUs with everything that it holds; `divide_fair_shares` passes that on upwards."""
        del self.jobs[job.id]
        arrived = self._arrived.setdefault(job.queue.name, [0] * 9)
        for task in job.tasks:
            if st.USED[task.status] and task.node is not None:
                self._unbook(task, (task.node, task.groups), _HOW.get(task.status, BOOK_USED))
            if task.leaving is not None:
                self._unbook_left_places(task)
            charge = task.charge or task.request
            if task.first_status == st.PENDING:
                _add(arrived, 0, _negative(task.request))
            elif st.HELD[task.first_status]:
                _add(arrived, 0, _negative(charge))
            if st.ACTIVE[task.status]:
                _add(arrived, 3, _negative(charge))
                if not job.preemptible:
                    _add(arrived, 6, _negative(charge))
        for index in (self._pending, self._victims, self._ready):
            if index is not None:
                index.drop(job)

    def _unbook_left_places(self, task: LiveTask) -> None:
        """A task that was moved more than once in a cycle is booked on every node that it was to leave."""
        for node in self.nodes:
            while task.id in node.tasks:
                self._unbook(task, (node, ()), BOOK_RELEASING)

    def _unbook(self, task: LiveTask, place: tuple[LiveNode, tuple[str, ...]], how: int) -> None:
        node, groups = place
        node.book(task, groups, how, -1)
        self.touched.append(node.index)

    def divide_fair_shares(self) -> None:
        """Count in what has arrived, and divide the pool again."""
        self.count_arrivals()
        self.forget()

    def count_arrivals(self) -> None:
        """Without dropping what was derived: whoever keeps a session keeps its indexes up to date."""
        for name, arrived in self._arrived.items():
            for queue in self.queues[name].path:
                for amounts, first in ((queue.requested, 0), (queue.allocated, 3), (queue.non_preemptible, 6)):
                    for resource in (0, 1, 2):
                        amounts[resource] += arrived[first + resource]
                queue.stamp += 1
                self.used_queues.append(queue)
        self._arrived.clear()
        tops = [queue for queue in self.queues.values() if queue.parent is None]
        set_fair_shares(tops, self.total, self.settings.k_value)
        rank_siblings(tops)

    # Moves

    def allocate(self, task: LiveTask, node: LiveNode, groups: tuple[str, ...]) -> None:
        """Give a pending task idle resources: it is bound when the attempt is committed."""
        self._remember(task, ((node, groups, BOOK_USED, 1),))
        self._put(task, st.ALLOCATED, node, groups)

    def pipeline(self, task: LiveTask, node: LiveNode, groups: tuple[str, ...]) -> None:
        """Promise a task what is idle or being released.

        On a place that still books the task, the eviction is taken back: that is the place it was evicted from, and
        also the one that it was leaving before. Then it returns to where it was before this eviction, as in KAI. Unless
        that place has been promised to others since: KAI books it twice, here the task moves back.
        """
        if task.status == st.RELEASING:
            place = (node, groups)
            if place == (task.node, task.groups) or (place == task.leaving and could_stay(task)):
                self._unevict(task)
                return
        bookings = ((node, groups, BOOK_PIPELINED, 1),)
        leaving = task.leaving
        if task.status == st.RELEASING and task.node is not None:
            leaving = (task.node, task.groups)
        self._remember(task, bookings)
        task.leaving = leaving
        self._put(task, st.PIPELINED, node, groups)

    def postpone(self, task: LiveTask) -> None:
        """Turn a fresh allocation into a promise on the same place."""
        node = task.home
        # The promise first, so that a shared GPU that only this task is on stays the same one.
        self._remember(task, ((node, task.groups, BOOK_PIPELINED, 1), (node, task.groups, BOOK_USED, -1)))
        self._set_status(task, st.PIPELINED)

    def evict(self, task: LiveTask) -> None:
        node = task.node
        how = _HOW.get(task.status, BOOK_USED)
        bookings: tuple[Booking, ...] = ()
        if node is not None:
            bookings = ((node, task.groups, how, -1), (node, task.groups, BOOK_RELEASING, 1))
        self._remember(task, bookings)
        task.before = task.status
        task.virtual = True
        if task.charge is not None:
            self.charge_queue(task.job, task.charge, -1)
        self._set_status(task, st.RELEASING)

    def _unevict(self, task: LiveTask) -> None:
        node = task.node
        before = task.before
        how = _HOW.get(before, BOOK_USED)
        bookings: tuple[Booking, ...] = ()
        if node is not None:
            bookings = ((node, task.groups, BOOK_RELEASING, -1), (node, task.groups, how, 1))
        self._remember(task, bookings)
        task.virtual = False
        if task.charge is not None:
            self.charge_queue(task.job, task.charge, 1)
        self._set_status(task, before)

    def _put(self, task: LiveTask, status: int, node: LiveNode, groups: tuple[str, ...]) -> None:
        task.node = node
        task.groups = groups
        task.virtual = True
        task.charge = node.charge(task)
        self.charge_queue(task.job, task.charge, 1)
        self._set_status(task, status)

    def _set_status(self, task: LiveTask, status: int) -> None:
        job = task.job
        if task.status == st.PENDING:
            job.pending -= 1
        elif status == st.PENDING:
            job.pending += 1
        task.pod_set.count(task.status, -1)
        task.pod_set.count(status, 1)
        task.status = status
        job.version += 1

    def charge_queue(self, job: LiveJob, charge: Amounts, sign: int) -> None:
        """Count a charge in, or out again, at the queue of a job and at all above it."""
        cpu, memory, gpu = charge
        fixed = not job.preemptible
        for queue in job.queue.path:
            allocated = queue.allocated
            allocated[0] += sign * cpu
            allocated[1] += sign * memory
            allocated[2] += sign * gpu
            queue.stamp += 1
            self.used_queues.append(queue)
            if fixed:
                held = queue.non_preemptible
                held[0] += sign * cpu
                held[1] += sign * memory
                held[2] += sign * gpu

    # The undo log

    def _remember(self, task: LiveTask, bookings: tuple[Booking, ...]) -> None:
        self.log.append(
            (task, task.status, task.node, task.groups, task.virtual, task.before, task.leaving, task.charge, bookings)
        )
        for node, groups, how, sign in bookings:
            node.book(task, groups, how, sign)
            self.touched.append(node.index)

    def checkpoint(self) -> int:
        return len(self.log)

    def rollback(self, mark: int) -> None:
        log = self.log
        while len(log) > mark:
            self._restore(log.pop())

    def _restore(self, undo: Undo) -> None:
        task, status, node, groups, virtual, before, leaving, charge, bookings = undo
        for booked_node, booked_groups, how, sign in reversed(bookings):
            booked_node.book(task, booked_groups, how, -sign)
            self.touched.append(booked_node.index)
        was, now = st.ACTIVE[status], st.ACTIVE[task.status]
        if now and not was and task.charge is not None:
            self.charge_queue(task.job, task.charge, -1)
        elif was and not now and charge is not None:
            self.charge_queue(task.job, charge, 1)
        self._set_status(task, status)
        task.node, task.groups, task.virtual, task.before = node, groups, virtual, before
        task.leaving, task.charge = leaving, charge

    def commit(self) -> None:
        """Keep what was done. Allocated tasks are being bound from here on, evicted ones do not come back."""
        for task, *_ in self.log:
            task.virtual = False
            if task.status == st.ALLOCATED:
                self._set_status(task, st.BINDING)
        if self.log:
            self.commits += 1
            jobs = {undo[0].job.id: undo[0].job for undo in self.log}
            self.changed.update(jobs)
            for index in (self._pending, self._victims, self._ready):
                if index is not None:
                    for job in jobs.values():
                        index.refresh(job)
        self.log.clear()

    # What searches look at; true for the state at the last commit

    def pending_jobs(self) -> JobIndex:
        if self._pending is None:
            self._pending = JobIndex(has_pending, self.jobs.values())
        return self._pending

    def ready_jobs(self) -> JobIndex:
        """Jobs with pending tasks of which enough exist."""
        if self._ready is None:
            self._ready = JobIndex(could_start, self.jobs.values())
        return self._ready

    def possible_victims(self) -> JobIndex:
        if self._victims is None:
            self._victims = JobIndex(may_be_victim, self.jobs.values())
        return self._victims

    def free_gpus(self) -> FreeGpus:
        if self._free is None:
            self._free = FreeGpus(self.nodes, self.touched)
        self._free.update()
        return self._free

    def usage(self) -> UsageTracker:
        if self._usage is None:
            self._usage = UsageTracker(self.queues, self.used_queues)
        return self._usage

    def node_index(self, task: LiveTask) -> NodeIndex:
        index = self._node_indexes.get(task.request_class)
        if index is None:
            placement = self.settings.placement
            cost = None
            if (placement.cpu if task.kind == KIND_CPU else placement.gpu) == "defragment":
                cost = self.fragmentation().rank
            index = NodeIndex(task, placement, (self.nodes, self.touched), cost)
            self._node_indexes[task.request_class] = index
        return index

    def fragmentation(self) -> Fragmentation:
        if self._fragmentation is None:
            self._fragmentation = Fragmentation(task.request_class for job in self.jobs.values() for task in job.tasks)
        return self._fragmentation

    def trees(self) -> dict[str, TopologyTree]:
        if self._trees is None:
            self._trees = {spec.name: TopologyTree(spec, self.nodes) for spec in self.topologies}
        return self._trees

    def forget(self) -> None:
        """Drop what was derived, after jobs came or went."""
        self._pending = None
        self._victims = None
        self._ready = None
        if self._fragmentation is not None:
            # It weighs by what all jobs ask for, and so do the indexes that were made with it.
            self._fragmentation = None
            self._node_indexes.clear()
        if self.affinities.avoided:
            for job in self.jobs.values():
                job.alike = UNKNOWN

    def close(self) -> None:
        """Cut the rings of references, so that the model goes at once and not when the collector looks for it."""
        for node in self.nodes:
            node.tasks.clear()
        for job in (*self.jobs.values(), *(task.job for task in self.foreign_tasks)):
            job.cut()
        self.jobs.clear()
        self.foreign_tasks.clear()

    def new_group(self, node: LiveNode, task: LiveTask, position: int) -> str:
        """Id of a shared GPU that a task opens; the device is chosen when the cycle is written down."""
        number = position
        while f"{node.name}/new-{number}/{task.id}" in node.groups:
            number += task.devices
        return f"{node.name}/new-{number}/{task.id}"


def pool_settings(settings: plain.Settings, pool: str) -> plain.Settings:
    """The settings with what this pool does differently put in."""
    changes: dict[str, object] = {}
    for own in settings.pools:
        if own.name == pool:
            for field in ("placement", "k_value", "preempt_min_runtime", "reclaim_min_runtime"):
                if getattr(own, field) is not None:
                    changes[field] = getattr(own, field)
    return msgspec.structs.replace(settings, **changes)


def _negative(amounts: Amounts) -> Amounts:
    return (-amounts[0], -amounts[1], -amounts[2])


def _add(totals: list[float], first: int, amounts: Amounts) -> None:
    totals[first] += amounts[0]
    totals[first + 1] += amounts[1]
    totals[first + 2] += amounts[2]
