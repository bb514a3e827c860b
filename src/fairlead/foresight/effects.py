"""What a change does to others: who is evicted, and who does not start who would have started without it."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead.foresight.outlook import Outlook
from fairlead.foresight.workloads import Concerned, SnapshotWorkloads
from fairlead.scheduling.model.snapshot import Plain


class Effects(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """Compared with what happens without the change, over the same cycles."""

    #: Their pods are stopped; they wait again.
    evicted: Concerned = Concerned()
    #: Their pods are stopped and start again on another node at once.
    moved: Concerned = Concerned()
    #: They would have started without the change, and now wait longer.
    delayed: Concerned = Concerned()

    @property
    def harm(self) -> int:
        """How many workloads suffer; moving costs a restart and counts too."""
        return self.evicted.count + self.moved.count + self.delayed.count


def compare(
    workloads: SnapshotWorkloads, before: Outlook, after: Outlook, own: Iterable[str], removed: Iterable[str] = ()
) -> Effects:
    """What others suffer. `own`: workloads by key that are meant to change; `removed`: those that the change ends."""
    apart = {*own, *removed}
    lost = {
        (eviction.job, task)
        for task, eviction in after.evictions.items()
        if task not in before.evictions and _is_other(workloads, eviction.job, apart)
    }
    moved = {(job, task) for job, task in lost if task in after.binds}
    delayed = {
        (bind.job, task)
        for task, (_, bind) in before.binds.items()
        if task not in after.binds and task not in after.evictions and _is_other(workloads, bind.job, apart)
    }
    return Effects(
        evicted=workloads.refer(sorted(lost - moved)),
        moved=workloads.refer(sorted(moved)),
        delayed=workloads.refer(sorted(delayed)),
    )


def _is_other(workloads: SnapshotWorkloads, job: str, apart: set[str]) -> bool:
    key = workloads.key_by_job.get(job)
    return key is not None and key not in apart
