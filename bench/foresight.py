"""How long questions to the scheduler take on 500 nodes x 8 GPUs with 4,000 running and 2,000 waiting, and replays.

    python -m bench.foresight [--quick] [--philly FILE]

CPU time of one thread is held against the goal. `--philly` replays Microsoft's trace on 80 nodes x 8 GPUs. The trace is
not part of this project: it is `simulator/traces/philly.csv` in the branch `osdi21-artifact` of petuum/adaptdl on
GitHub (CC BY 4.0, Microsoft). Without it, a made-up trace of the same form and a tenth of its size is replayed.

What holds a replay back: searches for room by reclaim that find none, and that are made again after every arrival and
end. If two or more of the jobs above their share each take a part of a node, such as 4 of 8 GPUs, each search checks
some 200 sets of up to 100 victims.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import scheduling_clusters as clusters
from bench.kueue_loads import BASELINE, LARGE, ideal_seconds, make_load
from fairlead.foresight.changes import SetShare
from fairlead.foresight.estimate import estimate_start
from fairlead.foresight.plan import make_plan
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.what_if import ask_what_if
from fairlead.foresight.why import explain_why
from fairlead.scheduling import Snapshot, decide
from fairlead.simulator.history import Arrival, read_history
from fairlead.simulator.replay import replay
from fairlead.simulator.report import make_cluster, summarize

WAITS = "new-00005"


def rows(snapshot: Snapshot) -> list[tuple[str, float, Callable[[], object]]]:
    """What is asked, the goal in seconds, and the question."""
    runs = (100.0, 1000.0, 5000.0, 20_000.0)
    times = {job.id: RunningTime(runs=runs, elapsed=50.0 if job.last_start is not None else 0) for job in snapshot.jobs}
    weight = SetShare(queue="project-01", field="weight", value=5)
    return [
        ("the blocker (one decision)", 0.1, lambda: decide(snapshot)),
        ("a plan", 0.3, lambda: make_plan(snapshot, WAITS)),
        ("what if a weight changes", 0.3, lambda: ask_what_if(snapshot, [weight])),
        ("why, all families of changes", 3, lambda: explain_why(snapshot, WAITS)),
        ("the estimate of one that starts soon", 1, lambda: estimate_start(snapshot, "new-00000", times)),
    ]


def measure(ask: Callable[[], object], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        ask()
        best = min(best, time.process_time() - began)
    return best


def write(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(str(cell) for cell in cells) + " |\n")
    sys.stdout.flush()


def made_up(count: int) -> tuple[Arrival, ...]:
    """Mostly one GPU, some gangs, running times over five orders of magnitude, and days on which much is submitted."""
    dice = random.Random(1)
    at, arrivals = 0.0, []
    for number in range(count):
        at += dice.expovariate(1 / (30 if number // 400 % 3 else 150))
        gpus = dice.choices((1, 2, 4, 8, 16, 32), (93, 2, 2, 2, 0.7, 0.3))[0]
        arrivals.append(
            Arrival(
                id=f"job-{number:06d}",
                at=at,
                project=f"team-{dice.choices(range(15), [16 - team for team in range(15)])[0]:02d}",
                duration=min(10 ** dice.gauss(3.2, 1.0), 1_000_000),
                gpus=min(gpus, 8),
                pods=max(1, gpus // 8),
            )
        )
    return tuple(arrivals)


def bench_replay(name: str, history: tuple[Arrival, ...]) -> None:
    began = time.process_time()
    cluster = make_cluster(history, 80, 8)
    played = replay(cluster, history)
    took = time.process_time() - began
    report = summarize(cluster, played)
    sys.stdout.write(
        f"\n{name}, {len(history)} jobs on 80 x 8 GPUs: {took:.1f} s (goal for Philly's 82,247: 60 s), "
        f"{played.decisions} cycles, {played.repeats} moments of swapping, "
        f"wait p90 {report.wait_p90:.0f} s, {100 * report.allocation:.1f} % of the GPU time in use\n"
        "What holds it back: searches by reclaim that find no room, made again after every arrival and end.\n"
    )


def bench_kueue(is_quick: bool) -> None:
    """Kueue's own figures are those of its published runs: 351 s of virtual time, 1,179 s of wall time."""
    write("load of Kueue", "workloads", "goal", "virtual time", "CPU", "evictions")
    write(*["---"] * 6)
    ideal = ideal_seconds(BASELINE)
    for name, load, goal in (
        ("30 queues", (1, 2, BASELINE) if is_quick else (5, 6, BASELINE), f"virtual {1.2 * ideal:.0f} s"),
        ("1,000 queues", (1, 20, LARGE) if is_quick else (10, 100, LARGE), "CPU 47 s"),
    ):
        cluster, history = make_load(*load)
        began = time.process_time()
        played = replay(cluster, history)
        took = time.process_time() - began
        last = max(workload.end or 0 for workload in played.workloads)
        evictions = sum(workload.evictions for workload in played.workloads)
        write(name, len(history), goal, f"{last:.1f} s", f"{took:.1f} s", evictions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each row once, 2,000 jobs of the trace")
    parser.add_argument("--philly", metavar="FILE", type=Path, help="the trace philly.csv")
    given = parser.parse_args()
    write("question", "goal", "CPU")
    write(*["---"] * 3)
    for name, goal, ask in rows(clusters.idle(500)):
        took = measure(ask, 1 if given.quick else 3)
        write(name, f"{goal} s", f"{took:.3f} s" + ("" if took <= goal else " (missed)"))
    sys.stdout.write("\n")
    bench_kueue(given.quick)
    first = 2_000 if given.quick else None
    if given.philly is not None:
        bench_replay("Philly", read_history(given.philly.read_text(), "philly")[:first])
    else:
        bench_replay("A made-up trace", made_up(8_000)[:first])


if __name__ == "__main__":
    main()
