"""Preemption inside a queue: a job takes the place of jobs with strictly lower priority."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.actions.search import Search
from fairlead.scheduling.fairness.job_index import held_with_promises
from fairlead.scheduling.fairness.quota import optimistic_request, quota_breach
from fairlead.scheduling.fairness.usage import Usage
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import INFINITE
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.min_runtime import is_elastic, is_protected, leaves_minimum, preempt_until
from fairlead.scheduling.solver.scenarios import Unit
from fairlead.scheduling.solver.solver import Rules, Solver
from fairlead.scheduling.solver.victims import VictimOrder


def preempt(session: SchedulingSession, record: Record) -> None:
    Search("preempt", _prepare, _nobody_outranks).run(session, record)


def _nobody_outranks(session: SchedulingSession) -> bool:
    """Whether no queue has a pending job above the lowest priority in it. The first job of a leaf has the highest."""
    lowest = session.lowest_priority
    return not any(
        entries and entries[0][1].priority > lowest.get(leaf, INFINITE)
        for leaf, entries in session.ready_jobs().leaves.items()
    )


def _prepare(session: SchedulingSession, job: LiveJob, usage: Usage) -> Solver | None:
    if job.priority <= session.lowest_priority.get(job.queue.name, job.priority):
        return None
    request = optimistic_request(tasks_to_place(job, real=False))
    if not job.preemptible and quota_breach(job, request) is not None:
        return None
    rules = Rules(lambda probe, units: _validate(session, units), lambda: _max_freed(session, job))
    return Solver(session, job, lambda: _victims(session, job), rules)


def _max_freed(session: SchedulingSession, job: LiveJob) -> float:
    """More than all that jobs of lower priority hold."""
    entries = session.possible_victims().leaves.get(job.queue.name, [])
    gpus = sum(held_with_promises(victim) for _, victim in entries if victim.priority < job.priority)
    return gpus / 1000 + 1


def _victims(session: SchedulingSession, job: LiveJob) -> VictimOrder:
    def accept(victim: LiveJob) -> bool:
        if victim.priority >= job.priority or victim.id == job.id:
            return False
        return is_elastic(victim) or not is_protected(session, preempt_until(session, victim))

    return VictimOrder(session.possible_victims(), (job.queue,), session.total, accept)


def _validate(session: SchedulingSession, units: Sequence[Unit]) -> bool:
    protected = {
        unit[0].job.id: is_protected(session, preempt_until(session, unit[0].job))
        for unit in units
        if is_elastic(unit[0].job)
    }
    return leaves_minimum(units, protected)
