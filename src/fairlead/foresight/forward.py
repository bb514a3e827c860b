"""Plays `decide` forward over the ends of what runs and waits, with one sample of running times.

`estimate.py` plays several samples until a workload starts; `timing.py` until all those start that a plan may delay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from msgspec.structs import replace

from fairlead.foresight.messages import plural
from fairlead.foresight.outlook import SECONDS, step
from fairlead.foresight.runtimes import UNKNOWN, RunningTime, draw_together
from fairlead.foresight.submissions import NO_SUBMISSIONS, FutureSubmission, PastSubmissions
from fairlead.foresight.workloads import HOLDING, SnapshotWorkloads, key_of
from fairlead.model.clock import in_words
from fairlead.model.english import enumerate_names
from fairlead.scheduling.cycle import decide
from fairlead.scheduling.incremental import IncrementalCluster, can_decide_incrementally
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Job, Snapshot

ASSUMPTIONS = (
    "Nothing else is submitted or fails.",
    "Workloads run as long as declared or as similar runs did; evicted ones start over.",
    "Evicted pods stop at once; their grace periods are not included.",
)
NOTHING_HELPS = "No estimate: it would not start even if all running workloads end. `fairlead why` shows what helps."
#: Workloads that a message names.
_SHOWN = 5
#: Every end and submission is decided by itself in so many calls of `decide`; later, those together that lie within
#: this part of the time since the beginning. An estimate far ahead is not exact to the minute in any case.
_EXACT_CALLS, _COARSE = 60, 0.04
#: A sample ends if so many more jobs than now wait or run: more is submitted than the cluster can do, and the line, and
#: the memory that it takes, would grow until the last call.
_MAX_MORE_JOBS = 5_000
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


class _Ends:
    """When what runs will end, the earliest first; an end that no longer holds is passed over."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.heap: list[tuple[float, str]] = []

    def add(self, key: str, end: float) -> None:
        self.at[key] = end
        heappush(self.heap, (end, key))

    def first(self) -> float | None:
        while self.heap and self.at.get(self.heap[0][1]) != self.heap[0][0]:
            heappop(self.heap)
        return self.heap[0][0] if self.heap else None

    def pop_due(self, now: float) -> list[str]:
        """Those that end by now."""
        over = []
        while (end := self.first()) is not None and end <= now:
            key = heappop(self.heap)[1]
            del self.at[key]
            over.append(key)
        return over


class _SampleRun:
    """What is known at one moment of a sample."""

    def __init__(self, now: float, submissions: Iterator[FutureSubmission]) -> None:
        self.began = self.now = now
        self.ends = _Ends()
        self.events: list[Event] = []
        self.starts: dict[str, float] = {}
        #: Workloads that lost their place: they start over.
        self.evicted: set[str] = set()
        self.runtimes: dict[str, RunningTime] = {}
        self._submissions = submissions
        self.next: FutureSubmission | None = next(submissions, None)

    def advance(self, next_change: float | None, calls: int) -> bool:
        """Go to the next moment at which something happens; False if there is none."""
        submitted = self.next.at if self.next is not None else None
        moments = [moment for moment in (self.ends.first(), next_change, submitted) if moment is not None]
        if not moments:
            return False
        # Far ahead, what happens within a small part of the time that has passed is decided at once.
        step = (self.now - self.began) * _COARSE if calls > _EXACT_CALLS else 0
        self.now = max(min(moments), self.now + step)
        return True

    def take_submissions(self) -> list[FutureSubmission]:
        submissions = []
        while self.next is not None and self.next.at <= self.now:
            submissions.append(self.next)
            self.next = next(self._submissions, None)
        return submissions


class ForwardPlayer:
    """One cluster that is played several times, each time from the same state.

    The plain way is `decide` on a new snapshot after each step. If an incremental cluster decides alike, it is used
    instead; what a sample changed in it is put back before the next one.
    """

    def __init__(
        self, snapshot: Snapshot, submissions: PastSubmissions = NO_SUBMISSIONS, is_reference: bool = False
    ) -> None:
        """`is_reference` plays the plain way; tests compare both."""
        self.snapshot = snapshot
        self.submissions = submissions
        self.first = {job.id: job for job in snapshot.jobs}
        self.keys = {job.id: key_of(job) for job in snapshot.jobs}
        self.by_key: dict[str, list[str]] = {}
        for id, key in self.keys.items():
            self.by_key.setdefault(key, []).append(id)
        self.kept: IncrementalCluster | None = None
        if not is_reference and can_decide_incrementally(snapshot, (*snapshot.jobs, *submissions.jobs)):
            self.kept = IncrementalCluster(snapshot)
            for job in snapshot.jobs:
                self.kept.put(job)
        self.jobs: dict[str, Job] = self.kept.jobs if self.kept is not None else dict(self.first)
        self.running = [key for key in self.by_key if self._runs(key)]
        #: Jobs that are not what they were at first.
        self._changed: set[str] = set()
        #: The first decisions of every sample, if they change nothing.
        self._opening: Decisions | None = None

    @property
    def is_fast(self) -> bool:
        return self.kept is not None

    def play(
        self, targets: Mapping[str, frozenset[str]], runtimes: Mapping[str, RunningTime], sample: SampleTurn
    ) -> PlayedSample:
        """Until the first job of every target is bound. `targets`: waiting jobs by the key of their workload."""
        self._start_over()
        run = _SampleRun(self.snapshot.now, self.submissions.sample(sample.number, self.snapshot.now))
        key_by_job = {job: key for key, jobs in targets.items() for job in jobs}
        run.runtimes = dict(runtimes)
        for key in self.running:
            self._expect_end(run, key, sample)
        for calls in range(1, sample.most_calls + 1):
            decisions = self._open(run.now) if calls == 1 else self._decide(run.now)
            for bind in decisions.starts:
                if bind.job in key_by_job:
                    run.starts.setdefault(key_by_job[bind.job], run.now)
            if len(run.starts) == len(targets):
                return PlayedSample(run.starts, tuple(run.events), calls, run.now)
            if decisions.starts or decisions.evictions:
                self._follow(run, decisions, sample)
                continue
            if not self._go_on(run, decisions, calls):
                return PlayedSample(run.starts, tuple(run.events), calls, None)
            if len(self.jobs) - len(self.first) > _MAX_MORE_JOBS:
                break
        return PlayedSample(run.starts, tuple(run.events), calls, run.now)

    def _expect_end(self, run: _SampleRun, key: str, sample: SampleTurn) -> None:
        runtime = run.runtimes.get(key, UNKNOWN)
        part = draw_together(key, sample.number, sample.of)
        remaining = runtime.total(part) if key in run.evicted else runtime.remaining(part)
        if remaining is not None:
            run.ends.add(key, run.now + remaining)

    def _follow(self, run: _SampleRun, decisions: Decisions, sample: SampleTurn) -> None:
        """Who starts and who stops by these decisions, a second later."""
        run.now += SECONDS
        run.evicted.update(self.keys[each.job] for each in decisions.evictions if not each.never_started)
        for key in self._affected(decisions):
            if not self._runs(key):
                run.ends.at.pop(key, None)
            elif key not in run.ends.at:
                self._expect_end(run, key, sample)
        bound = {bind.job for bind in decisions.starts}
        run.events += [(run.now, "starts", key) for key in sorted({self.keys[id] for id in bound if id in self.jobs})]

    def _go_on(self, run: _SampleRun, decisions: Decisions, calls: int) -> bool:
        """Go to the moment at which the next workload ends or is submitted; False if there is none."""
        if not run.advance(decisions.next_change_at, calls):
            return False
        over = sorted(run.ends.pop_due(run.now))
        run.events += [(run.now, "ends", key) for key in over]
        for key in over:
            self._end(key)
        for submission in run.take_submissions():
            run.runtimes[submission.key] = submission.runtime
            self._submit(submission)
        return True

    def _submit(self, submission: FutureSubmission) -> None:
        self.by_key[submission.key] = [job.id for job in submission.jobs]
        for job in submission.jobs:
            self.keys[job.id] = submission.key
            if self.kept is None:
                self.jobs[job.id] = job
            else:
                self.kept.put(job)
                self._changed.add(job.id)

    def _start_over(self) -> None:
        if self.kept is None:
            self.jobs = dict(self.first)
        else:
            # In their own order, so that every sample begins with the same cluster.
            for id in sorted(self._changed):
                if id in self.first:
                    self.kept.put(self.first[id])
                elif id in self.jobs:
                    self.kept.remove(id)
        for id in [id for id in self.keys if id not in self.first]:
            self.by_key.pop(self.keys.pop(id), None)
        self._changed.clear()

    def _open(self, now: float) -> Decisions:
        if self._opening is not None:
            return self._opening
        decisions = self._decide(now)
        if not self._changed and not decisions.starts and not decisions.evictions:
            self._opening = decisions
        return decisions

    def _decide(self, now: float) -> Decisions:
        if self.kept is not None:
            decisions = self.kept.decide(now)
            self._changed.update(_moved_jobs(decisions))
            self._changed.update(start.job for start in decisions.last_starts)
            self._changed.update(mark.job for mark in decisions.stale)
            return decisions
        snapshot: Snapshot = replace(self.snapshot, jobs=tuple(self.jobs.values()), now=now)
        decisions = decide(snapshot)
        if decisions.starts or decisions.evictions:
            self.jobs = {job.id: job for job in step(snapshot, decisions, now + SECONDS).jobs}
        return decisions

    def _affected(self, decisions: Decisions) -> list[str]:
        """Keys of workloads that may have started or stopped. A new snapshot also drops pods that were leaving."""
        if self.kept is None:
            return sorted(self.by_key)
        return sorted({self.keys[id] for id in _moved_jobs(decisions)})

    def _runs(self, key: str) -> bool:
        jobs = (self.jobs[id] for id in self.by_key[key] if id in self.jobs)
        return any(task.status in HOLDING for job in jobs for task in job.tasks)

    def _end(self, key: str) -> None:
        for id in self.by_key[key]:
            if id not in self.jobs:
                continue
            if self.kept is None:
                del self.jobs[id]
            else:
                self.kept.remove(id)
                self._changed.add(id)


def _moved_jobs(decisions: Decisions) -> set[str]:
    return {bind.job for bind in decisions.starts} | {eviction.job for eviction in decisions.evictions}


def format_start(median: float, late: float) -> str:
    """Both times in words, without a full stop."""
    text = f"Starts about {in_words(round(median * 1000))}"
    return f"{text}, very likely by {in_words(round(late * 1000))}" if late > median else text


def explain_missing_start(
    workloads: SnapshotWorkloads, runtimes: Mapping[str, RunningTime], untold: list[PlayedSample]
) -> str:
    """Why these samples did not start it: nothing is known of what runs, it is too far away, or nothing helps.

    What starts before it runs too, so an unknown running time of a workload that waits now also leaves no estimate.
    """
    started = {key for sample in untold for _, event, key in sample.events if event == "starts"}
    running = sorted(key for key in started.union(workloads.holders()) if key in workloads.jobs)
    blind = [key for key in running if runtimes.get(key, UNKNOWN).basis == "unknown"]
    shown = [workloads.name(key) for key in blind if workloads.is_visible(key)][:_SHOWN]
    reached = [each.until for each in untold if each.until is not None]
    if len(reached) == len(untold):
        earliest = in_words(round(min(reached) * 1000))
        return f"No estimate: it starts after {earliest}, and the scheduler was not run further."
    if shown:
        return f"No estimate: no workload similar to {enumerate_names(shown)} has ended yet."
    if blind:
        return f"No estimate: how long {plural(len(blind), 'workload')} of other projects will run is unknown."
    return NOTHING_HELPS
