"""The loop that consolidation, reclaim and preemption share: every pending job once, in order, unless hopeless."""

from __future__ import annotations

from collections.abc import Callable

from fairlead.scheduling.actions.allocate import alike_key, ready_jobs
from fairlead.scheduling.fairness.job_order import JobOrder
from fairlead.scheduling.fairness.usage import Usage
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.live import Alike, LiveJob, LiveTask
from fairlead.scheduling.model.requests import KIND_MIG
from fairlead.scheduling.model.snapshot import Action
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.evictions import record_evictions
from fairlead.scheduling.solver.filters import asked_gpus
from fairlead.scheduling.solver.signatures import Failures
from fairlead.scheduling.solver.solver import Solver

#: A solver ready to search for the job, or None if its search has failed before it began.
Prepare = Callable[[SchedulingSession, LiveJob, Usage], Solver | None]


class Search:
    """One action of this kind. A job that is not admitted is skipped and counts as no failure."""

    def __init__(
        self,
        action: Action,
        prepare: Prepare,
        is_hopeless: Callable[[SchedulingSession], bool],
        admit: Callable[[LiveJob], bool] | None = None,
        per_queue: bool = True,
    ) -> None:
        self.action = action
        self.prepare = prepare
        #: Whether every search would fail as the cluster stands, found without looking at each job.
        self.is_hopeless = is_hopeless
        self.admit = admit
        self.per_queue = per_queue
        self.failures: dict[str, Failures] = {}
        #: Jobs of one task that got nothing here, by what such jobs have in common, with the commit at which that was.
        self.passed: dict[Alike, int] = {}

    def run(self, session: SchedulingSession, record: Record) -> None:
        if self._is_over(session):
            return
        order = JobOrder(session.total, session.used_queues)
        # Consolidation is for preemptible jobs only: a job that cannot be moved does not move others.
        leaves = ready_jobs(session, preemptible_only=self.action == "consolidation")
        order.fill(leaves, session.settings.queue_depth.get(self.action))

        def is_hopeless(job: LiveJob) -> bool:
            key = _alike(session, job)
            return key is not None and self.passed.get(key) == session.commits

        while (job := order.pop(is_hopeless, skip_alike=True)) is not None:
            if record.guard(session, job, self.action, self._try):
                if self._is_over(session):
                    return
            elif job.id not in record.failed_jobs:
                key = _alike(session, job)
                if key is not None:
                    self.passed[key] = session.commits

    def _is_over(self, session: SchedulingSession) -> bool:
        """The plain way asks job by job. So must whoever wants to know until when jobs delay evictions."""
        return not session.plain and not session.has_delays and self.is_hopeless(session)

    def _try(self, session: SchedulingSession, job: LiveJob, record: Record) -> bool:
        if (self.admit is not None and not self.admit(job)) or _is_delayed(session, job, record):
            return False
        owner = job.queue.name if self.per_queue else ""
        failures = self.failures.get(owner)
        if failures is None:
            failures = self.failures[owner] = Failures()
        if session.settings.use_signatures and failures.is_hopeless(job):
            return False
        if any(exceeds_all_nodes(session, task) for task in tasks_to_place(job, real=False)):
            return False
        usage = session.usage().now()
        solver = self.prepare(session, job, usage)
        if solver is None or not solver.solve():
            failures.add(job)
            return False
        record_evictions(session, record, self.action, job, solver.solution, usage)
        record.placed(session, self.action)
        session.commit()
        return True


def _alike(session: SchedulingSession, job: LiveJob) -> Alike | None:
    """Equal jobs of one queue and priority fail for the same reason until something changes; a delay is a job's own."""
    if not session.settings.use_signatures or job.spec.preemption_delay:
        return None
    return alike_key(session, job)


def _is_delayed(session: SchedulingSession, job: LiveJob, record: Record) -> bool:
    """A job may ask that for some time after its creation or last eviction nobody is evicted for it."""
    if not job.spec.preemption_delay:
        return False
    until = max(job.created, job.spec.last_eviction or 0) + job.spec.preemption_delay
    if session.now >= until:
        return False
    session.changes_at(until)
    reason = record.reasons.get(job.id, {}).get(session.pool)
    if reason is not None and reason.code not in ("NeverFits", "PreemptionDelayNotElapsed"):
        record.blocked(session, job, Reason(code="PreemptionDelayNotElapsed", until=until, causes=reason.causes))
    return True


def exceeds_all_nodes(session: SchedulingSession, task: LiveTask) -> bool:
    """No eviction helps a task that asks for more than the largest node has, resource by resource."""
    largest = session.largest
    if task.cpu > largest.get("cpu", 0) or task.memory > largest.get("memory", 0):
        return True
    if asked_gpus(task) > largest.get("gpu", 0) and task.kind != KIND_MIG:
        return True
    return any(amount > largest.get(name, 0) for name, amount in task.ext)
