"""Stale gangs: a job with active tasks and a pod set below its minimum is ended after a grace period."""

from __future__ import annotations

from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import Eviction
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.evictions import figures, pod_name


def evict_stale(session: SchedulingSession, record: Record) -> None:
    for job in list(session.jobs.values()):
        if job.stale_since is not None or is_stale(job):
            record.guard(session, job, "stalegangeviction", _judge)


def _judge(session: SchedulingSession, job: LiveJob, record: Record) -> bool:
    if not is_stale(job):
        if job.stale_since is not None:
            job.stale_since = None
            record.stale[job.id] = None
        return False
    if job.stale_since is None:
        job.stale_since = session.now
        record.stale[job.id] = session.now
    grace = job.spec.staleness_grace
    if grace is None:
        grace = session.settings.staleness_grace
    if grace < 0:
        return False
    if session.now - job.stale_since < grace:
        session.changes_at(job.stale_since + grace)
        return False
    _end(session, job, record)
    return True


def is_stale(job: LiveJob) -> bool:
    """Something is active, some pod set has fewer tasks on nodes than it needs, and nothing has succeeded."""
    pod_sets = job.pod_sets
    if len(pod_sets) == 1:
        only = pod_sets[0]
        return 0 < only.used < only.minimum and not only.succeeded
    if any(pod_set.succeeded for pod_set in pod_sets):
        return False
    if not any(pod_set.used for pod_set in pod_sets):
        return False
    return any(pod_set.used < pod_set.minimum for pod_set in pod_sets)


def _end(session: SchedulingSession, job: LiveJob, record: Record) -> None:
    usage = session.usage().now()
    minimum = sum(pod_set.minimum for pod_set in job.pod_sets)
    for task in job.tasks:
        if not st.ACTIVE[task.status]:
            continue
        promised, known = task.status == st.PIPELINED, record.evictions.get(task.id)
        session.evict(task)
        # What was only promised a place is not evicted, but what was moved there is.
        if not promised or known is not None:
            record.evictions[task.id] = Eviction(
                task=task.id,
                job=job.id,
                node=known.node if known is not None else task.home.name,
                action="stalegangeviction",
                by_job=None,
                rule="stale",
                message=(
                    f"Workload doesn't meet the minimum required number of pods ({minimum}), "
                    f"evicting remaining pod: {pod_name(task)}"
                ),
                never_started=task.first_status == st.PENDING,
                since=job.last_start,
                victim_queue=figures(job.queue, usage),
            )
    session.commit()
