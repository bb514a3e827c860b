"""Plays `decide` forward over a few cycles: who starts, who is evicted, and who keeps a place.

Between two cycles a second passes, pods that leave have left, and nothing else happens. Whoever asks states that as an
assumption.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Bind, Decisions, Eviction
from fairlead.scheduling.model.snapshot import Job, Snapshot
from fairlead.scheduling.simulate import advance

#: One cycle evicts, the next one starts the winner, the last one shows whether that lasts.
CYCLES = 3
SECONDS = 1.0
ASSUMPTIONS = (
    "Nothing else is submitted, ends or fails.",
    "Evicted pods stop at once; their grace periods are not included.",
)


class Outlook(NamedTuple):
    #: One per cycle that was played.
    cycles: tuple[Decisions, ...]
    #: The state after the last one.
    last: Snapshot
    #: Binds of tasks that still have their place at the end, by task, with the number of their cycle from 1.
    binds: dict[str, tuple[int, Bind]]
    #: The first eviction of each task that ran before.
    evictions: dict[str, Eviction]

    @property
    def first(self) -> Decisions:
        return self.cycles[0]

    def starts(self, jobs: Iterable[str]) -> int | None:
        """The cycle in which the first of these jobs starts for good; None if none does."""
        wanted = frozenset(jobs)
        return min((cycle for cycle, bind in self.binds.values() if bind.job in wanted), default=None)


def look_ahead(snapshot: Snapshot, cycles: int = CYCLES) -> Outlook:
    """Play until nothing changes any more, at most so many cycles."""
    played: list[Decisions] = []
    binds: dict[str, tuple[int, Bind]] = {}
    evictions: dict[str, Eviction] = {}
    for number in range(1, cycles + 1):
        decisions = decide(snapshot)
        played.append(decisions)
        for eviction in decisions.evictions:
            if not eviction.never_started:
                binds.pop(eviction.task, None)
                evictions.setdefault(eviction.task, eviction)
        for bind in decisions.starts:
            binds[bind.task] = (number, bind)
        following = step(snapshot, decisions, snapshot.now + SECONDS)
        if not decisions.starts and not decisions.evictions and following.jobs == snapshot.jobs:
            break
        snapshot = following
    return Outlook(tuple(played), snapshot, binds, evictions)


def starts_alone(snapshot: Snapshot, jobs: Iterable[Job], waiting: Iterable[str]) -> bool:
    """Whether a waiting one of these jobs starts when the cluster has no other jobs."""
    alone: Snapshot = replace(snapshot, jobs=tuple(jobs))
    return look_ahead(alone).starts(waiting) is not None


def step(snapshot: Snapshot, decisions: Decisions, now: float) -> Snapshot:
    """The snapshot after the decisions were carried out, without the pods that had only to stop."""
    following = advance(snapshot, decisions, now)
    if not any(_is_leaving(job) for job in following.jobs):
        return following
    jobs = (_without_leaving(job) if _is_leaving(job) else job for job in following.jobs)
    cleared: Snapshot = replace(following, jobs=tuple(job for job in jobs if job.tasks))
    return cleared


def _is_leaving(job: Job) -> bool:
    return job.deleting and any(task.status == "Releasing" for task in job.tasks)


def _without_leaving(job: Job) -> Job:
    changed: Job = replace(job, tasks=tuple(task for task in job.tasks if task.status != "Releasing"))
    return changed
