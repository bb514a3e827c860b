"""What a cycle decided so far: who was evicted for whom, why jobs wait, who started. `outcome` writes it down."""

from __future__ import annotations

from collections.abc import Callable

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import Eviction, Failure, Reason
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.snapshot import Action
from fairlead.scheduling.session.reasons import UNEXPLAINED, explain_task
from fairlead.scheduling.session.session import SchedulingSession

Try = Callable[[SchedulingSession, LiveJob, "Record"], bool]


class Record:
    def __init__(self) -> None:
        #: Job, then pool, to the reason it did not start there.
        self.reasons: dict[str, dict[str, Reason]] = {}
        self.evictions: dict[str, Eviction] = {}
        #: Task to the action that placed it.
        self.placed_by: dict[str, Action] = {}
        self.last_starts: dict[str, float] = {}
        self.stale: dict[str, float | None] = {}
        self.failures: list[Failure] = []
        self.failed_jobs: set[str] = set()

    def guard(self, session: SchedulingSession, job: LiveJob, action: Action, attempt: Try) -> bool:
        """Try a job; an error is the end of this job's attempts and of nothing else."""
        if job.id in self.failed_jobs:
            return False
        try:
            return attempt(session, job, self)
        except Exception as error:
            session.rollback(0)
            self.failed_jobs.add(job.id)
            self.failures.append(Failure(job=job.id, action=action, error=f"{type(error).__name__}: {error}"))
            self.blocked(session, job, Reason(code="Failed", detail=f"{type(error).__name__}: {error}"))
            return False

    def blocked(self, session: SchedulingSession, job: LiveJob, reason: Reason) -> None:
        if session.is_explained:
            self.reasons.setdefault(job.id, {})[session.pool] = reason

    def explain(self, session: SchedulingSession, job: LiveJob) -> None:
        """Look into a reason that was put off."""
        pools = self.reasons.get(job.id)
        if pools is not None and pools.get(session.pool) is UNEXPLAINED:
            waiting = [task for task in job.tasks if task.status == st.PENDING]
            if waiting:
                pools[session.pool] = explain_task(session, waiting[0], session.nodes, 0, 1)

    def placed(self, session: SchedulingSession, action: Action) -> None:
        """Note which action placed the tasks of the attempt that is about to be committed."""
        for task, *_ in session.log:
            if task.status in (st.ALLOCATED, st.PIPELINED):
                self.placed_by[task.id] = action

    def started(self, session: SchedulingSession, job: LiveJob) -> None:
        job.last_start = session.now
        self.last_starts[job.id] = session.now
