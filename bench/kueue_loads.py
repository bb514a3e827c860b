"""The loads of Kueue's scheduler performance tests, re-made from the numbers in its configurations.

Cohorts are departments, cluster queues are projects. Kueue counts quota only; here it is one node with as many cores as
all quotas together, so that nothing is lost to nodes that are partly full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlead.scheduling.model.snapshot import Queue, QueueShares, Share, Snapshot, SnapshotNode
from fairlead.simulator.history import Arrival

_FREE = Share(limit=-1, quota=-1)
#: Cores of a queue's quota, and those that it may borrow in addition.
_QUOTA, _BORROWED = 20, 100


class WorkloadSet(NamedTuple):
    """So many workloads per queue, one every `interval` seconds."""

    name: str
    per_queue: int
    interval: float
    runtime: float
    priority: int
    cores: int


#: 5 cohorts of 6 queues: 15,000 workloads, whose work takes 66 s if no core is ever idle.
BASELINE = (
    WorkloadSet("small", 350, 0.1, 0.2, 50, 1),
    WorkloadSet("medium", 100, 0.5, 0.5, 100, 5),
    WorkloadSet("large", 50, 1.2, 1.0, 200, 20),
)
#: 10 cohorts of 100 queues: 50,000 workloads.
LARGE = (
    WorkloadSet("small", 35, 0.06, 0.15, 50, 1),
    WorkloadSet("medium", 11, 0.3, 0.35, 100, 5),
    WorkloadSet("large", 4, 0.7, 0.7, 200, 20),
)


def make_load(cohorts: int, queues: int, sets: Sequence[WorkloadSet]) -> tuple[Snapshot, tuple[Arrival, ...]]:
    """The cluster, and what is submitted to it in the order of the times."""
    names = [
        (f"cohort-{cohort:03d}", f"cq-{cohort:03d}-{queue:03d}") for cohort in range(cohorts) for queue in range(queues)
    ]
    cores = _QUOTA * len(names)
    node = SnapshotNode(name="all", cpu_milli=1000 * cores, memory_bytes=1 << 50, pods=1_000_000)
    departments = [_queue(f"cohort-{cohort:03d}", None, _QUOTA * queues, -1) for cohort in range(cohorts)]
    projects = [_queue(name, cohort, _QUOTA, _QUOTA + _BORROWED) for cohort, name in names]
    arrivals = [
        Arrival(
            id=f"{project}-{each.name}-{number:03d}",
            at=round(number * each.interval, 3),
            project=project,
            duration=each.runtime,
            cpu_milli=1000 * each.cores,
            priority=each.priority,
        )
        for _, project in names
        for each in sets
        for number in range(each.per_queue)
    ]
    cluster = Snapshot(now=0, nodes=(node,), queues=(*departments, *projects))
    return cluster, tuple(sorted(arrivals, key=lambda arrival: (arrival.at, arrival.id)))


def ideal_seconds(sets: Sequence[WorkloadSet]) -> float:
    """How long the work of one queue takes on its own quota."""
    return sum(each.per_queue * each.runtime * each.cores for each in sets) / _QUOTA


def _queue(name: str, parent: str | None, quota: int, limit: int) -> Queue:
    cpu = Share(limit=-1 if limit < 0 else 1000 * limit, quota=1000 * quota, over_quota_weight=1)
    return Queue(name=name, parent=parent, resources=QueueShares(gpu=_FREE, cpu=cpu, memory=_FREE))
