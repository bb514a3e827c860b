"""Which victims to try together. Victims accumulate in the victims' order; generators pick subsets of them by node.

`node_local` frees one node at a time, `multi_node` as many as a gang needs. A scenario is a list of units; a unit is
evicted whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairlead.scheduling.model.live import LiveJob, LiveNode, LiveTask
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.filters import (
    EPSILON,
    AffinityFilter,
    GpuFilter,
    TopologyFilter,
    asked_gpus,
    freed_gpus,
)
from fairlead.scheduling.solver.partial_job import PartialJob
from fairlead.scheduling.solver.returns import ReturnsByNode
from fairlead.scheduling.solver.victims import VictimOrder, active_tasks, next_unit

Unit = list[LiveTask]


class PlacementProbe:
    """One question to a generator: can these first tasks of the job be placed, given what earlier probes evict?"""

    def __init__(
        self,
        session: SchedulingSession,
        job: LiveJob,
        tasks: Sequence[LiveTask],
        loaded: Sequence[Unit],
        feasible: Sequence[LiveNode],
    ) -> None:
        self.session = session
        self.tasks = tasks
        self.job = PartialJob(job, [*active_tasks(job), *tasks], shrink=True)
        self.loaded = loaded
        self.loaded_tasks = [task for unit in loaded for task in unit]
        self.nodes = {node.index: node for node in feasible}
        for task in self.loaded_tasks:
            if task.node is not None:
                self.nodes[task.node.index] = task.node


class VictimAccumulator:
    """Pops victims one unit at a time; tasks that are already loaded are skipped."""

    def __init__(
        self,
        probe: PlacementProbe,
        victims: VictimOrder,
        is_small: Callable[[LiveJob], bool] | None = None,
        returns: ReturnsByNode | None = None,
    ) -> None:
        """`is_small`: victims that cannot help, alone or together with any others like them."""
        self.probe = probe
        self.victims = victims
        self.is_small = is_small
        self.returns = returns
        #: Nodes with a victim that is not small; scenarios without one of them are left out.
        self.hopeful: set[int] = set()
        #: Every scenario has a victim that is not small.
        self.is_hopeful = is_small is None or not all(self._is_small(unit) for unit in probe.loaded)
        self.loaded = {task.id for task in probe.loaded_tasks}
        self.units: list[Unit] = []
        self.by_job: dict[str, list[LiveTask]] = {}
        #: Node index to the jobs with a proposed task there, in order of appearance.
        self.jobs_on: dict[int, dict[str, None]] = {}
        #: Node index to its free GPUs once all proposed victims are gone, and to the numbers of the units there.
        self.capacity: dict[int, float] = {}
        self.units_on: dict[int, list[int]] = {}
        session = probe.session
        self.filters = (
            AffinityFilter(session, probe.tasks, probe.nodes.values()),
            TopologyFilter(session, probe.job),
            GpuFilter(session, [asked_gpus(task) for task in probe.tasks]),
        )
        for check in self.filters:
            check.add(probe.loaded_tasks)

    def ok(self) -> bool:
        return all(check.ok() for check in self.filters)

    def grow(self) -> Unit | None:
        """Add the next unit; None when there is no victim left."""
        while (job := self.victims.pop()) is not None:
            unit = next_unit(job)
            tasks = active_tasks(job)
            if any(task.id in self.loaded for task in unit):
                rest = [task for task in tasks if task.id not in self.loaded]
                if rest:
                    self.victims.push(job, rest)
                continue
            if len(unit) < len(tasks):
                chosen = {task.id for task in unit}
                self.victims.push(job, [task for task in tasks if task.id not in chosen])
            self._add(unit)
            return unit
        return None

    def _add(self, unit: Unit) -> None:
        number, free = len(self.units), self.probe.session.free_gpus().amounts
        self.units.append(unit)
        self.by_job.setdefault(unit[0].job.id, []).extend(unit)
        for task in unit:
            if task.node is not None:
                index = task.node.index
                self.jobs_on.setdefault(index, {})[task.job.id] = None
                self.capacity[index] = self.capacity.get(index, free[index]) + freed_gpus(task)
                numbers = self.units_on.setdefault(index, [])
                if not numbers or numbers[-1] != number:
                    numbers.append(number)
        for check in self.filters:
            check.add(unit)
        if self.returns is not None:
            self.returns.add(unit)
        if not self.is_hopeful and not self._is_small(unit):
            self.hopeful.update(task.node.index for task in unit if task.node is not None)

    def _is_small(self, unit: Unit) -> bool:
        job = unit[0].job
        return self.is_small is not None and len(unit) == len(job.tasks) and self.is_small(job)

    def may_help(self, node: int) -> bool:
        """Whether the victims on a node, with those that are loaded, are not all small."""
        return self.is_hopeful or node in self.hopeful

    def all_return(self, nodes: Sequence[int]) -> bool:
        """Whether the victims on these nodes certainly leave nothing to the winner."""
        return self.returns is not None and self.returns.all_return(nodes)


def node_local(accumulator: VictimAccumulator) -> Iterator[list[Unit]]:
    """Per node on which the latest victim's job has any task: the jobs proposed there, with their proposed tasks."""
    if accumulator.ok() and accumulator.loaded:
        yield []
    while (unit := accumulator.grow()) is not None:
        if not accumulator.ok():
            continue
        seen: set[frozenset[str]] = set()
        for index in _nodes_of(accumulator.probe.session, unit[0].job):
            jobs = accumulator.jobs_on.get(index)
            if not jobs or not accumulator.may_help(index) or accumulator.all_return([index]):
                continue
            units = [list(accumulator.by_job[job]) for job in jobs]
            tasks = frozenset(task.id for own in units for task in own)
            if tasks not in seen:
                seen.add(tasks)
                yield units


def _nodes_of(session: SchedulingSession, job: LiveJob) -> list[int]:
    """Nodes by name (the order of their indices) that any task of the job names, whatever its state."""
    indices = set()
    for task in job.tasks:
        node = task.node or session.node_by_name.get(task.spec.node or "")
        if node is not None:
            indices.add(node.index)
    return sorted(indices)


def multi_node(accumulator: VictimAccumulator) -> Iterator[list[Unit]]:
    """Nodes with victims, smallest capacity first: the shortest prefix that covers the demand, then longer ones."""
    if accumulator.ok() and accumulator.loaded:
        yield from _prefixes(accumulator)
    while accumulator.grow() is not None:
        if accumulator.ok() and (accumulator.is_hopeful or accumulator.hopeful):
            yield from _prefixes(accumulator)


def _prefixes(accumulator: VictimAccumulator) -> Iterator[list[Unit]]:
    probe = accumulator.probe
    capacity, units_on = _capacities(accumulator), accumulator.units_on
    demands = [asked_gpus(task) for task in probe.tasks]
    smallest = min(demands)
    # Dicts keep the order in which nodes were first seen, and sorting is stable: that breaks ties.
    nodes = [index for index in capacity if not smallest or capacity[index] + EPSILON >= smallest]
    nodes.sort(key=capacity.__getitem__)
    length = _shortest(nodes, capacity, sum(demands) - _baseline(accumulator))
    hopeful = next((number for number, index in enumerate(nodes) if accumulator.may_help(index)), len(nodes))
    step = 1
    while length <= len(nodes):
        if (length > hopeful or accumulator.is_hopeful) and not accumulator.all_return(nodes[:length]):
            chosen = {number for index in nodes[:length] for number in units_on[index]}
            yield [accumulator.units[number] for number in sorted(chosen)]
        if length == len(nodes):
            return
        length = min(length + step, len(nodes))
        step *= 2


def _capacities(accumulator: VictimAccumulator) -> dict[int, float]:
    """GPUs of every node with proposed victims once all of them and the loaded ones are gone."""
    capacity = dict(accumulator.capacity)
    for task in accumulator.probe.loaded_tasks:
        if task.node is not None and task.node.index in capacity:
            capacity[task.node.index] += freed_gpus(task)
    return capacity


def _baseline(accumulator: VictimAccumulator) -> float:
    """GPUs on nodes without proposed victims: free ones and those of loaded tasks."""
    probe = accumulator.probe
    free = probe.session.free_gpus().amounts
    total = sum(free[index] for index in probe.nodes if index not in accumulator.jobs_on)
    for task in probe.loaded_tasks:
        if task.node is not None and task.node.index not in accumulator.jobs_on:
            total += freed_gpus(task)
    return total


def _shortest(nodes: list[int], capacity: dict[int, float], demand: float) -> int:
    if demand <= EPSILON:
        return 0
    covered = 0.0
    for length, index in enumerate(nodes, start=1):
        covered += capacity[index]
        if covered + EPSILON >= demand:
            return length
    return len(nodes) + 1
