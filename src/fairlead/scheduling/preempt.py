"""Preemption inside a queue: a job takes the place of jobs with strictly lower priority."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.capacity import optimistic_request, quota_breach
from fairlead.scheduling.evictions import Usage
from fairlead.scheduling.jobindex import held_with_promises
from fairlead.scheduling.live import LiveJob
from fairlead.scheduling.minruntime import is_elastic, is_protected, leaves_minimum, preempt_until
from fairlead.scheduling.record import Record
from fairlead.scheduling.scenarios import Unit
from fairlead.scheduling.searching import Search
from fairlead.scheduling.session import Session
from fairlead.scheduling.solver import Solver
from fairlead.scheduling.subgroups import tasks_to_place
from fairlead.scheduling.victims import VictimOrder


def preempt(session: Session, record: Record) -> None:
    Search("preempt", _prepare).run(session, record)


def _prepare(session: Session, job: LiveJob, usage: Usage) -> Solver | None:
    if job.priority <= session.lowest_priority.get(job.queue.name, job.priority):
        return None
    request = optimistic_request(tasks_to_place(job, real=False))
    if not job.preemptible and quota_breach(job, request) is not None:
        return None
    return Solver(
        session,
        job,
        lambda: _victims(session, job),
        lambda probe, units: _validate(session, units),
        lambda: _most_freed(session, job),
    )


def _most_freed(session: Session, job: LiveJob) -> float:
    """More than all that jobs of lower priority hold."""
    entries = session.possible_victims().leaves.get(job.queue.name, [])
    gpus = sum(held_with_promises(victim) for _, victim in entries if victim.priority < job.priority)
    return gpus / 1000 + 1


def _victims(session: Session, job: LiveJob) -> VictimOrder:
    def accept(victim: LiveJob) -> bool:
        if victim.priority >= job.priority or victim.id == job.id:
            return False
        return is_elastic(victim) or not is_protected(session, preempt_until(session, victim))

    return VictimOrder(
        session.possible_victims(), session.queues, session.total, lambda queue: queue is job.queue, accept
    )


def _validate(session: Session, units: Sequence[Unit]) -> bool:
    protected = {
        unit[0].job.id: is_protected(session, preempt_until(session, unit[0].job))
        for unit in units
        if is_elastic(unit[0].job)
    }
    return leaves_minimum(units, protected)
