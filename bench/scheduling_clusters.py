"""Clusters for the scheduling bench, built in memory: one function per row, the number of nodes as argument."""

from __future__ import annotations

import random
from typing import Any

from fairlead.scheduling import (
    Job,
    PodTerm,
    Queue,
    QueueShares,
    Share,
    Snapshot,
    SnapshotNode,
    Task,
    Topology,
    TopologyConstraint,
)
from fairlead.scheduling.model.snapshot import TaskStatus

FREE = Share(limit=-1, quota=-1, over_quota_weight=1)
GPUS = 8
NOW = 1_000_000.0


def queue(name: str, gpu: float, parent: str | None = None, created: float = 0) -> Queue:
    shares = QueueShares(gpu=Share(limit=-1, quota=gpu, over_quota_weight=1), cpu=FREE, memory=FREE)
    return Queue(name=name, parent=parent, created=created, resources=shares)


def nodes(count: int) -> tuple[SnapshotNode, ...]:
    return tuple(
        SnapshotNode(
            name=f"node-{number:04d}",
            cpu_milli=128_000,
            memory_bytes=1 << 40,
            gpu=GPUS,
            gpu_memory_mib=80_000,
            labels={"rack": f"rack-{number // 10:03d}"},
        )
        for number in range(count)
    )


def job(name: str, owner: str, created: int, pods: int = 1, on: str | None = None, **task: Any) -> Job:
    asked: dict[str, Any] = {"gpu": 1, "cpu_milli": 1000, "memory_bytes": 1 << 30, **task}
    status: TaskStatus = "Running" if on is not None else "Pending"
    tasks = tuple(Task(id=f"{name}-{index}", status=status, node=on, **asked) for index in range(pods))
    return Job(
        id=name, queue=owner, tasks=tasks, min_available=pods, created=created, last_start=None if on is None else 0
    )


def running(count: int, owners: list[str]) -> list[Job]:
    return [
        job(f"run-{number:05d}", owners[number % len(owners)], number, on=f"node-{number // GPUS:04d}")
        for number in range(count * GPUS)
    ]


def projects(count: int, quota: float) -> tuple[list[str], list[Queue]]:
    names = [f"project-{number:02d}" for number in range(count)]
    return names, [queue("department", -1), *(queue(name, quota, "department", n) for n, name in enumerate(names))]


def fill(count: int) -> Snapshot:
    names, queues = projects(20, count * GPUS / 20)
    jobs = [job(f"new-{n:05d}", names[n % 20], n) for n in range(count * GPUS)]
    return Snapshot(now=NOW, nodes=nodes(count), queues=tuple(queues), jobs=tuple(jobs))


def gangs(count: int) -> Snapshot:
    names, queues = projects(20, count * GPUS / 40)
    dice = random.Random(1)
    jobs: list[Job] = []
    asked = 0
    while asked < 1.2 * count * GPUS:
        pods = dice.randint(1, 64) if dice.random() < 0.5 else dice.choice((1, 2, 4, 8))
        jobs.append(job(f"new-{len(jobs):05d}", names[len(jobs) % 20], len(jobs), pods))
        asked += pods
    return Snapshot(now=NOW, nodes=nodes(count), queues=tuple(queues), jobs=tuple(jobs))


def idle(count: int) -> Snapshot:
    names, queues = projects(20, count * GPUS / 20)
    waiting = [job(f"new-{n:05d}", names[n % 20], n) for n in range(4 * count)]
    return Snapshot(now=NOW, nodes=nodes(count), queues=tuple(queues), jobs=(*running(count, names), *waiting))


def reclaim_one(count: int) -> Snapshot:
    names, queues = projects(19, 0)
    queues.append(queue("wants", 8, "department"))
    return Snapshot(
        now=NOW, nodes=nodes(count), queues=tuple(queues), jobs=(*running(count, names), job("new", "wants", 0))
    )


def reclaim_half(count: int) -> Snapshot:
    queues = (queue("holds", 0), queue("wants", count * GPUS / 2))
    gang = job("new", "wants", 0, count // 2, gpu=GPUS)
    return Snapshot(now=NOW, nodes=nodes(count), queues=queues, jobs=(*running(count, ["holds"]), gang))


def reclaim_all(count: int) -> Snapshot:
    queues = (queue("holds", 0), queue("wants", count * GPUS))
    waiting = [job(f"new-{n:05d}", "wants", n) for n in range(count * GPUS)]
    return Snapshot(now=NOW, nodes=nodes(count), queues=queues, jobs=(*running(count, ["holds"]), *waiting))


def allocate(count: int) -> Snapshot:
    queues = [queue("d0", -1), queue("d1", -1), *(queue(f"p{n}", 2 * count, f"d{n % 2}", n) for n in range(4))]
    jobs = [job(f"new-{n:05d}", f"p{n % 4}", n) for n in range(5 * count)]
    return Snapshot(now=NOW, nodes=nodes(count), queues=tuple(queues), jobs=tuple(jobs))


def one_short(count: int, how: str = "") -> Snapshot:
    """A gang that reclaim cannot place, because one GPU is missing; `how`: '', 'anti' or 'rack'."""
    queues = (queue("holds", count * GPUS - 79), queue("wants", 80))
    task: dict[str, Any] = {"gpu": GPUS}
    if how == "anti":
        task["labels"] = {"app": "gang"}
        task["pod_anti_affinity"] = (PodTerm(topology_key="rack", match_labels={"app": "gang"}),)
    gang = job("new", "wants", 0, 10, **task)
    if how == "rack":
        constraint = TopologyConstraint(topology="net", required="rack")
        gang = Job(id="new", queue="wants", tasks=gang.tasks, min_available=10, topology=constraint)
    return Snapshot(
        now=NOW,
        nodes=nodes(count),
        queues=queues,
        jobs=(*running(count, ["holds"]), gang),
        topologies=(Topology(name="net", levels=("rack",)),),
    )


def one_short_anti(count: int) -> Snapshot:
    return one_short(count, "anti")


def one_short_rack(count: int) -> Snapshot:
    return one_short(count, "rack")
