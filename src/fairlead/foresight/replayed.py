"""Recorded cycles decided again: the same to the byte, or what differs. Pure.

Called by the server with cycles that it rebuilt. They differ only if the scheduler was changed in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.foresight.workloads import SnapshotWorkloads
from fairlead.scheduling.model.decisions import Bind, Decisions, Eviction, Pipelined
from fairlead.scheduling.model.snapshot import Plain, Snapshot

_SHOWN = 20


class CycleDifference(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """A cycle that this version decides differently."""

    at: float
    revision: int
    #: The version that decided then.
    scheduler: str
    #: One line each; empty if only reasons or figures differ.
    lines: tuple[str, ...] = ()
    #: Lines that are left out.
    more: int = 0
    message: str


class ReplayAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    since: float
    until: float
    #: Cycles that were decided again, and how many of them gave the same decisions to the byte.
    cycles: int = 0
    same: int = 0
    binds: int = 0
    evictions: int = 0
    differences: tuple[CycleDifference, ...] = ()
    #: The versions that decided then, and the one that decides now.
    recorded_by: tuple[str, ...] = ()
    scheduler: str
    #: Where to go on, if the period has more cycles than one answer.
    next_since: float | None = None


class RecordedOutcome(Plain, frozen=True, kw_only=True):
    """What a cycle decided when it was recorded."""

    binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: tuple[Pipelined, ...] = ()


def list_differences(snapshot: Snapshot, before: RecordedOutcome, now: Decisions) -> tuple[tuple[str, ...], int]:
    """A line for each pod that is decided differently, and how many lines are left out."""
    names = SnapshotWorkloads(snapshot).task_names
    then, today = (
        _outcomes(before.binds, before.evictions, before.pipelined),
        _outcomes(now.starts, now.evictions, now.pipelined),
    )
    lines = [
        f"{names.get(task, ('', task))[1]}: {then.get(task, 'waits')}, now {today.get(task, 'waits')}"
        for task in sorted(then.keys() | today.keys())
        if then.get(task) != today.get(task)
    ]
    return tuple(lines[:_SHOWN]), max(0, len(lines) - _SHOWN)


def _outcomes(binds: Iterable[Bind], evictions: Iterable[Eviction], pipelined: Sequence[Pipelined]) -> dict[str, str]:
    outcomes = {each.task: f"a place is reserved on {each.node}" for each in pipelined}
    outcomes |= {each.task: f"{each.rule} from {each.node} for {each.by_job or 'nobody'}" for each in evictions}
    for bind in binds:
        devices = f" (GPU {', '.join(map(str, bind.devices))})" if bind.devices else ""
        outcomes[bind.task] = f"starts on {bind.node}{devices}"
    return outcomes
