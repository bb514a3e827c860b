"""Why another workload went first: both in the state of the cycle in which the other one got its place. Pure.

The answer is found by taking the other one away: if the first would not have started without it either, it did not take
anybody's place.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from fairlead.foresight.outlook import look_ahead
from fairlead.foresight.why import ANYBODY, Asker, redact
from fairlead.foresight.workloads import HOLDING, SnapshotWorkloads, gpus_of, key_of
from fairlead.scheduling.messages import format_reason
from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.snapshot import Plain, Queue, Snapshot

#: no place: it would not have started anyway. The others say what put the other one first.
Cause = Literal["noPlace", "priority", "age", "project", "order", "notCompared"]


class PrecedenceAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    workload: str
    project: str
    other: str
    other_project: str
    cause: Cause
    message: str
    #: Whether it would have started in that cycle without the other one.
    would_have_started: bool = False
    #: What it waited for in that cycle.
    reason: Reason | None = None
    #: GPUs that both projects held before the cycle, and their quotas; -1 is unlimited.
    used_gpus: tuple[float, float] | None = None
    quota_gpus: tuple[float, float] | None = None
    #: The time of the cycle.
    now: float
    revision: int | None = None


def explain_precedence(snapshot: Snapshot, workload: str, other: str, asker: Asker = ANYBODY) -> PrecedenceAnswer:
    """Why `other` got its place in this cycle and `workload` did not; raises UnknownName."""
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key, first = workloads.find(workload), workloads.find(other)
    waiting = workloads.waiting_jobs(key)
    outlook = look_ahead(snapshot)
    without: Snapshot = replace(snapshot, jobs=tuple(job for job in snapshot.jobs if key_of(job) != first))
    would_start = look_ahead(without).starts(waiting) is not None
    pending = next((each for each in outlook.first.pending if each.job in waiting), None)
    reason = redact(pending.reason, workloads) if pending is not None else None
    pool = workloads.jobs[first][0].node_pools[0]
    used = (_used(workloads, key, pool), _used(workloads, first, pool))
    quotas = (_quota(workloads, key, pool), _quota(workloads, first, pool))
    cause, sentence = _compare(workloads, key, first, used, quotas) if would_start else _no_place(workloads, key, first)
    return PrecedenceAnswer(
        workload=workloads.name(key),
        project=workloads.project_of(key),
        other=workloads.name(first),
        other_project=workloads.project_of(first),
        cause=cause,
        message=sentence + (f" {format_reason(reason)}" if reason is not None and not would_start else ""),
        would_have_started=would_start,
        reason=reason,
        used_gpus=used,
        quota_gpus=quotas,
        now=snapshot.now,
    )


def _no_place(workloads: SnapshotWorkloads, key: str, first: str) -> tuple[Cause, str]:
    other, own = workloads.name(first), workloads.name(key)
    return "noPlace", f"{other} did not keep {own} waiting: without it, {own} would wait too."


def _compare(
    workloads: SnapshotWorkloads, key: str, first: str, used: tuple[float, float], quotas: tuple[float, float]
) -> tuple[Cause, str]:
    mine, theirs = workloads.jobs[key][0], workloads.jobs[first][0]
    name = workloads.name(first)
    if mine.queue != theirs.queue:
        return "project", _compare_projects(workloads, key, first, used, quotas)
    if theirs.priority > mine.priority:
        return "priority", f"{name} has a higher priority in the same project ({theirs.priority}, not {mine.priority})."
    if theirs.created < mine.created:
        return "age", f"{name} has the same priority in the same project and was submitted earlier."
    return "order", f"{name} came first in the order of the scheduler."


def _compare_projects(
    workloads: SnapshotWorkloads, key: str, first: str, used: tuple[float, float], quotas: tuple[float, float]
) -> str:
    own, others = workloads.project_of(key), workloads.project_of(first)
    requested = [sum(gpus_of(task) for task in workloads.jobs[each][0].tasks) for each in (key, first)]
    is_within = [quota < 0 or held + more <= quota for quota, held, more in zip(quotas, used, requested, strict=True)]
    figures = f"{others} held {_of(used[1], quotas[1])}, {own} held {_of(used[0], quotas[0])}"
    if is_within[1] and not is_within[0]:
        names = f"with {workloads.name(first)}, and {own} above its quota with {workloads.name(key)}"
        requests = f"they ask for {requested[1]:g} and {requested[0]:g} GPUs"
        return f"Project {others} is within its quota {names}: {requests}; {figures}."
    return f"Project {others} came before {own}, because it used a smaller part of its share: {figures}."


def _of(used: float, quota: float) -> str:
    return f"{used:g} GPUs of its quota of {quota:g}" if quota >= 0 else f"{used:g} GPUs without a quota"


def _used(workloads: SnapshotWorkloads, key: str, pool: str) -> float:
    """GPUs that the workload's queue holds in a node pool."""
    queue = workloads.jobs[key][0].queue
    nodes = {node.name for node in workloads.snapshot.nodes if node.node_pool == pool}
    tasks = (task for job in workloads.snapshot.jobs if job.queue == queue for task in job.tasks)
    return round(sum(gpus_of(task) for task in tasks if task.status in HOLDING and task.node in nodes), 3)


def _quota(workloads: SnapshotWorkloads, key: str, pool: str) -> float:
    name = workloads.jobs[key][0].queue
    queues: list[Queue] = [each for each in workloads.snapshot.queues if (each.name, each.node_pool) == (name, pool)]
    return queues[0].resources.gpu.quota if queues else 0.0
