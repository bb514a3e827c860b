"""How good estimates of starts are: a history is replayed, and workloads that have to wait are estimated on arrival.

    python -m bench.calibration [--quick] [--peers] [--philly FILE] [--skip N] [--jobs N] [--every N]

Only workloads that do not start in their first cycle count. Running times are learned from those that ended or run, by
project and size, as a server does without users and commands; submissions are expected as in the seven days before. The
second half of the estimates is judged: how many starts happen by the median and by the late estimate, and how far off
the median is. Beside it stand the mean wait of the first half, and the shares that factors learned from the first half
would give. `bench.foresight` says where Philly's trace is to be had; without it, a made-up trace is replayed.

`--peers` adds a comparison with Slurm (`bench.slurm_starts`): 1,000 arrivals from the middle of the trace on ten nodes
and in one queue, in Slurm in 14 minutes of real time and in ours by a replay. Both know the time limits; ours also
knows the runs before. Each is judged by its own starts.
"""

from __future__ import annotations

import argparse
import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from msgspec.structs import replace

from bench.foresight import made_up
from bench.slurm_starts import ForetoldStart, limit_of, measure_slurm
from fairlead.foresight.estimate import EstimateAnswer, estimate_start
from fairlead.foresight.runtimes import RunningTime, quantile
from fairlead.foresight.submissions import DAY, DAYS, PastSubmission, PastSubmissions
from fairlead.scheduling.model.snapshot import Job, Snapshot
from fairlead.simulator.history import Arrival, read_history
from fairlead.simulator.replay import make_job, replay
from fairlead.simulator.report import make_cluster

#: Similar runs that are remembered: those that started last.
_RUNS = 300


class Estimate(NamedTuple):
    at: float
    p50: float
    p90: float


class Judged(NamedTuple):
    """Waits in seconds: estimated, and as it was."""

    p50: float
    p90: float
    was: float


class Run(NamedTuple):
    start: float
    seconds: float
    has_ended: bool


class Watcher:
    """Estimates every `every`-th of the workloads that wait."""

    def __init__(
        self, cluster: Snapshot, history: Sequence[Arrival], every: int, limit: Callable[[Arrival], float] | None = None
    ) -> None:
        """`limit`: the time limits that users gave, if they had to."""
        self.cluster = cluster
        self.limit = limit
        self.history = history
        self.arrivals = {arrival.id: arrival for arrival in history}
        self.times = [arrival.at for arrival in history]
        self.every = every
        self.seen = 0
        self.unknown = 0
        self.estimates: dict[str, Estimate] = {}
        #: The last start of each that runs.
        self.running: dict[str, float] = {}
        self.ended: dict[tuple[str, float], list[Run]] = defaultdict(list)
        self.cpu = 0.0
        self.slowest = 0.0

    def __call__(self, now: float, waiting: Sequence[str], jobs: Mapping[str, Job]) -> None:
        self._learn(jobs)
        for id in waiting:
            self.seen += 1
            if self.seen % self.every:
                continue
            began = time.process_time()
            answer = self._estimate(id, now, jobs)
            took = time.process_time() - began
            self.cpu, self.slowest = self.cpu + took, max(self.slowest, took)
            if answer.p50 is None or answer.p90 is None:
                self.unknown += 1
            else:
                self.estimates[id] = Estimate(now, answer.p50, answer.p90)

    def learn_before(self, first: Arrival) -> None:
        """What ended before this arrival, as if it had not waited."""
        for arrival in self.history[: bisect_left(self.times, first.at)]:
            if arrival.at + arrival.duration < first.at:
                self.learn_run(arrival, arrival.at)

    def learn_run(self, arrival: Arrival, start: float) -> None:
        for likeness in self._likenesses(arrival):
            self.ended[likeness].append(Run(start, arrival.duration, True))

    def _learn(self, jobs: Mapping[str, Job]) -> None:
        """What ran at the last call and is gone has ended, after the time that the history says."""
        for id in [id for id in self.running if id not in jobs]:
            arrival = self.arrivals[id]
            self.learn_run(arrival, self.running.pop(id))
        for job in jobs.values():
            if job.tasks[0].node is not None:
                self.running[job.id] = job.last_start or 0
            else:
                self.running.pop(job.id, None)

    def _estimate(self, id: str, now: float, jobs: Mapping[str, Job]) -> EstimateAnswer:
        similar = self._find_similar(now)
        times = {job.id: self._time(self.arrivals[job.id], similar, now) for job in jobs.values()}
        snapshot: Snapshot = replace(self.cluster, jobs=tuple(jobs.values()), now=now)
        week = slice(bisect_left(self.times, now - DAYS * DAY), bisect_left(self.times, now))
        past = tuple(
            PastSubmission(
                ago=now - each.at,
                jobs=(make_job(each),),
                runtime=times.get(each.id, RunningTime(declared=each.duration)),
            )
            for each in self.history[week]
        )
        submissions = PastSubmissions(past, now - self.times[0])
        return estimate_start(snapshot, id, times, submissions=submissions)

    def _find_similar(self, now: float) -> dict[tuple[str, float], RunningTime]:
        runs = {likeness: list(ended) for likeness, ended in self.ended.items()}
        for id, start in self.running.items():
            for likeness in self._likenesses(self.arrivals[id]):
                runs.setdefault(likeness, []).append(Run(start, now - start, False))
        newest = {likeness: sorted(each)[-_RUNS:] for likeness, each in runs.items()}
        return {
            likeness: RunningTime(
                runs=tuple(run.seconds for run in each if run.has_ended),
                running=tuple(run.seconds for run in each if not run.has_ended),
            )
            for likeness, each in newest.items()
        }

    def _time(self, arrival: Arrival, similar: Mapping[tuple[str, float], RunningTime], now: float) -> RunningTime:
        known = (similar[likeness] for likeness in self._likenesses(arrival) if likeness in similar)
        best: RunningTime = next((each for each in known if each.runs), RunningTime())
        limit = self.limit(arrival) if self.limit is not None else None
        timed: RunningTime = replace(best, elapsed=now - self.running.get(arrival.id, now), limit=limit)
        return timed

    def _likenesses(self, arrival: Arrival) -> tuple[tuple[str, float], ...]:
        owner = arrival.project if self.limit is None else f"{arrival.project}/{self.limit(arrival)}"
        return (owner, arrival.gpus * arrival.pods), (owner, 0.0)


def judge(watcher: Watcher, starts: Mapping[str, float | None]) -> list[Judged]:
    """In the order of their arrival."""
    return [
        Judged(each.p50 - each.at, each.p90 - each.at, start - each.at)
        for id, each in watcher.estimates.items()
        if (start := starts[id]) is not None
    ]


def learn_factors(judged: Sequence[Judged]) -> tuple[float, float]:
    """By what the median and the late estimate are to be multiplied so that their shares hold."""
    return (
        quantile([each.was / max(each.p50, 1) for each in judged], 0.5),
        quantile([each.was / max(each.p90, 1) for each in judged], 0.9),
    )


def write(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(str(cell) for cell in cells) + " |\n")
    sys.stdout.flush()


def tell(name: str, judged: Sequence[Judged], factors: tuple[float, float]) -> None:
    by_median = 100 * mean(each.was <= each.p50 * factors[0] for each in judged)
    by_late = 100 * mean(each.was <= each.p90 * factors[1] for each in judged)
    error = median(abs(each.was - each.p50 * factors[0]) for each in judged)
    write(name, len(judged), f"{by_median:.1f} %", f"{by_late:.1f} %", f"{error:.0f} s")


def bench_calibration(name: str, history: Sequence[Arrival], skip: int, every: int) -> None:
    """`skip`: so many at the beginning are learned from, and not replayed."""
    cluster = make_cluster(history, 80, 8)
    watcher = Watcher(cluster, history, every)
    watcher.learn_before(history[skip])
    began = time.process_time()
    played = replay(cluster, history[skip:], watch=watcher)
    took = time.process_time() - began
    starts = {workload.arrival.id: workload.start for workload in played.workloads}
    judged = judge(watcher, starts)
    half = len(judged) // 2
    sys.stdout.write(
        f"\n{name}: {watcher.seen} of {len(history) - skip} workloads had to wait, {len(judged)} were estimated, "
        f"{watcher.unknown} could not be ({took:.0f} s of CPU, {watcher.cpu:.0f} s of it for estimates, "
        f"{watcher.slowest:.1f} s for the slowest)\n\n"
    )
    if half < 2:
        return
    write("second half", "estimates", "by p50 (goal 45-55 %)", "by p90 (goal 85-95 %)", "median error")
    write(*["---"] * 5)
    tell("as estimated", judged[half:], (1, 1))
    factors = learn_factors(judged[:half])
    tell(f"with factors {factors[0]:.2f}, {factors[1]:.2f} of the first half", judged[half:], factors)
    usual = mean(each.was for each in judged[:half])
    naive = median(abs(each.was - usual) for each in judged[half:])
    write("the mean wait of the first half", len(judged) - half, "-", "-", f"{naive:.0f} s")


def compare_with_slurm(history: Sequence[Arrival], quick: bool) -> None:
    count, nodes, gpus = (100 if quick else 1_000), 10, 8
    fitting = [each for each in history if each.pods <= nodes and each.gpus >= 1]
    history = [replace(each, project="all") for each in fitting]
    first = len(history) // 2
    window = history[first : first + count]
    cluster = make_cluster(window, nodes, gpus)
    watcher = Watcher(cluster, history, every=1 if quick else 10, limit=limit_of)
    watcher.learn_before(window[0])
    played = replay(cluster, window, watch=watcher)
    judged = judge(watcher, {workload.arrival.id: workload.start for workload in played.workloads})
    theirs, waiting = measure_slurm(window, nodes, gpus)
    sys.stdout.write(f"\n{len(window)} arrivals on {nodes} nodes x {gpus} GPUs beside Slurm\n\n")
    write("", "waited and judged", "started by then", "median error", "mean error")
    write(*["---"] * 5)
    ours = [ForetoldStart(each.p50, each.was) for each in judged]
    for name, found in (("estimate (median)", ours), (f"squeue --start ({waiting} more still waited)", theirs)):
        if found:
            errors = [abs(each.was - each.foretold) for each in found]
            share = 100 * mean(each.was <= each.foretold for each in found)
            write(name, len(found), f"{share:.1f} %", f"{median(errors):.0f} s", f"{mean(errors):.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 jobs, few estimates")
    parser.add_argument("--philly", metavar="FILE", type=Path, help="the trace philly.csv")
    parser.add_argument("--skip", type=int, default=0, help="learn from so many jobs, and replay those after them")
    parser.add_argument("--jobs", type=int, help="only so many jobs of the trace")
    parser.add_argument(
        "--every", type=int, default=20, help="estimate one of so many that wait (default: 20); 0: none"
    )
    parser.add_argument("--peers", action="store_true", help="compare with Slurm, 15 minutes; installs it")
    given = parser.parse_args()
    first = given.jobs or (2_000 if given.quick else None)
    name = "Philly" if given.philly is not None else "A made-up trace"
    history = read_history(given.philly.read_text(), "philly") if given.philly is not None else made_up(8_000)
    if given.every:
        bench_calibration(name, history[: given.skip + first] if first else history, given.skip, given.every)
    if given.peers:
        compare_with_slurm(history, given.quick)


if __name__ == "__main__":
    main()
