"""What if: the same cluster with some changes, compared with the cluster as it is.

Nothing is changed. Who starts, who is evicted, who waits longer, and how the shares are divided before and after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead.foresight.changes import (
    AddJobs,
    AddNodes,
    Change,
    DropConstraint,
    RemoveWorkload,
    SetNode,
    SetRequest,
    SetShare,
    SetWorkers,
    apply,
    find_queue,
)
from fairlead.foresight.effects import Effects, compare
from fairlead.foresight.messages import format_change
from fairlead.foresight.outlook import ASSUMPTIONS, Outlook, look_ahead
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.timing import ChangedStarts, estimate_changed
from fairlead.foresight.why import ANYBODY, Asker
from fairlead.foresight.workloads import Concerned, SnapshotWorkloads, UnknownName
from fairlead.scheduling.model.decisions import FairShare
from fairlead.scheduling.model.snapshot import Plain, Snapshot

_ENDS_COUNT = "For the estimated starts alone, workloads end as declared or as similar runs did."


class ShareChange(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """A queue whose fair share or usage differs: GPUs, thousandths of a core, bytes."""

    name: str
    node_pool: str
    fair_share_before: tuple[float, float, float]
    fair_share_after: tuple[float, float, float]
    used_before: tuple[float, float, float]
    used_after: tuple[float, float, float]


class WhatIfAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    #: The changes in words.
    changes: tuple[str, ...]
    #: Would start, and do not without the changes.
    starts: Concerned
    effects: Effects
    shares: tuple[ShareChange, ...]
    #: Workloads that wait before and after.
    waiting_before: int
    waiting_after: int
    #: When waiting workloads start before and after; None if that was not asked.
    estimates: ChangedStarts | None = None
    assumptions: tuple[str, ...] = ASSUMPTIONS
    now: float
    revision: int | None = None


def ask_what_if(
    snapshot: Snapshot,
    changes: Sequence[Change],
    asker: Asker = ANYBODY,
    runtimes: Mapping[str, RunningTime] | None = None,
) -> WhatIfAnswer:
    """Raises UnknownName if a change names what there is not, or contradicts another one.

    `runtimes`: what is known of the workloads, by key; with them the answer tells times too, which takes longer.
    """
    _refuse_contradictions(snapshot, changes)
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    changed = apply(snapshot, changes)
    before, after = look_ahead(snapshot), look_ahead(changed)
    removed = [workloads.find(each.workload) for each in changes if isinstance(each, RemoveWorkload)]
    known = {task.id for job in snapshot.jobs for task in job.tasks}
    started = [
        (bind.job, task)
        for task, (_, bind) in after.binds.items()
        if task in known and task not in before.binds and task not in after.evictions
    ]
    drained = _drained(snapshot, changed)
    estimates = None
    if runtimes is not None:
        present = {job.id for job in changed.jobs}
        evicted = {each.job for task, each in after.evictions.items() if task not in before.evictions}
        lost = {job for job in (*evicted, *drained.values()) if job in present}
        estimates = estimate_changed(snapshot, changed, lost, runtimes, asker)
    return WhatIfAnswer(
        changes=tuple(_format_named(snapshot, workloads, change) for change in changes),
        starts=workloads.refer(sorted(pair for pair in started if pair[1] not in drained)),
        effects=_with_drained(compare(workloads, before, after, (), removed), workloads, after, drained),
        shares=_shares(workloads, before, after),
        waiting_before=_count_waiting(SnapshotWorkloads(before.last)),
        waiting_after=_count_waiting(SnapshotWorkloads(after.last)),
        estimates=estimates,
        assumptions=ASSUMPTIONS if estimates is None else (*ASSUMPTIONS, _ENDS_COUNT),
        now=snapshot.now,
    )


def _format_named(snapshot: Snapshot, workloads: SnapshotWorkloads, change: Change) -> str:
    """A change of a workload, which `why` shows under that workload, is preceded by its name here."""
    text = format_change(snapshot, workloads, change)
    if isinstance(change, SetShare | AddNodes | SetNode | AddJobs | RemoveWorkload):
        return text
    return f"{workloads.name(workloads.find(change.workload))}: {text[:1].lower()}{text[1:]}"


def _drained(before: Snapshot, after: Snapshot) -> dict[str, str]:
    """Tasks that a change itself takes off their node, to their job."""
    waiting = {task.id for job in after.jobs for task in job.tasks if task.status == "Pending"}
    return {
        task.id: job.id for job in before.jobs for task in job.tasks if task.node is not None and task.id in waiting
    }


def _with_drained(effects: Effects, workloads: SnapshotWorkloads, after: Outlook, drained: dict[str, str]) -> Effects:
    """Pods of a drained node are evicted too, or moved if they find another place."""
    if not drained:
        return effects
    moved = sorted((job, task) for task, job in drained.items() if task in after.binds)
    lost = sorted((job, task) for task, job in drained.items() if task not in after.binds)
    return Effects(
        evicted=_joined(effects.evicted, workloads.refer(lost)),
        moved=_joined(effects.moved, workloads.refer(moved)),
        delayed=effects.delayed,
    )


def _joined(left: Concerned, right: Concerned) -> Concerned:
    known = {(ref.project, ref.workload) for ref in left.workloads}
    more = tuple(ref for ref in right.workloads if (ref.project, ref.workload) not in known)
    return Concerned(workloads=left.workloads + more, hidden=left.hidden + right.hidden)


def _count_waiting(workloads: SnapshotWorkloads) -> int:
    return sum(bool(workloads.waiting_jobs(key)) for key in workloads.jobs)


def _shares(workloads: SnapshotWorkloads, before: Outlook, after: Outlook) -> tuple[ShareChange, ...]:
    """Queues that differ. The usage is that of the last cycle, after everything has started."""
    present = {(share.queue, share.node_pool): share for share in before.cycles[-1].fair_shares}
    rows = []
    for share in after.cycles[-1].fair_shares:
        was = present.get((share.queue, share.node_pool))
        if was is not None and (_figures(was) != _figures(share)) and _is_shown(workloads, share.queue):
            rows.append(
                ShareChange(
                    name=workloads.projects.get(share.queue, share.queue),
                    node_pool=share.node_pool,
                    fair_share_before=was.fair_share,
                    fair_share_after=share.fair_share,
                    used_before=was.allocated,
                    used_after=share.allocated,
                )
            )
    return tuple(rows)


def _figures(share: FairShare) -> tuple[object, object]:
    return (share.fair_share, share.allocated)


def _is_shown(workloads: SnapshotWorkloads, queue: str) -> bool:
    return workloads.visible is None or queue in workloads.visible


def _refuse_contradictions(snapshot: Snapshot, changes: Sequence[Change]) -> None:
    """The same thing must not be set twice, nor changed after it is gone."""
    if not changes:
        raise UnknownName("No change given.")
    seen: dict[object, Change] = {}
    for change in changes:
        subject = _subject(snapshot, change)
        if subject is not None and seen.setdefault(subject, change) != change:
            raise UnknownName(f"Two changes contradict each other: {_describe(seen[subject])} and {_describe(change)}.")


def _subject(snapshot: Snapshot, change: Change) -> object:
    if isinstance(change, SetShare):
        return ("share", find_queue(snapshot, change.queue), change.field, change.resource, change.node_pool)
    if isinstance(change, SetNode):
        return ("node", change.node, change.taint)
    if isinstance(change, AddNodes | AddJobs):
        return None
    detail = ""
    if isinstance(change, SetRequest):
        detail = change.amount
    elif isinstance(change, SetWorkers):
        detail = change.pod_set
    elif isinstance(change, DropConstraint):
        detail = change.constraint
    return (type(change).__name__, change.workload, detail)


def _describe(change: Change) -> str:
    if isinstance(change, SetShare):
        return f"{change.field} {change.queue}.{change.resource}={change.value:g}"
    if isinstance(change, SetNode):
        return f"{change.action} {change.node}"
    return str(change)
