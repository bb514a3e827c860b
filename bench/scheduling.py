"""How long `decide` takes, row by row, with the goal and, where KAI's own figure is known, that beside it.

    python -m bench.scheduling [--quick] [--openb FOLDER] [--growth]

Times are of `decide` on a snapshot in memory; building it is not counted. KAI's numbers are quoted: its Go code, in
process, on a machine of this size.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from bench import scheduling_clusters as clusters
from bench.scheduling_openb import bench_openb
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


def measure(build: Callable[[int], Snapshot], count: int, repeats: int) -> tuple[float, Decisions]:
    """Best of some runs: the machine does other things too."""
    snapshot = build(count)
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        decisions = decide(snapshot)
        best = min(best, time.perf_counter() - begin)
    return best, decisions


def write(*cells: object) -> None:
    sys.stdout.write("| " + " | ".join(str(cell) for cell in cells) + " |\n")
    sys.stdout.flush()


def bench_rows(repeats: int) -> None:
    write("what", "nodes", "goal", "took", "KAI (quoted)", "starts", "evicted", "kept")
    write(*["---"] * 8)
    for name, build, count, goal, quoted in ROWS:
        took, decisions = measure(build, count, repeats)
        verdict = f"{took:.3f} s" + ("" if took <= goal else " (missed)")
        counts = (len(decisions.binds), len(decisions.evictions), len(decisions.pipelined))
        write(name, count, f"{goal} s", verdict, quoted or "-", *counts)


def bench_growth() -> None:
    """Time over nodes, jobs growing with them: what doubles should take about twice as long."""
    write("what", *(f"{count} nodes" for count in GROWTH))
    write(*["---"] * (len(GROWTH) + 1))
    for name, build in (
        ("fill with one-GPU jobs", clusters.fill),
        ("nothing to do", clusters.idle),
        ("everything is reclaimed", clusters.reclaim_all),
        ("a gang reclaims half", clusters.reclaim_half),
    ):
        write(name, *(f"{measure(build, count, 1)[0]:.2f} s" for count in GROWTH))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="each row once")
    parser.add_argument("--growth", action="store_true", help="the table of growth too")
    parser.add_argument("--openb", metavar="FOLDER", help="folder with the openb trace")
    given = parser.parse_args()
    bench_rows(1 if given.quick else 3)
    if given.growth:
        sys.stdout.write("\n")
        bench_growth()
    if given.openb:
        sys.stdout.write("\n")
        bench_openb(given.openb)


if __name__ == "__main__":
    main()
