"""How long `decide` takes, row by row, with the goal and, where KAI's own figure is known, that beside it.

    python -m bench.scheduling [--quick] [--openb FOLDER]

Times are of `decide` on a snapshot in memory; building it is not counted. It is one thread that waits for nothing, so
its CPU time is held against the goal, and the time on the clock stands beside it: that one also shows what else the
machine does. KAI's numbers are quoted: its Go code, in process, on a machine of this size.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench import scheduling_clusters as clusters
from bench.scheduling_openb import DEFAULT_FOLDER, SEEDS, bench_openb
from fairlead.scheduling import Decisions, Snapshot, decide

ROWS: tuple[tuple[str, Callable[[int], Snapshot], int, float, str], ...] = (
    ("fill with one-GPU jobs, 20 projects", clusters.fill, 500, 4, ""),
    ("fill with gangs of 1-64 pods, quota and over quota", clusters.gangs, 500, 10, ""),
    ("nothing to do: 4,000 running, 2,000 pending", clusters.idle, 500, 0.1, ""),
    ("reclaim one GPU on a full cluster", clusters.reclaim_one, 500, 0.05, ""),
    ("a gang of 250 x 8 GPUs reclaims half", clusters.reclaim_half, 500, 1, "6.8 s"),
    ("a gang of 50 x 8 GPUs reclaims half", clusters.reclaim_half, 100, 1, "0.63 s"),
    ("a gang of 5 x 8 GPUs reclaims half", clusters.reclaim_half, 10, 1, "0.15 s"),
    ("everything is reclaimed, job by job", clusters.reclaim_all, 10, 2, "0.15 s"),
    ("everything is reclaimed, job by job", clusters.reclaim_all, 50, 2, "1.0 s"),
    ("everything is reclaimed, job by job", clusters.reclaim_all, 100, 2, "3.7 s"),
    ("everything is reclaimed, job by job", clusters.reclaim_all, 200, 2, "15 s"),
    ("everything is reclaimed, job by job", clusters.reclaim_all, 500, 2, "118 s"),
    ("allocate 500 jobs of 4 projects", clusters.allocate, 100, 0.2, "0.23 s"),
    ("a gang that lacks one GPU", clusters.one_short, 10, 0.1, "0.17 s"),
    ("a gang that lacks one GPU", clusters.one_short, 50, 0.1, "3.4 s"),
    ("a gang that lacks one GPU", clusters.one_short, 100, 0.1, "17 s"),
    ("a gang that lacks one GPU", clusters.one_short, 1000, 1, ""),
    ("the same with anti-affinity by rack", clusters.one_short_anti, 100, 0.1, ""),
    ("the same with anti-affinity by rack", clusters.one_short_anti, 1000, 1, ""),
    ("the same with a required rack", clusters.one_short_rack, 100, 0.1, ""),
    ("the same with a required rack", clusters.one_short_rack, 1000, 1, ""),
)
GROWTH = (125, 250, 500, 1000, 2000)


class Took(NamedTuple):
    cpu: float
    clock: float
    decisions: Decisions


def measure(build: Callable[[int], Snapshot], count: int, repeats: int) -> Took:
    """Best of some runs: the machine does other things too."""
    snapshot = build(count)
    cpu = clock = float("inf")
    for _ in range(repeats):
        began, begun = time.process_time(), time.perf_counter()
        decisions = decide(snapshot)
        cpu, clock = min(cpu, time.process_time() - began), min(clock, time.perf_counter() - begun)
    return Took(cpu, clock, decisions)


def write(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(str(cell) for cell in cells) + " |\n")
    sys.stdout.flush()


def bench_rows(repeats: int) -> None:
    write("what", "nodes", "goal", "CPU", "clock", "KAI (quoted)", "starts", "evicted", "kept")
    write(*["---"] * 9)
    for name, build, count, goal, quoted in ROWS:
        took = measure(build, count, repeats)
        verdict = f"{took.cpu:.3f} s" + ("" if took.cpu <= goal else " (missed)")
        made = took.decisions
        counts = (len(made.binds), len(made.evictions), len(made.pipelined))
        write(name, count, f"{goal} s", verdict, f"{took.clock:.3f} s", quoted or "-", *counts)


def bench_growth(sizes: Sequence[int]) -> None:
    """CPU time over nodes, jobs growing with them: what doubles should take about twice as long."""
    write("growth: nodes x 2, jobs x 2", *(f"{count} nodes" for count in sizes))
    write(*["---"] * (len(sizes) + 1))
    for name, build in (
        ("fill with one-GPU jobs", clusters.fill),
        ("nothing to do", clusters.idle),
        ("everything is reclaimed", clusters.reclaim_all),
        ("a gang reclaims half", clusters.reclaim_half),
    ):
        write(name, *(f"{measure(build, count, 1).cpu:.2f} s" for count in sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each row once, growth up to 500 nodes, one stream")
    parser.add_argument(
        "--openb", metavar="FOLDER", type=Path, default=DEFAULT_FOLDER, help="folder with the openb trace"
    )
    given = parser.parse_args()
    bench_rows(1 if given.quick else 3)
    sys.stdout.write("\n")
    bench_growth(GROWTH[:3] if given.quick else GROWTH)
    sys.stdout.write("\n")
    bench_openb(given.openb, SEEDS[:1] if given.quick else SEEDS)


if __name__ == "__main__":
    main()
