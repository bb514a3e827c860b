"""Consolidation: move running work together so that a pending job fits. Every victim finds a new place."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.actions.allocate import pending_requests
from fairlead.scheduling.actions.search import Search
from fairlead.scheduling.fairness.usage import Usage
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob, LiveTask
from fairlead.scheduling.model.queues import GPU
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.placement.gpus import free_memory
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.bounds import has_slots
from fairlead.scheduling.solver.filters import asked_gpus
from fairlead.scheduling.solver.min_runtime import is_elastic
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.solver import Rules, Solver
from fairlead.scheduling.solver.victims import VictimOrder, active_tasks


def consolidate(session: SchedulingSession, record: Record) -> None:
    if session.settings.max_consolidation_victims == 0:
        return
    Search("consolidation", _Consolidation().prepare, _exceed_free_gpus, per_queue=False).run(session, record)


def _exceed_free_gpus(session: SchedulingSession) -> bool:
    """Whether every pending job asks for more GPUs than are free: moving others only gathers what is free."""
    if session.classes.has_shared_requests:
        return False
    free = 1000 * sum(session.free_gpus().amounts)
    return all(request[GPU] > free for _, request in pending_requests(session))


class _Consolidation:
    """The searches of one cycle, and the victims that they have in common."""

    def __init__(self) -> None:
        #: The commit at which the victims were collected.
        self.commit = -1
        self.victims: list[LiveTask] | None = None

    def prepare(self, session: SchedulingSession, job: LiveJob, usage: Usage) -> Solver | None:
        tasks = tasks_to_place(job, real=False)
        if sum(asked_gpus(task) for task in tasks) > sum(session.free_gpus().amounts):
            return None
        # Requests by memory are compared by the memory of one device each.
        asked_memory = sum(task.gpu_memory for task in tasks)
        if asked_memory and asked_memory > sum(free_memory(node) for node in session.nodes):
            return None
        if not session.plain and job.pending == len(job.tasks) and not self._has_slots(session, job, tasks):
            return None
        return Solver(session, job, lambda: _victims(session, job), _RULES)

    def _has_slots(self, session: SchedulingSession, job: LiveJob, tasks: list[LiveTask]) -> bool:
        """The victims are the same for all jobs that hold nothing. Elastic ones change the order as they shrink."""
        if self.commit != session.commits:
            self.commit = session.commits
            self.victims = _collect(_victims(session, job))
        return self.victims is None or has_slots(session, tasks, self.victims)


def _collect(order: VictimOrder) -> list[LiveTask] | None:
    """The tasks of all victims, or None if one of them is elastic."""
    tasks: list[LiveTask] = []
    while (victim := order.pop()) is not None:
        if is_elastic(victim):
            return None
        tasks += active_tasks(victim)
    return tasks


def _victims(session: SchedulingSession, job: LiveJob) -> VictimOrder:
    """Any preemptible job of any queue; as in KAI one more than the limit says gets in."""
    limit = session.settings.max_consolidation_victims
    chosen: dict[str, bool] = {}

    def accept(victim: LiveJob) -> bool:
        if victim.id == job.id:
            return False
        if limit >= 0 and victim.id not in chosen:
            chosen[victim.id] = len(chosen) <= limit
        return chosen.get(victim.id, True)

    return VictimOrder(session.possible_victims(), session.queues.values(), session.total, accept)


def _all_placed_again(probe: PlacementProbe, units: Sequence[Unit]) -> bool:
    return not any(task.status == st.RELEASING for unit in units for task in unit)


_RULES = Rules(_all_placed_again, moves_only=True)
