"""When a waiting workload starts: `decide` played forward over the ends of what runs and waits.

Running times come from outside (`runtimes.py`). Several samples of them are played, so that the answer has a median and
a 90 % value. Without knowledge about a workload that matters there is no estimate, and the answer says which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec.structs import replace

from fairlead.foresight.messages import enumerate_names, plural
from fairlead.foresight.outlook import SECONDS, step
from fairlead.foresight.runtimes import UNKNOWN, Basis, RunningTime, draw_part, quantile
from fairlead.foresight.why import ANYBODY, Asker
from fairlead.foresight.workloads import HOLDING, NOTHING_WAITS, SnapshotWorkloads, key_of
from fairlead.model.clock import iso
from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Plain, Snapshot

#: Samples on clusters with few and with many jobs, and calls of `decide` per sample.
_SAMPLES = (20, 5)
_FEW_JOBS = 500
_CALLS = (2_000, 300)
_SHOWN = 5
ASSUMPTIONS = (
    "Nothing else is submitted or fails.",
    "Workloads run as long as declared or as similar runs did; evicted ones start over.",
    "Evicted pods stop at once; their grace periods are not included.",
)


class ChainStep(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """Something that happens before it starts, in the sample next to the median."""

    at: float
    event: Literal["ends", "starts"]
    #: None if the caller may not see it.
    workload: str | None
    basis: Basis


class EstimateAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    workload: str
    project: str
    #: `unknown`: it waits for something whose end cannot be told.
    status: Literal["estimated", "unknown", "notWaiting"]
    message: str
    #: In the snapshot's time; half of the samples start it by then, and nine tenths.
    p50: float | None = None
    p90: float | None = None
    #: What it waits for, in order.
    chain: tuple[ChainStep, ...] = ()
    samples: int = 0
    decisions: int = 0
    assumptions: tuple[str, ...] = ASSUMPTIONS
    now: float
    revision: int | None = None


class _PlayedSample(NamedTuple):
    start: float | None
    #: Time, event, key.
    events: tuple[tuple[float, Literal["ends", "starts"], str], ...]
    calls: int


def estimate_start(
    snapshot: Snapshot, workload: str, runtimes: Mapping[str, RunningTime], asker: Asker = ANYBODY
) -> EstimateAnswer:
    """When this workload starts. `runtimes`: what is known of the others, by key of the workload."""
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key = workloads.find(workload)
    empty = EstimateAnswer(
        workload=workloads.name(key),
        project=workloads.project_of(key),
        status="notWaiting",
        message=NOTHING_WAITS,
        now=snapshot.now,
    )
    waiting = workloads.waiting_jobs(key)
    if not waiting:
        return empty
    is_large = len(snapshot.jobs) > _FEW_JOBS
    samples = _SAMPLES[is_large]
    played = [_play(snapshot, waiting, runtimes, (number, samples), _CALLS[is_large]) for number in range(samples)]
    calls = sum(each.calls for each in played)
    started = [each for each in played if each.start is not None]
    if len(started) < samples:
        return _unknown(empty, workloads, runtimes, samples, calls)
    starts = [each.start for each in started if each.start is not None]
    median, late = quantile(starts, 0.5), quantile(starts, 0.9)
    middle = next(each for each in started if each.start == median)
    chain = tuple(_chain(workloads, runtimes, middle))
    answer: EstimateAnswer = replace(
        empty,
        status="estimated",
        message=_message(snapshot.now, median, late, chain),
        p50=median,
        p90=late,
        chain=chain,
        samples=samples,
        decisions=calls,
    )
    return answer


def _play(
    snapshot: Snapshot, waiting: frozenset[str], runtimes: Mapping[str, RunningTime], sample: tuple[int, int], most: int
) -> _PlayedSample:
    """One sample of running times, played until the first of the waiting jobs is bound."""

    def remaining(key: str) -> float | None:
        return runtimes.get(key, UNKNOWN).remaining(draw_part(key, *sample))

    ends = {key: snapshot.now + left for key in _running(snapshot) if (left := remaining(key)) is not None}
    events: list[tuple[float, Literal["ends", "starts"], str]] = []
    for calls in range(1, most + 1):
        decisions = decide(snapshot)
        if any(bind.job in waiting for bind in decisions.binds):
            return _PlayedSample(snapshot.now, tuple(events), calls)
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
            return _PlayedSample(None, tuple(events), calls)
        now = max(min(moments), snapshot.now)
        over = sorted(key for key, end in ends.items() if end <= now)
        events += [(now, "ends", key) for key in over]
        for key in over:
            del ends[key]
        snapshot = _without(snapshot, frozenset(over), now)
    return _PlayedSample(None, tuple(events), most)


def _running(snapshot: Snapshot) -> set[str]:
    return {key_of(job) for job in snapshot.jobs if any(task.status in HOLDING for task in job.tasks)}


def _started(decisions: Decisions, snapshot: Snapshot) -> list[str]:
    bound = {bind.job for bind in decisions.binds}
    return sorted({key_of(job) for job in snapshot.jobs if job.id in bound})


def _without(snapshot: Snapshot, ended: frozenset[str], now: float) -> Snapshot:
    jobs = tuple(job for job in snapshot.jobs if key_of(job) not in ended) if ended else snapshot.jobs
    changed: Snapshot = replace(snapshot, jobs=jobs, now=now)
    return changed


def _unknown(
    empty: EstimateAnswer, workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], samples: int, calls: int
) -> EstimateAnswer:
    """It never starts in some sample: because nothing is known of what runs, or because nothing helps."""
    blind = [key for key in workloads.holders() if runtimes.get(key, UNKNOWN).basis == "unknown"]
    shown = [workloads.name(key) for key in blind if workloads.is_visible(key)][:_SHOWN]
    if shown:
        message = f"No estimate: nothing like {enumerate_names(shown)} has ended yet."
    elif blind:
        message = f"No estimate: nothing like {plural(len(blind), 'workload')} of other projects has ended yet."
    else:
        message = "No estimate: it would not start even if all running workloads end. `fairlead why` shows what helps."
    answer: EstimateAnswer = replace(empty, status="unknown", message=message, samples=samples, decisions=calls)
    return answer


def _chain(workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], played: _PlayedSample) -> list[ChainStep]:
    return [
        ChainStep(
            at=at,
            event=event,
            workload=workloads.name(key) if workloads.is_visible(key) else None,
            basis=runtimes.get(key, UNKNOWN).basis,
        )
        for at, event, key in played.events
        if key in workloads.jobs
    ]


def _message(now: float, median: float, late: float, chain: tuple[ChainStep, ...]) -> str:
    if median <= now:
        return "It starts in the next scheduling cycle."
    message = f"Starts about {_clock(median)}"
    if late > median:
        message += f", very likely by {_clock(late)}"
    ends = [each for each in chain if each.event == "ends"]
    first = [each for each in chain if each.event == "starts"]
    if ends:
        name = ends[-1].workload or "a workload of another project"
        message += f": {name} ends then ({ends[-1].basis})"
    if first:
        message += f"; {plural(len(first), 'workload')} {'goes' if len(first) == 1 else 'go'} first"
    return f"{message}."


def _clock(moment: float) -> str:
    return iso(round(moment * 1000))
