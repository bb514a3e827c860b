"""The mutable model of one cycle: nodes, jobs and tasks with their book-keeping.

Only `session.Session` changes it, so that every change can be undone. Amounts are integers; only GPU memory converted
into a share of a GPU is not whole.
"""

from __future__ import annotations

import math

from fairlead.scheduling.model import snapshot as plain
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.queues import Amounts, LiveQueue
from fairlead.scheduling.model.requests import (
    KIND_CPU,
    KIND_MEMORY,
    KIND_PORTION,
    RequestClass,
    RequestClasses,
    mig_resource,
    mig_weight,
)
from fairlead.scheduling.model.shared_gpu import GpuGroup

# How a task is booked on a node.
BOOK_USED = 0
BOOK_RELEASING = 1
BOOK_PIPELINED = 2

UNKNOWN = object()

#: Nodes whose GPU memory is unknown count as this many MiB, so that portions of it still work.
UNKNOWN_GPU_MEMORY = 100


class Alike:
    """What jobs of one task have in common that are refused alike: one object for each, compared by identity."""

    __slots__ = ()


class LiveNode:
    __slots__ = (
        "allocatable_cpu",
        "allocatable_memory",
        "allocatable_pods",
        "further",
        "gpu_count",
        "gpu_memory",
        "gpu_memory_known",
        "groups",
        "idle_cpu",
        "idle_ext",
        "idle_gpu",
        "idle_memory",
        "idle_pods",
        "index",
        "is_mig",
        "legacy_mig",
        "mig_weight",
        "name",
        "open_to_all",
        "releasing_cpu",
        "releasing_ext",
        "releasing_gpu",
        "releasing_memory",
        "releasing_pods",
        "spec",
        "stamp",
        "tasks",
        "unsettled",
    )

    def __init__(self, spec: plain.SnapshotNode, index: int) -> None:
        self.spec = spec
        self.index = index
        self.name = spec.name
        self.allocatable_cpu = spec.cpu_milli
        self.allocatable_memory = spec.memory_bytes
        self.allocatable_pods = spec.pods
        self.gpu_count = spec.gpu
        floored = spec.gpu_memory_mib // 100 * 100
        self.gpu_memory_known = floored > 0
        self.gpu_memory = floored or UNKNOWN_GPU_MEMORY
        extended = dict(spec.extended)
        for profile, count in spec.mig.items():
            extended[mig_resource(profile)] = extended.get(mig_resource(profile), 0) + count
        label = spec.labels.get("node-role.kubernetes.io/mig-enabled")
        self.is_mig = label == "true" if label is not None else bool(spec.mig)
        self.mig_weight = sum(mig_weight(profile) * count for profile, count in spec.mig.items())
        self.legacy_mig = 0
        #: Refuses nobody who asks for nothing special.
        self.open_to_all = (
            spec.ready and not spec.unschedulable and not spec.taints and not self.is_mig and self.gpu_memory_known
        )
        foreign = spec.foreign
        self.idle_cpu = spec.cpu_milli - foreign.cpu_milli
        self.idle_memory = spec.memory_bytes - foreign.memory_bytes
        self.idle_pods = spec.pods - foreign.pods
        self.idle_gpu = spec.gpu - foreign.gpu
        self.idle_ext = {name: count - foreign.extended.get(name, 0) for name, count in extended.items()}
        self.releasing_cpu = 0
        self.releasing_memory = 0
        self.releasing_pods = 0
        self.releasing_gpu = 0
        self.releasing_ext: dict[str, int] = {}
        self.groups: dict[str, GpuGroup] = {}
        #: Tasks with a booking here.
        self.tasks: dict[str, LiveTask] = {}
        #: How many more than one of those that move from GPU to GPU of this node.
        self.further: dict[str, int] = {}
        self.stamp = 0
        #: Bookings that are leaving or promised. Without any, what fits later fits now.
        self.unsettled = 0

    def book(self, task: LiveTask, groups: tuple[str, ...], how: int, sign: int) -> None:
        """Add (sign 1) or take back (sign -1) a booking. Pipelined tasks use up what is being released."""
        cpu, memory, gpu = sign * task.cpu, sign * task.memory, sign * task.gpu
        if how != BOOK_USED:
            self.unsettled += sign
        if how == BOOK_PIPELINED:
            self.releasing_cpu -= cpu
            self.releasing_memory -= memory
            self.releasing_pods -= sign
            self.releasing_gpu -= gpu
        else:
            self.idle_cpu -= cpu
            self.idle_memory -= memory
            self.idle_pods -= sign
            self.idle_gpu -= gpu
            if how == BOOK_RELEASING:
                self.releasing_cpu += cpu
                self.releasing_memory += memory
                self.releasing_pods += sign
                self.releasing_gpu += gpu
        if task.ext:
            self._book_extended(task, how, sign)
        if groups:
            self._book_groups(task, groups, how, sign)
        if task.spec.legacy_mig:
            self.legacy_mig += sign
        if sign > 0:
            if task.id in self.tasks:
                self.further[task.id] = self.further.get(task.id, 0) + 1
            else:
                self.tasks[task.id] = task
        elif self.further and self.further.get(task.id):
            self.further[task.id] -= 1
        else:
            del self.tasks[task.id]
        self.stamp += 1

    def _book_extended(self, task: LiveTask, how: int, sign: int) -> None:
        for name, amount in task.ext:
            delta = sign * amount
            if how == BOOK_PIPELINED:
                self.releasing_ext[name] = self.releasing_ext.get(name, 0) - delta
                continue
            self.idle_ext[name] = self.idle_ext.get(name, 0) - delta
            if how == BOOK_RELEASING:
                self.releasing_ext[name] = self.releasing_ext.get(name, 0) + delta

    def _book_groups(self, task: LiveTask, groups: tuple[str, ...], how: int, sign: int) -> None:
        memory = sign * self.shared_memory(task)
        for index, group_id in enumerate(groups):
            group = self.groups.get(group_id)
            if group is None:
                device = task.spec.devices[index] if index < len(task.spec.devices) else None
                group = self.groups[group_id] = GpuGroup(group_id, device)
            idle_before, releasing_before = group.idle_cost(), group.releasing_gain()
            if how == BOOK_PIPELINED:
                group.pipelined += memory
            else:
                group.allocated += memory
                group.steady += sign
                group.opened = True
                if how == BOOK_RELEASING:
                    group.releasing += memory
            self.idle_gpu -= group.idle_cost() - idle_before
            self.releasing_gpu += group.releasing_gain() - releasing_before
            if not group.steady and not group.pipelined and not group.allocated:
                del self.groups[group_id]

    def shared_memory(self, task: LiveTask) -> int:
        """MiB that the task takes of each of its shared GPUs here; a portion is cut to whole MiB."""
        if task.kind == KIND_PORTION:
            return int(task.portion * self.gpu_memory)
        return task.gpu_memory

    def charge(self, task: LiveTask) -> Amounts:
        """What the task costs its queue when placed here."""
        if task.kind != KIND_MEMORY:
            return task.request
        share = math.ceil(100 * task.gpu_memory / self.gpu_memory)
        return (task.cpu, task.memory, share * 10 * task.devices)


class LiveTask:
    __slots__ = (
        "before",
        "charge",
        "cpu",
        "devices",
        "ext",
        "first_status",
        "gpu",
        "groups",
        "id",
        "job",
        "kind",
        "leaving",
        "memory",
        "node",
        "pod_set",
        "request",
        "request_class",
        "spec",
        "status",
        "virtual",
    )

    def __init__(self, spec: plain.Task, job: LiveJob, pod_set: LivePodSet, request_class: RequestClass) -> None:
        self.spec = spec
        self.id = spec.id
        self.job = job
        self.pod_set = pod_set
        status = st.BY_NAME[spec.status]
        self.status = status
        self.first_status = status
        self.node: LiveNode | None = None
        self.groups: tuple[str, ...] = ()
        #: Changed in this cycle and not committed yet; an evicted task may then come back.
        self.virtual = False
        #: State before a virtual eviction.
        self.before = status
        #: The booking it leaves behind after it was moved: node and groups.
        self.leaving: tuple[LiveNode, tuple[str, ...]] | None = None
        self.charge: Amounts | None = None
        self.request_class = request_class
        # What is looked at most often stands here too.
        self.cpu = request_class.cpu
        self.memory = request_class.memory
        self.gpu = request_class.gpu
        self.devices = request_class.devices
        self.kind = request_class.kind
        self.ext = request_class.ext
        self.request = request_class.request

    @property
    def order(self) -> tuple[bool, bool, int, float, str]:
        """Leader; has a priority, the larger the earlier; older; id."""
        spec = self.spec
        return (not spec.leader, spec.priority is None, -(spec.priority or 0), spec.created, spec.id)

    @property
    def portion(self) -> float:
        return self.request_class.portion

    @property
    def gpu_memory(self) -> int:
        return self.request_class.gpu_memory

    @property
    def optimistic(self) -> Amounts:
        return self.request_class.optimistic

    @property
    def home(self) -> LiveNode:
        """The node of a task that has one."""
        if self.node is None:
            raise LookupError(f"task {self.id} has no node")
        return self.node

    @property
    def wants_gpu(self) -> bool:
        return self.kind != KIND_CPU


class LivePodSet:
    """Tasks of one role; `tasks` is in task order."""

    __slots__ = (
        "active",
        "alive",
        "gated",
        "minimum",
        "name",
        "parent",
        "pipelined",
        "succeeded",
        "tasks",
        "topology",
        "used",
    )

    def __init__(self, name: str, minimum: int, topology: plain.TopologyConstraint | None) -> None:
        self.name = name
        self.minimum = minimum
        self.topology = topology
        self.parent: LiveGroup | None = None
        self.tasks: list[LiveTask] = []
        # Numbers of tasks, by the sets of states that the rules speak of.
        self.active = 0
        self.used = 0
        self.alive = 0
        self.gated = 0
        self.pipelined = 0
        self.succeeded = 0

    def count(self, status: int, sign: int) -> None:
        if st.ACTIVE[status]:
            self.active += sign
            self.used += sign
            self.alive += sign
            if status == st.PIPELINED:
                self.pipelined += sign
        elif st.USED[status]:
            self.used += sign
        elif st.ALIVE[status]:
            self.alive += sign
            if status == st.GATED:
                self.gated += sign
        elif status == st.SUCCEEDED:
            self.succeeded += sign

    @property
    def satisfied(self) -> bool:
        return self.active >= self.minimum


class LiveGroup:
    """An inner node of the tree of subgroups; the root of every job is one."""

    __slots__ = ("groups", "minimum", "name", "parent", "pod_sets", "topology")

    def __init__(self, name: str, minimum: int | None, topology: plain.TopologyConstraint | None) -> None:
        self.name = name
        #: How many members must be satisfied; None is all.
        self.minimum = minimum
        self.topology = topology
        self.parent: LiveGroup | None = None
        self.groups: list[LiveGroup] = []
        self.pod_sets: list[LivePodSet] = []

    @property
    def members(self) -> list[LiveGroup | LivePodSet]:
        return [*self.groups, *self.pod_sets]

    @property
    def threshold(self) -> int:
        return len(self.groups) + len(self.pod_sets) if self.minimum is None else self.minimum

    @property
    def satisfied_members(self) -> int:
        return sum(member.satisfied for member in self.groups) + sum(member.satisfied for member in self.pod_sets)

    @property
    def satisfied(self) -> bool:
        return self.satisfied_members >= self.threshold

    def all_pod_sets(self) -> list[LivePodSet]:
        if not self.groups:
            return self.pod_sets
        pod_sets = [pod_set for group in self.groups for pod_set in group.all_pod_sets()]
        return pod_sets + self.pod_sets


class LiveJob:
    __slots__ = (
        "_root",
        "alike",
        "cache",
        "created",
        "id",
        "last_start",
        "pending",
        "pod_sets",
        "preemptible",
        "priority",
        "queue",
        "spec",
        "stale_since",
        "tasks",
        "version",
    )

    def __init__(self, spec: plain.Job, queue: LiveQueue, classes: RequestClasses) -> None:
        self.spec = spec
        self.id = spec.id
        self.queue = queue
        self.priority = spec.priority
        self.preemptible = spec.preemptible
        self.created = spec.created
        self.last_start = spec.last_start
        self.stale_since = spec.stale_since
        #: Made when asked for, if it has but one pod set: most running jobs are never asked.
        self._root: LiveGroup | None = None
        if spec.groups or spec.pod_sets:
            self._root = _tree(spec)
            self.pod_sets = self._root.all_pod_sets()
        else:
            self.pod_sets = [LivePodSet(plain.DEFAULT_POD_SET, spec.min_available, None)]
        self.tasks: list[LiveTask] = []
        #: Number of pending tasks.
        self.pending = 0
        by_name = {pod_set.name: pod_set for pod_set in self.pod_sets} if len(self.pod_sets) > 1 else None
        pod_set = self.pod_sets[0]
        for task_spec in spec.tasks:
            if by_name is not None:
                pod_set = by_name[task_spec.pod_set]
            task = LiveTask(task_spec, self, pod_set, classes.of(task_spec))
            pod_set.tasks.append(task)
            pod_set.count(task.status, 1)
            if task.status == st.PENDING:
                self.pending += 1
            self.tasks.append(task)
        if len(self.tasks) > 1:
            for pod_set in self.pod_sets:
                pod_set.tasks.sort(key=_task_order)
        #: Raised by every change of a task; what is cached holds for one version.
        self.version = 0
        self.cache: dict[str, tuple[int, object]] = {}
        #: What it has in common with jobs that are refused alike, None if nothing; UNKNOWN until asked for.
        self.alike: Alike | object | None = UNKNOWN

    @property
    def root(self) -> LiveGroup:
        """The tree of its subgroups."""
        if self._root is None:
            self._root = LiveGroup("", self.spec.min_sub_group, self.spec.topology)
            self._root.pod_sets = self.pod_sets
            self.pod_sets[0].parent = self._root
        return self._root

    def cut(self) -> None:
        """Let go of its tasks and its tree, which point back at it."""
        self.tasks.clear()
        for pod_set in self.pod_sets:
            pod_set.tasks.clear()
            pod_set.parent = None
        self._root = None

    @property
    def active(self) -> int:
        return sum(pod_set.active for pod_set in self.pod_sets)

    def elastic_state(self) -> int:
        """0 below its minimum, 1 exactly at it, 2 above; by pod set, any below first, then any above."""
        state = 1
        for pod_set in self.pod_sets:
            if pod_set.active < pod_set.minimum:
                return 0
            if pod_set.active > pod_set.minimum:
                state = 2
        return state


def _task_order(task: LiveTask) -> tuple[bool, bool, int, float, str]:
    return task.order


def _tree(spec: plain.Job) -> LiveGroup:
    root = LiveGroup("", spec.min_sub_group, spec.topology)
    _grow(root, spec.groups, spec.pod_sets)
    return root


def _grow(group: LiveGroup, groups: tuple[plain.SubGroup, ...], pod_sets: tuple[plain.JobPodSet, ...]) -> None:
    for inner in groups:
        child = LiveGroup(inner.name, inner.min_sub_group, inner.topology)
        child.parent = group
        group.groups.append(child)
        _grow(child, inner.groups, inner.pod_sets)
    for leaf in pod_sets:
        pod_set = LivePodSet(leaf.name, leaf.min_available, leaf.topology)
        pod_set.parent = group
        group.pod_sets.append(pod_set)
