"""How long questions to the scheduler take on 500 nodes x 8 GPUs with 4,000 running and 2,000 waiting, and a replay.

    python -m bench.foresight [--quick] [--philly FILE]

CPU time of one thread is held against the goal. `--philly` replays Microsoft's trace on 80 nodes x 8 GPUs; without it
that row is left out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import scheduling_clusters as clusters
from fairlead.foresight.changes import SetShare
from fairlead.foresight.estimate import estimate_start
from fairlead.foresight.plan import make_plan
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.what_if import ask_what_if
from fairlead.foresight.why import explain_why
from fairlead.scheduling import Snapshot, decide
from fairlead.simulator.history import read_history
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


def bench_philly(path: Path, first: int | None) -> None:
    history = read_history(path.read_text(), "philly")[:first]
    began = time.process_time()
    played = replay(make_cluster(history, 80, 8), history)
    took = time.process_time() - began
    report = summarize(played)
    sys.stdout.write(
        f"\nPhilly, {len(history)} jobs on 80 x 8 GPUs: {took:.1f} s (goal for all 82,247: 60 s), "
        f"{played.decisions} cycles, {played.repeats} moments of swapping, "
        f"wait p90 {report.wait_p90:.0f} s, {100 * report.allocation:.1f} % of the GPU time in use\n"
    )


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
    if given.philly is not None:
        bench_philly(given.philly, 2_000 if given.quick else None)


if __name__ == "__main__":
    main()
