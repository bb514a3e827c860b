"""Cheap checks that an accumulated set of victims must pass before it is simulated.

The set only grows. A set that fails a check may pass once it has more victims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from fairlead.scheduling.model.live import LiveGroup, LiveJob, LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_MEMORY
from fairlead.scheduling.placement.predicates import matches
from fairlead.scheduling.session.session import SchedulingSession

#: GPUs are compared in devices; sums of parts of GPUs may be off by this much.
EPSILON = 1e-9


def asked_gpus(task: LiveTask) -> float:
    """GPUs of a task as filters count them: memory requests count nothing."""
    return 0 if task.kind == KIND_MEMORY else task.request[2] / 1000


def freed_gpus(task: LiveTask) -> float:
    return task.charge[2] / 1000 if task.charge is not None else 0


class GpuFilter:
    """Whether demands, largest first, find room on as many of the freest nodes as there are demands."""

    def __init__(self, session: SchedulingSession, demands: Sequence[float]) -> None:
        self.base = session.free_gpus()
        self.demands = sorted(demands, reverse=True)
        self.count = len(demands)
        self.free: dict[int, float] = {}
        self.passed = not self.demands or self.demands[0] == 0

    def add(self, tasks: Iterable[LiveTask]) -> None:
        if self.passed:
            return
        for task in tasks:
            if task.node is not None:
                index = task.node.index
                self.free[index] = self.free.get(index, self.base.amounts[index]) + freed_gpus(task)

    def ok(self) -> bool:
        """Capacity only grows, so a set that passed once passes for good."""
        if not self.passed:
            self.passed = self._matches()
        return self.passed

    def _matches(self) -> bool:
        freest = islice(self.base.freest(self.free), self.count)
        if self.demands[0] == self.demands[-1]:
            return self._equal_demands_fit(freest)
        holders = list(freest)
        for demand in self.demands:
            if demand == 0:
                return True
            for position, amount in enumerate(holders):
                if amount + EPSILON >= demand:
                    holders[position] -= demand
                    break
            else:
                return False
        return True

    def _equal_demands_fit(self, freest: Iterable[float]) -> bool:
        """First fit of equal demands fills node after node: count how many each of the freest nodes holds."""
        demand, holds = self.demands[0], 0
        for amount in freest:
            if amount < demand - EPSILON:
                break
            holds += int((amount + EPSILON) / demand)
        return holds >= self.count


class AffinityFilter:
    """Every probed task with a node selector or a required node affinity has a node among those in play."""

    def __init__(self, session: SchedulingSession, tasks: Sequence[LiveTask], nodes: Iterable[LiveNode]) -> None:
        self.session = session
        bound = [task for task in tasks if task.spec.node_selector or task.spec.node_affinity]
        self.open = {id(task.request_class): task for task in bound}
        self._try(nodes)

    def add(self, tasks: Iterable[LiveTask]) -> None:
        if self.open:
            self._try(task.node for task in tasks if task.node is not None)

    def _try(self, nodes: Iterable[LiveNode]) -> None:
        for node in nodes:
            for key, task in list(self.open.items()):
                if _may_go(task, node):
                    del self.open[key]

    def ok(self) -> bool:
        return not self.open


def _may_go(task: LiveTask, node: LiveNode) -> bool:
    labels = node.spec.labels
    if any(labels.get(key) != value for key, value in task.spec.node_selector.items()):
        return False
    terms = task.spec.node_affinity
    return not terms or any(term and all(matches(requirement, labels) for requirement in term) for term in terms)


class TopologyFilter:
    """Whether groups with a required level find enough GPUs in domains of that level, largest demand first.

    The demand of a group includes its running tasks, and a domain is the value of one label. As in KAI, this can refuse
    a job that would fit.
    """

    def __init__(self, session: SchedulingSession, job: LiveJob) -> None:
        self.demands: dict[str, list[float]] = {}
        _collect_demands(job.root, self.demands)
        self.capacity: dict[str, dict[str, float]] = {level: {} for level in self.demands}
        if self.demands:
            amounts = session.free_gpus().amounts
            for node in session.nodes:
                self._give(node, amounts[node.index])

    def _give(self, node: LiveNode, amount: float) -> None:
        for level, domains in self.capacity.items():
            value = node.spec.labels.get(level)
            if value:
                domains[value] = domains.get(value, 0) + amount

    def add(self, tasks: Iterable[LiveTask]) -> None:
        if self.demands:
            for task in tasks:
                if task.node is not None:
                    self._give(task.node, freed_gpus(task))

    def ok(self) -> bool:
        for level, demands in self.demands.items():
            holders = sorted(self.capacity[level].values(), reverse=True)
            for demand in sorted(demands, reverse=True):
                if demand == 0:
                    break
                for position, amount in enumerate(holders):
                    if amount + EPSILON >= demand:
                        holders[position] -= demand
                        break
                else:
                    return False
        return True


def _collect_demands(group: LiveGroup, demands: dict[str, list[float]]) -> None:
    if group.topology is not None and group.topology.required:
        total = sum(asked_gpus(task) for pod_set in group.all_pod_sets() for task in pod_set.tasks)
        demands.setdefault(group.topology.required, []).append(total)
    for inner in group.groups:
        _collect_demands(inner, demands)
