"""The placement strategy `defragment`: put a task where the least of what is left becomes useless.

What is left on a node is useless to a kind of task that does not fit there, and in part to one that does: GPUs with too
little room. Weighed with how often each kind is asked for, this is the fragmentation of a node (Weng et al., "Beware of
Fragmentation", USENIX ATC 2023). To it comes what cannot be used because the node will run out of CPU first, at the
average CPU per GPU of the workload. Differences below a tenth of a GPU do not count: then the first node by name wins,
so that nodes fill one after another.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate

from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_MEMORY, KIND_MIG, KIND_PORTION, RequestClass

#: Steps, in thousandths of a GPU, in which the cost of a placement is compared.
STEP = 100
#: Weight of GPUs that will lack CPU.
STRANDED = 0.5

#: Free thousandths of every GPU of a node, smallest first.
Gpus = tuple[int, ...]


class Fragmentation:
    """Costs of states of nodes for the workload of a session; equal states are reckoned once."""

    def __init__(self, tasks: Iterable[RequestClass]) -> None:
        kinds: dict[tuple[int, int], list[int]] = {}
        self.count = 0
        cpu = gpu = 0.0
        for task in tasks:
            self.count += 1
            cpu += task.cpu
            gpu += task.request[2]
            number, part = devices_of(task)
            if number:
                kinds.setdefault((number, part), []).append(task.cpu)
        #: Devices, thousandths of each, CPU requests in rising order.
        self.kinds = [(number, part, sorted(cpus)) for (number, part), cpus in sorted(kinds.items())]
        self.with_gpu = sum(len(cpus) for _, _, cpus in self.kinds)
        self.enough_cpu: dict[int, list[int]] = {}
        self.cpu_per_gpu = cpu / gpu if gpu else 0
        self.known: dict[tuple[int, Gpus], float] = {}
        #: By state of a node, then by request class.
        self.states: dict[tuple[int, Gpus], dict[int, int]] = {}
        #: Per node: stamp of its books, free CPU, free parts, and the ranks that are known for them.
        self.nodes: dict[int, tuple[int, int, Gpus, dict[int, int]]] = {}

    def rank(self, task: LiveTask, node: LiveNode) -> int:
        """Cost of putting the task on the node, in steps; less is better."""
        now = self.nodes.get(node.index)
        if now is None or now[0] != node.stamp:
            cpu, gpus = node.idle_cpu + node.releasing_cpu, free_parts(node)
            ranks = self.states.setdefault((cpu, gpus), {})
            now = self.nodes[node.index] = (node.stamp, cpu, gpus, ranks)
        rank = now[3].get(task.request_class.index)
        if rank is None:
            _, cpu, gpus, ranks = now
            cost = self._cost(cpu - task.cpu, place(task.request_class, gpus)) - self._cost(cpu, gpus)
            rank = ranks[task.request_class.index] = int(cost // STEP)
        return rank

    def _cost(self, cpu: int, gpus: Gpus) -> float:
        key = (cpu, gpus)
        cost = self.known.get(key)
        if cost is None:
            cost = self.known[key] = self.fragments(cpu, gpus) + STRANDED * self._stranded(cpu, gpus)
        return cost

    def _stranded(self, cpu: int, gpus: Gpus) -> float:
        return max(0.0, sum(gpus) - cpu / self.cpu_per_gpu) if self.cpu_per_gpu else 0

    def fragments(self, cpu: int, gpus: Gpus) -> float:
        """Thousandths of GPUs that are useless, on average over the kinds of tasks.

        To a kind that does not fit all that is free is useless; to one that does, the GPUs with less than it asks for.
        """
        total = sum(gpus)
        if not total:
            return 0
        count = len(gpus)
        # What the GPUs from each position on have together.
        above = [total, *(total - passed for passed in accumulate(gpus))]
        useful = 0
        for (number, part, _), fitting in zip(self.kinds, self._fitting(cpu), strict=True):
            if fitting and gpus[-1] >= part:
                first = bisect_left(gpus, part)
                if count - first >= number:
                    useful += fitting * above[first]
        return total * self.with_gpu / self.count - useful / self.count

    def _fitting(self, cpu: int) -> list[int]:
        """How many tasks of each kind the CPU suffices for."""
        counts = self.enough_cpu.get(cpu)
        if counts is None:
            counts = self.enough_cpu[cpu] = [bisect_right(cpus, cpu) for _, _, cpus in self.kinds]
        return counts


def devices_of(task: RequestClass) -> tuple[int, int]:
    """Number of devices and thousandths of each; MIG is left out."""
    if task.kind == KIND_MIG:
        return (0, 0)
    if task.kind in (KIND_PORTION, KIND_MEMORY):
        return (task.devices, int(task.request[2] / task.devices))
    return (task.gpu, 1000)


def free_parts(node: LiveNode) -> Gpus:
    whole = max(0, node.idle_gpu + node.releasing_gpu)
    if not node.groups:
        return (1000,) * whole
    parts = []
    for group in node.groups.values():
        free = node.gpu_memory - group.allocated + group.releasing - group.pipelined
        parts.append(max(0, 1000 * free // node.gpu_memory))
    parts.sort()
    return (*parts, *(1000,) * whole)


def place(task: RequestClass, gpus: Gpus) -> Gpus:
    """What is left after the task took the fullest GPUs that have room."""
    number, part = devices_of(task)
    free_gpus = list(gpus)
    for position, free in enumerate(gpus):
        if not number:
            break
        if free >= part:
            free_gpus[position] = free - part
            number -= 1
    free_gpus.sort()
    return tuple(free_gpus)
