"""Several cycles one after another, with the simplest of worlds in between.

What was bound runs, what was promised waits again, what leaves is pending without a node at once, unless its job is
being deleted: then it stays on its way out.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_

import msgspec

from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Bind, Decisions
from fairlead.scheduling.model.snapshot import Job, Snapshot, Task, TaskStatus


def simulate(snapshot: Snapshot, cycles: int, seconds: float = 1) -> Iterator[tuple[Snapshot, Decisions]]:
    """Each cycle's snapshot and decisions; time goes on by `seconds` in between."""
    for number in range(cycles):
        decisions = decide(snapshot)
        yield snapshot, decisions
        if number + 1 < cycles:
            snapshot = advance(snapshot, decisions, snapshot.now + seconds)


def advance(snapshot: Snapshot, decisions: Decisions, now: float) -> Snapshot:
    """The snapshot after the decisions were carried out without delay or failure."""
    binds = {bind.task: bind for bind in decisions.starts}
    evicted = {eviction.task for eviction in decisions.evictions if eviction.task not in binds}
    starts = {start.job: start.at for start in decisions.last_starts}
    stale = {mark.job: mark.since for mark in decisions.stale}
    jobs = []
    for job in snapshot.jobs:
        tasks = tuple([_advance_task(task, job, binds.get(task.id), task.id in evicted) for task in job.tasks])
        lost = bool(evicted) and any(task.id in evicted for task in job.tasks)
        if not lost and job.id not in starts and job.id not in stale and all(map(is_, tasks, job.tasks)):
            jobs.append(job)
            continue
        jobs.append(
            msgspec.structs.replace(
                job,
                tasks=tasks,
                last_start=starts.get(job.id, job.last_start),
                last_eviction=snapshot.now if lost else job.last_eviction,
                stale_since=stale.get(job.id, job.stale_since),
            )
        )
    return msgspec.structs.replace(snapshot, jobs=tuple(jobs), now=now)


def _advance_task(task: Task, job: Job, bind: Bind | None, evicted: bool) -> Task:
    if evicted or task.status == "Releasing":
        if task.status == "Pending":
            return task
        return msgspec.structs.replace(task, status="Releasing") if job.deleting else _moved(task, "Pending")
    if bind is not None:
        return msgspec.structs.replace(
            task, status="Running", node=bind.node, gpu_groups=bind.gpu_groups, devices=bind.devices
        )
    if task.status in ("Binding", "Allocated"):
        return msgspec.structs.replace(task, status="Running")
    return _moved(task, "Pending") if task.status == "Pipelined" else task


def _moved(task: Task, status: TaskStatus) -> Task:
    return msgspec.structs.replace(task, status=status, node=None, gpu_groups=(), devices=())
