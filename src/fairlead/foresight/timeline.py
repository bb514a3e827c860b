"""A workload's past as spans of time: since when it waited for what, when it ran, why it was evicted. Pure.

    spans = find_spans(events, created_at, now)

The spans follow from the workload's events. An eviction is told by the recorded decision of its scheduling cycle, so
that the figures are those of that moment; what the asker may not see is not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from fairlead.foresight.why import ANYBODY, Asker
from fairlead.foresight.workloads import SnapshotWorkloads, WorkloadRef
from fairlead.model.clock import Millis
from fairlead.model.records.event import Event
from fairlead.model.records.phase import Phase
from fairlead.scheduling.model.decisions import Eviction
from fairlead.scheduling.model.snapshot import Plain, Snapshot

State = Literal["waiting", "starting", "running", "stopping", "stopped", "ended"]
_STATES: dict[Phase, State] = {
    Phase.CREATING: "waiting",
    Phase.PENDING: "waiting",
    Phase.RESUMING: "waiting",
    Phase.INITIALIZING: "starting",
    Phase.RUNNING: "running",
    Phase.UPDATING: "running",
    Phase.DEGRADED: "running",
    Phase.STOPPING: "stopping",
    Phase.TERMINATING: "stopping",
    Phase.DELETING: "stopping",
    Phase.STOPPED: "stopped",
    Phase.COMPLETED: "ended",
    Phase.FAILED: "ended",
}
#: What a workload waited for, in a few words, by the code of the scheduler's reason or of Run:ai's.
BLOCKERS = {
    "NonPreemptibleOverQuota": "quota",
    "OverLimit": "limit of its project or department",
    "NoNodeFits": "no room",
    "NeverFits": "larger than any node",
    "GangIncomplete": "no room for its gang",
    "Fragmented": "free resources are spread over several nodes",
    "Topology": "no room within its topology",
    "WaitsForVictims": "evicted pods that stop",
    "PreemptionDelayNotElapsed": "its preemption delay",
    "QueueDepth": "others of its project that come first",
    "NextCycle": "the next scheduling cycle",
    "Gated": "a scheduling gate",
    "NotReady": "its pods to be created",
}
_FIRST_DECISION = "the first scheduling decision"
#: A decision within this time after the submission is taken as the reason from the beginning.
_FIRST_DECISION_TIME: Millis = 1_000


class TimelineSpan(Plain, frozen=True, kw_only=True, omit_defaults=False):
    state: State
    since: float
    #: None: it still lasts.
    until: float | None
    seconds: float
    #: What it waited for: the code of the reason, and in a few words; empty while it did not wait.
    code: str = ""
    blocker: str = ""
    #: As it was told at the beginning of the span.
    message: str = ""


class WaitedFor(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """All spans with one blocker."""

    code: str
    blocker: str
    seconds: float


class PastEviction(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """An eviction of one of its pods."""

    at: float
    pod: str
    node: str
    #: preempted, reclaimed, consolidated or stale; empty if the cycle is no longer on record.
    rule: str
    message: str
    #: In whose favor, if the asker may see it; `hidden` is true if they may not.
    by: WorkloadRef | None = None
    hidden: bool = False
    moved_to: str | None = None
    #: GPUs above its quota that its project held at that moment, and the quota; None if it is not on record.
    over_quota_gpus: float | None = None
    quota_gpus: float | None = None


class TimelineAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    workload: str
    project: str
    message: str
    spans: tuple[TimelineSpan, ...] = ()
    #: The longest first.
    waited: tuple[WaitedFor, ...] = ()
    evictions: tuple[PastEviction, ...] = ()
    #: False if events of its beginning are no longer kept.
    is_complete: bool = True
    now: float
    revision: int | None = None


class _Move(NamedTuple):
    """The beginning of a span."""

    at: Millis
    state: State
    #: The code of the reason to wait; empty while it does not wait, or before the first decision.
    code: str = ""
    message: str = ""


def find_spans(events: Iterable[Event], created_at: Millis, now: Millis) -> tuple[TimelineSpan, ...]:
    """The spans from its creation to now; an ended workload's last one has no length."""
    moves = [_Move(created_at, "waiting")]
    for event in events:
        last = moves[-1]
        move = _next_move(last, event)
        if move is None or (move.state, move.code) == (last.state, last.code):
            continue
        if move.at == last.at or _is_first_decision(last, move):
            moves[-1] = move._replace(at=last.at)
        else:
            moves.append(move)
    ends = [*(move.at for move in moves[1:]), None]
    return tuple(_span(move, end, now) for move, end in zip(moves, ends, strict=True))


def _next_move(last: _Move, event: Event) -> _Move | None:
    """What an event says about the workload from then on; None for nothing."""
    if not event.phase and not event.blocker:
        return None
    state = _STATES.get(Phase(event.phase), last.state) if event.phase else last.state
    if event.phase and state == last.state == "waiting" and not event.blocker:
        # A phase that says nothing new about a wait does not end it.
        return last._replace(at=event.at)
    code = event.blocker if event.phase or state == "waiting" else ""
    return _Move(event.at, state, code, event.message if code else "")


def _is_first_decision(last: _Move, move: _Move) -> bool:
    """The first decision comes a moment after the submission."""
    is_new = last.state == "waiting" and not last.code
    return is_new and move.state == "waiting" and move.at - last.at < _FIRST_DECISION_TIME


def _span(move: _Move, end: Millis | None, now: Millis) -> TimelineSpan:
    until = end if end is not None else move.at if move.state == "ended" else now
    return TimelineSpan(
        state=move.state,
        since=move.at / 1000,
        until=None if end is None else end / 1000,
        seconds=max(0, until - move.at) / 1000,
        code=move.code,
        blocker=BLOCKERS.get(move.code, move.code) or _FIRST_DECISION if move.state == "waiting" else "",
        message=move.message,
    )


def sum_waits(spans: Iterable[TimelineSpan]) -> tuple[WaitedFor, ...]:
    sums: dict[tuple[str, str], float] = {}
    for span in spans:
        if span.state == "waiting":
            sums[span.code, span.blocker] = sums.get((span.code, span.blocker), 0.0) + span.seconds
    waits = [
        WaitedFor(code=code, blocker=blocker, seconds=round(seconds, 3))
        for (code, blocker), seconds in sums.items()
        if seconds
    ]
    return tuple(sorted(waits, key=lambda wait: (-wait.seconds, wait.code)))


def describe_eviction(snapshot: Snapshot, eviction: Eviction, pod: str, asker: Asker = ANYBODY) -> PastEviction:
    """An eviction as its cycle recorded it, for somebody who sees only some of the queues."""
    workloads = SnapshotWorkloads(snapshot, asker.visible)
    key = workloads.key_by_job.get(eviction.by_job or "")
    is_visible = key is not None and workloads.is_visible(key)
    tasks = [(eviction.by_job, task.id) for job in workloads.jobs.get(key or "", ()) for task in job.tasks]
    by = workloads.refer([(job, task) for job, task in tasks if job]).workloads[0] if is_visible else None
    winner = f"workload {by.workload} of project {by.project}" if by else "a workload of another project"
    victim = eviction.victim_queue
    victim_job = next((job for job in snapshot.jobs if job.id == eviction.job), None)
    project = workloads.projects.get(victim_job.queue, "") if victim_job else ""
    has_figures = victim is not None and victim.name == project
    over = eviction.over_quota[0]
    happened = {
        "reclaimed": f"{winner} reclaimed what project {project} held above its quota",
        "preempted": f"{winner} has a higher priority in the same project",
        "consolidated": f"it was moved{f' to {eviction.moved_to}' if eviction.moved_to else ''} to make room for "
        f"{winner}",
        "stale": "fewer pods were running than its gang needs",
    }.get(eviction.rule, eviction.rule)
    excess = f"; project {project} was {over:g} GPUs above its quota" if over else ""
    return PastEviction(
        at=snapshot.now,
        pod=pod,
        node=eviction.node,
        rule=eviction.rule,
        message=f"{happened}{excess}.",
        by=by,
        hidden=key is not None and not is_visible,
        moved_to=eviction.moved_to,
        over_quota_gpus=round(over, 3),
        quota_gpus=victim.quota[0] if victim is not None and has_figures and victim.quota[0] >= 0 else None,
    )


def summarize(spans: Sequence[TimelineSpan], waited: Sequence[WaitedFor], evictions: int) -> str:
    """One sentence: how long it waited for what."""
    parts = [f"{_in_words(wait.seconds)} {wait.blocker}" for wait in waited if wait.seconds >= 1]
    last = spans[-1]
    sentence = f"Waited: {', '.join(parts)}." if parts else "It has not waited."
    if evictions:
        sentence += f" Evicted {'once' if evictions == 1 else f'{evictions} times'}."
    if last.state == "waiting" and last.seconds >= 1:
        sentence += f" It has been waiting for {_in_words(last.seconds)} now: {last.blocker}."
    return sentence


def _in_words(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min" if whole < 172_800 else f"{whole // 86_400} d"
