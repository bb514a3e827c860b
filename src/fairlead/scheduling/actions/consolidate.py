"""Consolidation: move running work together so that a pending job fits. Every victim finds a new place."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.actions.search import Search
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import LiveQueue
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.placement.gpus import free_memory
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.evictions import Usage
from fairlead.scheduling.solver.filters import asked_gpus
from fairlead.scheduling.solver.scenarios import PlacementProbe, Unit
from fairlead.scheduling.solver.solver import Solver
from fairlead.scheduling.solver.victims import VictimOrder


def consolidate(session: SchedulingSession, record: Record) -> None:
    if session.settings.max_consolidation_victims == 0:
        return
    Search("consolidation", _prepare, per_queue=False).run(session, record)


def _prepare(session: SchedulingSession, job: LiveJob, usage: Usage) -> Solver | None:
    tasks = tasks_to_place(job, real=False)
    if sum(asked_gpus(task) for task in tasks) > sum(session.free_gpus().amounts):
        return None
    # Requests by memory are compared by the memory of one device each.
    if sum(task.gpu_memory for task in tasks) > sum(free_memory(node) for node in session.nodes):
        return None
    return Solver(session, job, lambda: _victims(session, job), _all_placed_again)


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

    return VictimOrder(session.possible_victims(), session.queues, session.total, _any_queue, accept)


def _any_queue(queue: LiveQueue) -> bool:
    return True


def _all_placed_again(probe: PlacementProbe, units: Sequence[Unit]) -> bool:
    return not any(task.status == st.RELEASING for unit in units for task in unit)
