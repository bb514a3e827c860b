"""When a waiting workload starts: `decide` played forward over the ends of what runs and waits.

Running times come from outside (`runtimes.py`). Several samples of them are played, so that the answer has a median and
a 90 % value. Without knowledge about a workload that matters there is no estimate, and the answer says which one it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec.structs import replace

from fairlead.foresight.forward import (
    ASSUMPTIONS,
    NOTHING_HELPS,
    ForwardPlayer,
    PlayedSample,
    SampleTurn,
    explain_missing_start,
    format_start,
)
from fairlead.foresight.messages import plural
from fairlead.foresight.outlook import starts_alone
from fairlead.foresight.runtimes import UNKNOWN, Basis, RunningTime, foretell
from fairlead.foresight.submissions import NO_SUBMISSIONS, PastSubmissions
from fairlead.foresight.why import ANYBODY, Asker
from fairlead.foresight.workloads import NOTHING_WAITS, SnapshotWorkloads
from fairlead.scheduling.model.snapshot import Plain, Snapshot

#: Samples, and calls of `decide` per sample; fewer if there are many jobs, sooner if each call builds their model anew.
_SAMPLES = (20, 9)
_FEW_JOBS, _FEW_KEPT_JOBS = 500, 2_000
_CALLS = (2_000, 300)
_NEVER = float("inf")
_SUBMISSIONS_GO_ON = "As much is submitted as in the last days, at the same hours; nothing fails."


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


def estimate_start(
    snapshot: Snapshot,
    workload: str,
    runtimes: Mapping[str, RunningTime],
    asker: Asker = ANYBODY,
    submissions: PastSubmissions = NO_SUBMISSIONS,
) -> EstimateAnswer:
    """When this workload starts. `runtimes`: what is known of the others, by key of the workload."""
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key = workloads.find(workload)
    empty = EstimateAnswer(
        workload=workloads.name(key),
        project=workloads.project_of(key),
        status="notWaiting",
        message=NOTHING_WAITS,
        assumptions=ASSUMPTIONS if not submissions else (_SUBMISSIONS_GO_ON, *ASSUMPTIONS[1:]),
        now=snapshot.now,
    )
    waiting = workloads.waiting_jobs(key)
    if not waiting:
        return empty
    player = ForwardPlayer(snapshot, submissions)
    is_slow = len(snapshot.jobs) > (_FEW_KEPT_JOBS if player.is_fast else _FEW_JOBS)
    samples = _SAMPLES[is_slow]
    played = [
        player.play({key: waiting}, runtimes, SampleTurn(number, samples, _CALLS[is_slow])) for number in range(samples)
    ]
    calls = sum(each.calls for each in played)
    starts = [each.starts.get(key, _NEVER) for each in played]
    median, late = foretell(starts, 0.5), foretell(starts, 0.9)
    if late == _NEVER:
        missing = [each for each in played if key not in each.starts]
        can_start = starts_alone(snapshot, workloads.jobs[key], waiting)
        message = explain_missing_start(workloads, runtimes, missing) if can_start else NOTHING_HELPS
        unknown: EstimateAnswer = replace(empty, status="unknown", message=message, samples=samples, decisions=calls)
        return unknown
    middle = next(each for each in played if each.starts.get(key) == median)
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


def _chain(workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], played: PlayedSample) -> list[ChainStep]:
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
    message = format_start(median, late)
    ends = [each for each in chain if each.event == "ends"]
    first = [each for each in chain if each.event == "starts"]
    if ends:
        name = ends[-1].workload or "a workload of another project"
        message += f": {name} ends then ({ends[-1].basis})"
    if first:
        message += f"; {plural(len(first), 'workload')} {'goes' if len(first) == 1 else 'go'} first"
    return f"{message}."
