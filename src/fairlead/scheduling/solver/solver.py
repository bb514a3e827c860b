"""Making room for a pending job by evicting others: what consolidation, reclaim and preemption share.

A job is probed with its first 1, 2, 4, ... tasks; the victims of a successful probe are the start of the next one. A
scenario is simulated on the session itself and can be undone: evict, place winner and victims in order, validate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveNode, LiveTask
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.session.attempt import PlacementAttempt
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.bounds import RoomForAll, has_slots, is_short
from fairlead.scheduling.solver.forecast import Forecast
from fairlead.scheduling.solver.last_in_line import LastInLine
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit, VictimAccumulator, multi_node, node_local
from fairlead.scheduling.solver.simulation import SimulationOrder
from fairlead.scheduling.solver.victims import VictimOrder
from fairlead.scheduling.solver.whole_gpus import MayLeave, WholeGpuForecast

Validator = Callable[[PlacementProbe, Sequence[Unit]], bool]
Generator = Callable[[VictimAccumulator], Iterator[list[Unit]]]

GENERATORS: tuple[Generator, ...] = (node_local, multi_node)


class Rules(NamedTuple):
    """What an action allows. The first rule decides; the others tell in advance what it will say."""

    is_allowed: Validator
    #: Fewer GPUs than this may be taken; None if that is not known.
    max_freed: Callable[[], float | None] | None = None
    #: Whether these jobs may be evicted for the job, if all other victims find a place again.
    may_leave: MayLeave | None = None
    #: Every victim must find a place again.
    moves_only: bool = False


class Solver:
    """One search for one job. After `solve` returned True the undo log holds the solution, ready to be committed."""

    def __init__(
        self,
        session: SchedulingSession,
        job: LiveJob,
        victims: Callable[[], VictimOrder],
        rules: Rules,
    ) -> None:
        self.session = session
        self.job = job
        self.victims = victims
        self.rules = rules
        self.feasible = feasible_nodes(session, job)
        self.failed: set[tuple[frozenset[str], frozenset[str], frozenset[str]]] = set()
        #: All units of the scenario that succeeded last.
        self.solution: list[Unit] = []
        #: How many units were loaded or proposed by then.
        self.accumulated = 0
        #: The undo log already holds the solution that the final probe would find.
        self.is_final = False
        #: What the search for the first task knows, without loaded victims.
        self.last: LastInLine | None = None
        #: No victims of a single node make room.
        self.is_local_hopeless = False

    def solve(self) -> bool:
        tasks = tasks_to_place(self.job, real=False)
        used_before = _used(self.job)
        if self._cannot_succeed(tasks):
            return False
        generators = GENERATORS if self.session.settings.multi_node_victims else GENERATORS[:1]
        if self.is_local_hopeless:
            generators = generators[1:]
        for generator in generators if tasks else ():
            loaded = self._search(generator, tasks)
            if self.is_final or (loaded is not None and self._probe(generator, tasks, loaded)):
                if _used(self.job) > used_before and all(p.used >= p.minimum for p in self.job.pod_sets):
                    return True
                self.session.rollback(0)
                return False
        return False

    def _cannot_succeed(self, tasks: list[LiveTask]) -> bool:
        if self.session.plain or self.session.classes.has_memory_requests:
            return False
        max_freed = self.rules.max_freed
        if max_freed is not None and is_short(tasks, self.session.free_gpus().exact_total, max_freed()):
            return True
        return bool(tasks) and not self.rules.moves_only and self._cannot_make_room(tasks[:1])

    def _cannot_make_room(self, tasks: list[LiveTask]) -> bool:
        """Whether no victims at all could make room for the first task."""
        last = self.last = LastInLine(PlacementProbe(self.session, self.job, tasks, [], self.feasible))
        if not last.knows_small():
            return False
        victims = self.victims()
        if victims.are_all(last.is_small):
            return True
        known = last.describe_all(victims)
        # Otherwise each victim leaves one node, and all that leave it find room on it again.
        self.is_local_hopeless = known is not None
        return known is not None and known.parts <= 1

    def _search(self, generator: Generator, tasks: list[LiveTask]) -> list[Unit] | None:
        """Victims of the largest number of tasks that could be placed; None if not even one could."""
        loaded: list[Unit] = []
        count, size = len(tasks), 1
        solved, failed = 0, count + 1
        while solved < count:
            if not self._probe(generator, tasks[:size], loaded):
                failed = size
                break
            if size == count and self._is_still_valid(generator):
                self.is_final = True
                return loaded
            loaded = self._needed()
            solved, size = size, min(size * 2, count)
        while failed - solved > 1 and solved < count:
            middle = (solved + failed) // 2
            if self._probe(generator, tasks[:middle], loaded):
                loaded = self._needed()
                solved = middle
            else:
                failed = middle
        return loaded if solved else None

    def _is_still_valid(self, generator: Generator) -> bool:
        """Whether the final probe, which starts from this solution, would simulate the same scenario again.

        Its first scenario is the loaded victims. It equals this one if no victim got its place back, and it passes the
        filters if it contains every victim proposed so far.
        """
        if self.session.plain or generator is not node_local or self.accumulated != len(self.solution):
            return False
        return all(any(task.status in (st.RELEASING, st.PIPELINED) for task in unit) for unit in self.solution)

    def _needed(self) -> list[Unit]:
        """Units of the solution of which a task left or moved; the trial itself is undone."""
        needed = [unit for unit in self.solution if any(task.status in (st.RELEASING, st.PIPELINED) for task in unit)]
        self.session.rollback(0)
        return needed

    def _probe(self, generator: Generator, tasks: list[LiveTask], loaded: list[Unit]) -> bool:
        probe = PlacementProbe(self.session, self.job, tasks, loaded, self.feasible)
        last = self._last_in_line(probe)
        is_small = last.is_small if last is not None and last.knows_small() else None
        returns = last.returns_by_node() if last is not None else None
        accumulator = VictimAccumulator(probe, self.victims(), is_small, returns)
        room = None if self.session.plain else RoomForAll(probe)
        forecasts = () if self.session.plain else (Forecast(probe), self._whole_gpu_forecast(probe))
        probed = frozenset(task.id for task in tasks)
        kept = frozenset(task.id for task in probe.loaded_tasks)
        for units in generator(accumulator):
            if last is not None and last.fails([*loaded, *units]):
                continue
            proposed = frozenset(task.id for unit in units for task in unit)
            mark = (probed, kept, proposed)
            # A scenario without victims is never tried, even if the job would fit.
            if (not proposed and not kept) or mark in self.failed:
                continue
            hopeless = room is not None and not (room.is_there(units) and self._has_slots(probe, units))
            hopeless = hopeless or any(forecast.fails([*loaded, *units]) for forecast in forecasts)
            if not hopeless and self._try(probe, units):
                self.solution = [*loaded, *units]
                self.accumulated = len(loaded) + len(accumulator.units)
                return True
            self.failed.add(mark)
        return False

    def _last_in_line(self, probe: PlacementProbe) -> LastInLine | None:
        if self.session.plain or self.rules.moves_only:
            return None
        is_first = self.last is not None and len(probe.tasks) == 1 and not probe.loaded
        return self.last if is_first else LastInLine(probe)

    def _whole_gpu_forecast(self, probe: PlacementProbe) -> WholeGpuForecast:
        return WholeGpuForecast(probe, self.rules.moves_only, self.rules.may_leave)

    def _has_slots(self, probe: PlacementProbe, units: list[Unit]) -> bool:
        if not self.rules.moves_only:
            return True
        return has_slots(self.session, probe.tasks, [*probe.loaded_tasks, *(task for unit in units for task in unit)])

    def _try(self, probe: PlacementProbe, units: list[Unit]) -> bool:
        every = [*probe.loaded, *units]
        nodes = dict(probe.nodes)
        for unit in units:
            for task in unit:
                if task.node is not None:
                    nodes[task.node.index] = task.node
        ordered = [nodes[index] for index in sorted(nodes)]
        if simulate(self.session, probe, every, ordered) and self.rules.is_allowed(probe, every):
            return True
        self.session.rollback(0)
        return False


def _used(job: LiveJob) -> int:
    return sum(pod_set.used for pod_set in job.pod_sets)


def simulate(
    session: SchedulingSession, probe: PlacementProbe, units: Sequence[Unit], nodes: Sequence[LiveNode]
) -> bool:
    """Evict, then let winner and victims place themselves in the normal order; False if the winner finds no place."""
    concerned: dict[str, LiveJob] = {}
    for unit in units:
        for task in unit:
            session.evict(task)
            concerned[task.job.id] = task.job
    concerned[probe.job.id] = probe.job
    order = SimulationOrder(session, concerned)
    while (job := order.pop()) is not None:
        mark = session.checkpoint()
        if PlacementAttempt(session, job, pipeline_only=True, explain=False).run(nodes):
            continue
        if job is probe.job:
            return False
        session.rollback(mark)
    return True


def feasible_nodes(session: SchedulingSession, job: LiveJob) -> list[LiveNode]:
    """Nodes with some free or releasing GPU; all of them if any task of the job needs no GPU."""
    if any(not task.wants_gpu for task in job.tasks):
        return session.nodes
    return list(session.free_gpus().feasible.values())
