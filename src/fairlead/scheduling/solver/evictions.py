"""The record of an eviction: by whom, under which rule, and the numbers of both queues before it."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.scheduling.fairness.fairshare import in_gpus
from fairlead.scheduling.fairness.usage import Usage
from fairlead.scheduling.messages import format_amount
from fairlead.scheduling.model import status as st
from fairlead.scheduling.model.decisions import Eviction, QueueFigures
from fairlead.scheduling.model.live import LiveJob, LiveTask
from fairlead.scheduling.model.queues import INFINITE, Amounts, LiveQueue
from fairlead.scheduling.model.snapshot import Action
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.solver.scenarios import Unit

RULES = {"consolidation": "consolidated", "reclaim": "reclaimed", "preempt": "preempted", "stalegangeviction": "stale"}


def split_level(left: LiveQueue, right: LiveQueue) -> tuple[LiveQueue, LiveQueue]:
    """The queues in which two paths from the top first differ; the last common level if one path ends before."""
    pair = (left, right)
    for one, other in zip(reversed(left.path), reversed(right.path), strict=False):
        pair = (one, other)
        if one is not other:
            break
    return pair


def record_evictions(
    session: SchedulingSession, record: Record, action: Action, winner: LiveJob, solution: list[Unit], usage: Usage
) -> None:
    """Record the tasks of a solution that leave or move; those that got their own place back are left out.

    A task that was moved before in this cycle keeps its record while it only moves on.
    """
    for unit in solution:
        for task in unit:
            is_leaving = task.status == st.RELEASING
            moved = task.status == st.PIPELINED and task.leaving is not None
            known = record.evictions.get(task.id)
            if known is not None and moved:
                record.evictions[task.id] = replace(known, moved_to=task.home.name)
            elif known is not None and is_leaving:
                record.evictions[task.id] = replace(_eviction(action, task, winner, usage), node=known.node)
            elif (is_leaving or moved) and task.before != st.PIPELINED:
                record.evictions[task.id] = _eviction(action, task, winner, usage)


def _eviction(action: Action, task: LiveTask, winner: LiveJob, usage: Usage) -> Eviction:
    moved = task.status == st.PIPELINED
    origin = task.leaving[0] if moved and task.leaving is not None else task.home
    ours, theirs = split_level(winner.queue, task.job.queue)
    held = usage[task.job.queue.name]
    quota = task.job.queue.quota
    over: Amounts = (
        max(0, held[0] - quota[0]) if quota[0] != INFINITE else 0,
        max(0, held[1] - quota[1]) if quota[1] != INFINITE else 0,
        max(0, held[2] - quota[2]) if quota[2] != INFINITE else 0,
    )
    return Eviction(
        task=task.id,
        job=task.job.id,
        node=origin.name,
        action=action,
        by_job=winner.id,
        rule=RULES[action],
        message=_message(action, task, winner, (theirs, ours), usage),
        moved_to=task.home.name if moved else None,
        never_started=task.first_status == st.PENDING,
        since=task.job.last_start,
        victim_queue=figures(theirs, usage),
        winner_queue=figures(ours, usage),
        over_quota=in_gpus(over),
    )


def figures(queue: LiveQueue, usage: Usage) -> QueueFigures:
    quota, fair_share, _ = _terms(queue)
    return QueueFigures(
        name=queue.spec.display_name or queue.name,
        priority=queue.priority,
        allocated=in_gpus(usage[queue.name]),
        quota=quota,
        fair_share=fair_share,
    )


def _terms(queue: LiveQueue) -> tuple[Amounts, Amounts, str]:
    """The part of the message that stays the same during a cycle, made once."""
    if queue.terms is None:
        quota, fair = in_gpus(queue.quota), in_gpus(queue.fair)
        description = (
            f"with a quota of <{_amounts(quota)}>, fair-share of <{_amounts(fair)}> "
            f"and queue priority of <{queue.priority}>."
        )
        queue.terms = (quota, fair, description)
    return queue.terms


def pod_name(task: LiveTask) -> str:
    return f"{task.spec.namespace or task.job.spec.namespace}/{task.spec.name or task.id}"


def _job_name(job: LiveJob) -> str:
    return f"{job.spec.namespace}/{job.spec.name or job.id}"


def _message(action: Action, task: LiveTask, winner: LiveJob, queues: tuple[LiveQueue, LiveQueue], usage: Usage) -> str:
    if action == "preempt":
        return f"Pod {pod_name(task)} was preempted by higher priority workload {_job_name(winner)}"
    if action == "consolidation":
        return (
            f"Pod {pod_name(task)} was preempted and rescheduled due to bin packing (resource consolidation) procedure"
        )
    lines = [f"Pod {pod_name(task)} was preempted by workload {_job_name(winner)}."]
    lines += [_queue_line(queue, usage[queue.name]) for queue in queues]
    return "\n".join(lines)


def _queue_line(queue: LiveQueue, used: Amounts) -> str:
    return f"{queue.spec.display_name or queue.name} uses <{_amounts(in_gpus(used))}> {_terms(queue)[2]}"


def _amounts(amounts: Amounts) -> str:
    names = ("gpu", "cpu", "memory")
    gpu, cpu, memory = (format_amount(value, name) for value, name in zip(amounts, names, strict=True))
    return f"GPU: {gpu}, CPU: {cpu} cores, memory: {memory} GB"
