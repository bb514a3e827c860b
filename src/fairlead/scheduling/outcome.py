"""Turns the live model after a cycle into `Decisions`: final states, device indices, reasons, fair shares."""

from __future__ import annotations

from fairlead.scheduling.fairness.fairshare import in_gpus
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import (
    Bind,
    Decisions,
    FairShare,
    LastStart,
    Notice,
    Pending,
    Pipelined,
    PoolReason,
    Reason,
    StaleMark,
    TaskState,
)
from fairlead.scheduling.model.live import LiveJob, LiveNode, LiveTask
from fairlead.scheduling.model.snapshot import Snapshot
from fairlead.scheduling.model.subgroups import is_ready
from fairlead.scheduling.session.devices import Devices
from fairlead.scheduling.session.early_binds import find_early_binds, is_fresh, is_withheld
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession

#: Reasons of pools in which a job was not tried at all.
_NOT_TRIED = frozenset({"NoSuchNodePool", "QueueDoesNotExist", "QueueIsNotALeaf"})
#: A task that waited when the cycle began still does in these states.
_WITHOUT_PLACE = frozenset((st.PENDING, st.GATED, st.PIPELINED, st.RELEASING))


def write_down(
    snapshot: Snapshot, sessions: dict[str, SchedulingSession], record: Record, notices: list[Notice]
) -> Decisions:
    changed = {pool: changed_tasks(sessions[pool]) for pool in sorted(sessions)}
    live: dict[str, LiveJob] = {}
    for session in sessions.values():
        live.update(session.jobs)
        for job_id in record.reasons:
            if job_id in session.jobs:
                record.explain(session, session.jobs[job_id])
    states = [
        TaskState(task=task.id, status=st.NAMES[task.status], node=task.node.name if task.node else None)
        for tasks in changed.values()
        for task in tasks
    ]
    bound = {pool: render_binds(sessions[pool], tasks, record) for pool, tasks in changed.items()}
    early = frozenset(bind.task for _, binds in bound.values() for bind in binds)
    return Decisions(
        binds=tuple(bind for binds, _ in bound.values() for bind in binds),
        early_binds=tuple(bind for _, binds in bound.values() for bind in binds),
        evictions=tuple(record.evictions[task] for task in sorted(record.evictions)),
        pipelined=tuple(promise for pool, tasks in changed.items() for promise in render_promises(pool, tasks, record)),
        pending=tuple(_pending(snapshot, live, record, early)),
        states=tuple(sorted(states, key=lambda state: state.task)),
        fair_shares=tuple(fair_shares(sessions)),
        stale=tuple(StaleMark(job=job, since=record.stale[job]) for job in sorted(record.stale)),
        last_starts=render_last_starts(record),
        notices=tuple(notices),
        failures=tuple(record.failures),
        next_change_at=min((s.next_change for s in sessions.values() if s.next_change is not None), default=None),
    )


def changed_tasks(session: SchedulingSession) -> list[LiveTask]:
    """Tasks that do not stand where they stood, by job and in the order of the snapshot."""
    return [
        task
        for job_id in sorted(session.changed)
        if job_id in session.jobs
        for task in session.jobs[job_id].tasks
        if task.status != task.first_status
    ]


def render_binds(
    session: SchedulingSession, tasks: list[LiveTask], record: Record, with_devices: bool = True
) -> tuple[list[Bind], list[Bind]]:
    """Binds, and early binds."""
    early = find_early_binds(tasks, record)
    for task in early:
        if not any(st.HELD[other.first_status] for other in task.job.tasks):
            record.last_starts.setdefault(task.job.id, session.now)
    fresh = [task for task in tasks if is_fresh(task) and not is_withheld(task)]
    devices = Devices(session) if with_devices and any(task.wants_gpu for task in (*fresh, *early)) else None
    return (
        [_bind(session, task, record, devices) for task in fresh],
        [_bind(session, task, record, devices) for task in early],
    )


def _bind(session: SchedulingSession, task: LiveTask, record: Record, devices: Devices | None) -> Bind:
    groups, indices = devices.take(task) if devices is not None else ((), ())
    return Bind(
        task=task.id,
        job=task.job.id,
        node=task.home.name,
        node_pool=session.pool,
        gpu_groups=groups,
        devices=indices,
        action=record.placed_by.get(task.id, "allocate"),
    )


def render_last_starts(record: Record) -> tuple[LastStart, ...]:
    return tuple(LastStart(job=job, at=record.last_starts[job]) for job in sorted(record.last_starts))


def render_promises(pool: str, tasks: list[LiveTask], record: Record) -> list[Pipelined]:
    waits: dict[int, tuple[str, ...]] = {}
    promises = []
    for task in tasks:
        if task.status != st.PIPELINED and not is_withheld(task):
            continue
        node = task.home
        if node.index not in waits:
            waits[node.index] = leaving_tasks(node)
        promise = Pipelined(
            task=task.id,
            job=task.job.id,
            node=node.name,
            node_pool=pool,
            gpu_groups=task.groups,
            action=record.placed_by.get(task.id, "allocate"),
            waits_for=waits[node.index],
        )
        promises.append(promise)
    return promises


def leaving_tasks(node: LiveNode) -> tuple[str, ...]:
    """Tasks that are on their way out of a node, moved ones too."""
    leaving = []
    for task_id, task in node.tasks.items():
        if task.status == st.RELEASING or (task.leaving is not None and task.leaving[0] is node):
            leaving.append(task_id)
    return tuple(sorted(leaving))


def _pending(snapshot: Snapshot, live: dict[str, LiveJob], record: Record, early: frozenset[str]) -> list[Pending]:
    """Jobs with tasks that still have no place, and jobs all of whose placed tasks only wait for others to leave."""
    waiting: dict[str, tuple[str, ...]] = {}
    for job in live.values():
        names = tuple([task.id for task in job.tasks if _waits(task) and task.id not in early])
        if names:
            waiting[job.id] = names
    if len(live) < len(snapshot.jobs):
        for spec in snapshot.jobs:
            names = tuple(task.id for task in spec.tasks if task.status in ("Pending", "Gated"))
            if names and spec.id not in live:
                waiting[spec.id] = names
    pending = []
    for job_id in sorted(waiting):
        pools = record.reasons.get(job_id, {})
        reason = _reason(live.get(job_id), pools)
        by_pool = tuple([PoolReason(node_pool=pool, reason=pools[pool]) for pool in pools])
        pending.append(Pending(job=job_id, tasks=waiting[job_id], reason=reason, pools=by_pool))
    return pending


def _waits(task: LiveTask) -> bool:
    return task.first_status <= st.GATED and task.status in _WITHOUT_PLACE


def _reason(job: LiveJob | None, pools: dict[str, Reason]) -> Reason:
    """The blocker to tell first: what it is promised, then what the last pool said that may take it some time."""
    if job is not None:
        promised = [task for task in job.tasks if task.status == st.PIPELINED]
        if promised and not any(task.status == st.PENDING for task in job.tasks):
            waits = sorted({name for task in promised if task.node for name in leaving_tasks(task.node)})
            return Reason(code="WaitsForVictims", waits_for=tuple(waits))
    if pools:
        # A pool that does not exist says nothing about those that do.
        tried = [reason for reason in pools.values() if reason.code not in _NOT_TRIED]
        # It may still start in another pool than one that could never take it.
        passing = [reason for reason in tried if not reason.is_lasting]
        return (passing or tried or list(pools.values()))[-1]
    if job is not None and not is_ready(job.root):
        if any(task.status == st.GATED for task in job.tasks):
            return Reason(code="Gated")
        alive = sum(pod_set.alive for pod_set in job.pod_sets)
        required = sum(pod_set.minimum for pod_set in job.pod_sets)
        return Reason(code="NotReady", placed=alive, required=required)
    if job is not None and all(task.status != st.PENDING for task in job.tasks):
        return Reason(code="Gated")
    return Reason(code="QueueDepth", detail="Not reached in this cycle: other jobs of its queue came first.")


def fair_shares(sessions: dict[str, SchedulingSession]) -> list[FairShare]:
    return [
        FairShare(
            queue=queue.name,
            node_pool=pool,
            fair_share=in_gpus(queue.fair),
            requested=in_gpus(queue.requested),
            allocated=in_gpus(queue.allocated),
            allocated_non_preemptible=in_gpus(queue.non_preemptible),
        )
        for pool in sorted(sessions)
        for queue in (sessions[pool].queues[name] for name in sorted(sessions[pool].queues))
    ]
