"""When a planned workload starts, how much later others start because of it, and when all start after some changes.

The cluster is played forward without and with the workload or the changes, with the same running times. A difference is
therefore caused by them. The budget is small, because someone waits for the answer: what is too far ahead is not told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from msgspec.structs import replace

from fairlead.foresight.forward import ForwardPlayer, PlayedSample, SampleTurn, explain_missing_start, format_start
from fairlead.foresight.outlook import look_ahead
from fairlead.foresight.runtimes import RunningTime, quantile
from fairlead.foresight.why import ANYBODY, Asker
from fairlead.foresight.workloads import SnapshotWorkloads, is_waiting, key_of
from fairlead.scheduling.model.snapshot import Plain, Snapshot

_SAMPLES = 5
#: Jobs looked at over all calls of `decide`, and calls of one sample at least.
_WORK, _MIN_JOBS, _MIN_CALLS = 100_000, 50, 8
#: A smaller delay is one of scheduling cycles, not of workloads.
_NOTICED = 5.0
INFINITE = float("inf")


#: Waiting workloads of which a question about changes is answered.
_ESTIMATED = 20


class StartTime(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """When a workload starts, in the snapshot's time; None if that cannot be told, and the message says why."""

    #: `absent`: it is not there without the changes.
    status: Literal["estimated", "unknown", "running", "absent"]
    p50: float | None = None
    p90: float | None = None
    message: str


_RUNS = StartTime(status="running", message="Runs now.")
_ABSENT = StartTime(status="absent", message="Not submitted.")


class StartChange(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """When a workload starts without and with the changes."""

    workload: str
    project: str
    before: StartTime
    after: StartTime


class ChangedStarts(Plain, frozen=True, kw_only=True, omit_defaults=False):
    #: Who is evicted first, then who waits, in the order of priority and submission.
    starts: tuple[StartChange, ...] = ()
    #: Workloads that wait and were not estimated: more than fit, and those that the caller may not see.
    left_out: int = 0
    hidden: int = 0
    samples: int = _SAMPLES


class Delay(Plain, frozen=True, kw_only=True, omit_defaults=False):
    workload: str
    project: str
    #: Seconds by which it starts later, in the middle of the samples; None if it does not start in the time looked at.
    seconds: float | None
    #: It runs now and has to start again.
    is_evicted: bool = False


class PlanTiming(Plain, frozen=True, kw_only=True, omit_defaults=False):
    #: When it starts, in the snapshot's time; None if that cannot be told.
    p50: float | None
    p90: float | None
    message: str
    #: Who starts later, the longest delay first.
    delays: tuple[Delay, ...] = ()
    #: How many more there are that the caller may not see.
    hidden_delays: int = 0
    samples: int = _SAMPLES


def estimate_timing(
    snapshot: Snapshot, workload: str, runtimes: Mapping[str, RunningTime], asker: Asker = ANYBODY
) -> PlanTiming:
    """Of a workload that waits in the snapshot, as if it were submitted at this moment."""
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key = workloads.find(workload)
    without: Snapshot = replace(snapshot, jobs=tuple(each for each in snapshot.jobs if key_of(each) != key))
    others = _waiting(without)
    evicted = _evicted(snapshot, without, key)
    samples = _sample_turns(snapshot)
    targets = {key: workloads.waiting_jobs(key), **others, **evicted}
    after = _play(snapshot, targets, runtimes, samples)
    before = _play(without, others, runtimes, samples) if others else []
    all_delays = _find_delays(before, after, {**others, **dict.fromkeys(evicted)}, snapshot.now)
    delays = tuple(
        Delay(
            workload=workloads.name(each),
            project=workloads.project_of(each),
            seconds=seconds,
            is_evicted=each in evicted,
        )
        for each, seconds in all_delays
        if workloads.is_visible(each)
    )
    own = _start_time(workloads, runtimes, key, after)
    return PlanTiming(
        p50=own.p50, p90=own.p90, message=own.message, delays=delays, hidden_delays=len(all_delays) - len(delays)
    )


def estimate_changed(
    snapshot: Snapshot,
    changed: Snapshot,
    evicted: Collection[str],
    runtimes: Mapping[str, RunningTime],
    asker: Asker = ANYBODY,
) -> ChangedStarts:
    """When waiting workloads start in both snapshots. `evicted`: jobs that the changes take off their nodes."""
    was, then = SnapshotWorkloads(snapshot, asker.visible), SnapshotWorkloads(changed, asker.visible)
    lost: dict[str, set[str]] = {}
    for job in evicted:
        lost.setdefault(then.key_by_job[job], set()).add(job)
    waiting = _waiting(changed)
    keys = sorted({*waiting, *lost}, key=lambda key: (key not in lost, *_turn(then, key)))
    seen = [key for key in keys if then.is_visible(key)]
    chosen = seen[:_ESTIMATED]
    present = _waiting(snapshot)
    before_targets = {key: present[key] for key in chosen if key in present}
    after_targets = {key: frozenset(lost.get(key) or waiting[key]) for key in chosen}
    # What the changes themselves take off a node starts over.
    anew = {key: replace(runtimes[key], elapsed=0) for key in lost if key in runtimes}
    samples = _sample_turns(snapshot)
    before = _play(snapshot, before_targets, runtimes, samples) if before_targets else []
    after = _play(changed, after_targets, {**runtimes, **anew}, samples) if after_targets else []
    return ChangedStarts(
        starts=tuple(
            StartChange(
                workload=then.name(key),
                project=then.project_of(key),
                before=_start_time(was, runtimes, key, before)
                if key in before_targets
                else (_RUNS if key in was.jobs else _ABSENT),
                after=_start_time(then, runtimes, key, after),
            )
            for key in chosen
        ),
        left_out=len(seen) - len(chosen),
        hidden=len(keys) - len(seen),
    )


def _turn(workloads: SnapshotWorkloads, key: str) -> tuple[int, float, str]:
    job = workloads.jobs[key][0]
    return (-job.priority, job.created, key)


def _sample_turns(snapshot: Snapshot) -> list[SampleTurn]:
    calls = _WORK // max(len(snapshot.jobs), _MIN_JOBS) // (2 * _SAMPLES)
    return [SampleTurn(number, _SAMPLES, max(calls, _MIN_CALLS)) for number in range(_SAMPLES)]


def _play(
    snapshot: Snapshot,
    targets: Mapping[str, frozenset[str]],
    runtimes: Mapping[str, RunningTime],
    samples: list[SampleTurn],
) -> list[PlayedSample]:
    player = ForwardPlayer(snapshot)
    return [player.play(targets, runtimes, sample) for sample in samples]


def _waiting(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    waiting: dict[str, set[str]] = {}
    for job in snapshot.jobs:
        if is_waiting(job):
            waiting.setdefault(key_of(job), set()).add(job.id)
    return {key: frozenset(jobs) for key, jobs in waiting.items()}


def _evicted(snapshot: Snapshot, without: Snapshot, key: str) -> dict[str, frozenset[str]]:
    """Jobs of other workloads that lose their place for it in the next cycles."""
    lost: dict[str, set[str]] = {}
    keys = {job.id: key_of(job) for job in snapshot.jobs}
    anyway = look_ahead(without).evictions
    for task, eviction in look_ahead(snapshot).evictions.items():
        if task not in anyway and keys[eviction.job] != key:
            lost.setdefault(keys[eviction.job], set()).add(eviction.job)
    return {each: frozenset(jobs) for each, jobs in lost.items()}


def _start_time(
    workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], key: str, after: list[PlayedSample]
) -> StartTime:
    untold = [each for each in after if key not in each.starts]
    if untold:
        return StartTime(status="unknown", message=explain_missing_start(workloads, runtimes, untold))
    starts = [each.starts[key] for each in after]
    median, late = quantile(starts, 0.5), quantile(starts, 0.9)
    now = workloads.snapshot.now
    message = f"{format_start(median, late)}." if median > now else "Starts in the next scheduling cycle."
    return StartTime(status="estimated", p50=median, p90=late, message=message)


def _find_delays(
    before: list[PlayedSample], after: list[PlayedSample], others: Mapping[str, frozenset[str] | None], now: float
) -> list[tuple[str, float | None]]:
    """Keys and seconds, the longest first. What has no jobs in `others` runs now: its delay counts from now on."""
    delays = []
    for key, jobs in others.items():
        was = [now if jobs is None else each.starts.get(key) for each in (before or after)]
        waits = [
            each.starts.get(key, INFINITE) - left for left, each in zip(was, after, strict=True) if left is not None
        ]
        # Fewer pairs would say more about the samples than about the workload.
        if 2 * len(waits) > len(after) and (median := quantile(waits, 0.5)) > _NOTICED:
            delays.append((key, median))
    delays.sort(key=lambda pair: (-pair[1], pair[0]))
    return [(key, None if seconds == INFINITE else seconds) for key, seconds in delays]
