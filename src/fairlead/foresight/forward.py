"""Plays `decide` forward over the ends of what runs and waits, with one sample of running times.

`estimate.py` plays several samples until a workload starts; `timing.py` until all those start that a plan may delay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from fairlead.foresight.messages import enumerate_names, plural
from fairlead.foresight.outlook import SECONDS, step
from fairlead.foresight.runtimes import UNKNOWN, RunningTime, draw_part
from fairlead.foresight.workloads import HOLDING, SnapshotWorkloads, key_of
from fairlead.model.clock import in_words
from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Snapshot

ASSUMPTIONS = (
    "Nothing else is submitted or fails.",
    "Workloads run as long as declared or as similar runs did; evicted ones start over.",
    "Evicted pods stop at once; their grace periods are not included.",
)
#: Workloads that a message names.
_SHOWN = 5
Event = tuple[float, Literal["ends", "starts"], str]


class PlayedSample(NamedTuple):
    #: When the first job of each workload was bound, by key; those that did not start are left out.
    starts: dict[str, float]
    #: Time, event, key.
    events: tuple[Event, ...]
    calls: int
    #: The time that was reached; None if nothing more can happen.
    until: float | None


class SampleTurn(NamedTuple):
    """One of several samples, and the calls of `decide` that it may take."""

    number: int
    of: int
    most_calls: int


def play_forward(
    snapshot: Snapshot, targets: Mapping[str, frozenset[str]], runtimes: Mapping[str, RunningTime], sample: SampleTurn
) -> PlayedSample:
    """Until the first job of every target is bound. `targets`: waiting jobs by the key of their workload."""

    def remaining(key: str) -> float | None:
        return runtimes.get(key, UNKNOWN).remaining(draw_part(key, sample.number, sample.of))

    key_by_job = {job: key for key, jobs in targets.items() for job in jobs}
    starts: dict[str, float] = {}
    ends = {key: snapshot.now + left for key in _running(snapshot) if (left := remaining(key)) is not None}
    events: list[Event] = []
    for calls in range(1, sample.most_calls + 1):
        decisions = decide(snapshot)
        for bind in decisions.binds:
            if bind.job in key_by_job:
                starts.setdefault(key_by_job[bind.job], snapshot.now)
        if len(starts) == len(targets):
            return PlayedSample(starts, tuple(events), calls, snapshot.now)
        if decisions.binds or decisions.evictions:
            snapshot = step(snapshot, decisions, snapshot.now + SECONDS)
            running = _running(snapshot)
            ends = {key: end for key, end in ends.items() if key in running}
            for key in sorted(running - ends.keys()):
                left = remaining(key)
                if left is not None:
                    ends[key] = snapshot.now + left
            events += [(snapshot.now, "starts", key) for key in _started(decisions, snapshot)]
            continue
        moments = [*ends.values(), *([decisions.next_change_at] if decisions.next_change_at is not None else [])]
        if not moments:
            return PlayedSample(starts, tuple(events), calls, None)
        now = max(min(moments), snapshot.now)
        over = sorted(key for key, end in ends.items() if end <= now)
        events += [(now, "ends", key) for key in over]
        for key in over:
            del ends[key]
        snapshot = _without(snapshot, frozenset(over), now)
    return PlayedSample(starts, tuple(events), sample.most_calls, snapshot.now)


def _running(snapshot: Snapshot) -> set[str]:
    return {key_of(job) for job in snapshot.jobs if any(task.status in HOLDING for task in job.tasks)}


def _started(decisions: Decisions, snapshot: Snapshot) -> list[str]:
    bound = {bind.job for bind in decisions.binds}
    return sorted({key_of(job) for job in snapshot.jobs if job.id in bound})


def _without(snapshot: Snapshot, ended: frozenset[str], now: float) -> Snapshot:
    jobs = tuple(job for job in snapshot.jobs if key_of(job) not in ended) if ended else snapshot.jobs
    changed: Snapshot = replace(snapshot, jobs=jobs, now=now)
    return changed


def format_start(median: float, late: float) -> str:
    """Both times in words, without a full stop."""
    text = f"Starts about {in_words(round(median * 1000))}"
    return f"{text}, very likely by {in_words(round(late * 1000))}" if late > median else text


def explain_missing_start(
    workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], untold: list[PlayedSample]
) -> str:
    """Why these samples did not start it: nothing is known of what runs, it is too far away, or nothing helps."""
    blind = [key for key in workloads.holders() if runtimes.get(key, UNKNOWN).basis == "unknown"]
    shown = [workloads.name(key) for key in blind if workloads.is_visible(key)][:_SHOWN]
    reached = [each.until for each in untold if each.until is not None]
    if len(reached) == len(untold):
        earliest = in_words(round(min(reached) * 1000))
        return f"No estimate: it starts after {earliest}, and the scheduler was not run further."
    if shown:
        return f"No estimate: nothing like {enumerate_names(shown)} has ended yet."
    if blind:
        return f"No estimate: nothing like {plural(len(blind), 'workload')} of other projects has ended yet."
    return "No estimate: it would not start even if all running workloads end. `fairlead why` shows what helps."
