"""The allocate action: pending jobs take what is free, in the order of queues and jobs. Nobody is evicted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlead.scheduling.fairness.job_index import Entry
from fairlead.scheduling.fairness.job_order import JobOrder
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.live import UNKNOWN, Alike, LiveJob
from fairlead.scheduling.model.queues import GPU, Amounts, LiveQueue
from fairlead.scheduling.model.subgroups import tasks_to_place
from fairlead.scheduling.session.attempt import PlacementAttempt, must_wait
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession


def allocate(session: SchedulingSession, record: Record) -> None:
    if not session.is_explained and _is_full(session):
        return
    order = JobOrder(session.total, session.used_queues)
    order.fill(ready_jobs(session), session.settings.queue_depth.get("allocate"))

    def is_hopeless(job: LiveJob) -> bool:
        """Refused as one like it was since the last change, or larger than any room."""
        if not session.is_explained and exceeds_room(session, job):
            return True
        alike = alike_key(session, job)
        known = None if alike is None else session.refused.get(alike)
        if known is None or known[0] != session.commits:
            return False
        record.blocked(session, job, known[1])
        return True

    while (job := order.pop(is_hopeless, skip_alike=not session.is_explained)) is not None:
        # A job that grew goes back: elastic jobs grow by one task per turn, interleaved with all others.
        if record.guard(session, job, "allocate", try_job) and job.pending:
            order.push(job)


def _is_full(session: SchedulingSession) -> bool:
    """Whether every pending job asks for more GPUs than all nodes together have left."""
    if session.classes.has_shared_requests:
        return False
    free = 1000 * session.free_gpus().exact_total
    return all(request[GPU] > free for _, request in pending_requests(session))


def exceeds_room(session: SchedulingSession, job: LiveJob) -> bool:
    """Whether the next tasks of a job ask for more whole GPUs than a node, or all nodes together, have left."""
    free = session.free_gpus()
    largest, total = -free.ordered[0][0] if free.ordered else 0, 0
    for task in tasks_to_place(job, real=True):
        if task.gpu > largest:
            return True
        total += task.gpu
    return total > free.exact_total


def alike_key(session: SchedulingSession, job: LiveJob) -> Alike | None:
    """What jobs of one task must have in common to be refused alike while nothing changes; None: no telling."""
    if job.alike is UNKNOWN:
        job.alike = _alike(session, job)
    return job.alike  # type: ignore[return-value]  # it is known by now


def _alike(session: SchedulingSession, job: LiveJob) -> Alike | None:
    if session.plain or len(job.tasks) != 1 or job.root.topology is not None or job.root.groups:
        return None
    task = job.tasks[0]
    if task.pod_set.topology is not None or session.affinities.concerns(task):
        return None
    key = (job.queue.name, job.preemptible, task.request_class, job.priority, bool(job.spec.preemption_delay))
    alike = session.alike_jobs.get(key)
    if alike is None:
        alike = session.alike_jobs[key] = Alike()
    return alike


def ready_jobs(session: SchedulingSession, preemptible_only: bool = False) -> Iterable[Sequence[Entry]]:
    """Jobs with pending tasks of which enough exist, sorted, by leaf."""
    leaves = session.ready_jobs().leaves.values()
    if preemptible_only:
        return [[entry for entry in entries if entry[1].preemptible] for entries in leaves]
    return leaves


def pending_requests(session: SchedulingSession) -> Iterator[tuple[LiveQueue, Amounts]]:
    """What pending jobs request next, each request once per queue."""
    index = session.pending_jobs()
    for leaf, entries in index.leaves.items():
        if entries:
            queue = session.queues[leaf]
            for request in index.by_request(leaf):
                yield queue, request


def try_job(session: SchedulingSession, job: LiveJob, record: Record) -> bool:
    """One attempt: place the next tasks, or leave no trace. True if something was placed."""
    held_before = any(st.HELD[task.status] for task in job.tasks)
    attempt = PlacementAttempt(session, job, pipeline_only=False, explain=True)
    if not attempt.run(session.nodes) or not session.log:
        session.rollback(0)
        if attempt.reason is not None:
            record.blocked(session, job, attempt.reason)
            alike = alike_key(session, job)
            if alike is not None:
                session.refused[alike] = (session.commits, attempt.reason)
        return False
    waits = must_wait(job)
    if waits:
        for task in job.tasks:
            if task.status == st.ALLOCATED:
                session.postpone(task)
    record.placed(session, "allocate")
    session.commit()
    if not waits and not held_before:
        record.started(session, job)
    return True
