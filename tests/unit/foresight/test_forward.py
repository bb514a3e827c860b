"""Playing a cluster forward: a kept model gives the samples that new snapshots give, and every one starts afresh."""

import random
from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.foresight.forward import ForwardPlayer, SampleTurn
from fairlead.foresight.runtimes import RunningTime
from fairlead.scheduling import simulate
from fairlead.scheduling.model.snapshot import (
    Job,
    NodeTaint,
    Queue,
    QueueShares,
    Requirement,
    Share,
    Snapshot,
    SnapshotNode,
    Task,
    TaskToleration,
)

FREE = Share(limit=-1, quota=-1)
#: What pods say about nodes: one zone only, not one zone, the tainted node too, nothing.
CHOICES: tuple[dict[str, Any], ...] = (
    {"node_selector": {"zone": "z0"}},
    {"node_affinity": ((Requirement(key="zone", operator="NotIn", values=("z1",)),),)},
    {"tolerations": (TaskToleration(key="spot", operator="Exists"),)},
    {},
    {},
)


def random_cluster(seed: int) -> Snapshot:
    """After two cycles: some jobs run, and more wait than there is room for."""
    dice = random.Random(seed)
    nodes = tuple(
        SnapshotNode(
            name=f"n{number}",
            gpu=4,
            cpu_milli=64_000,
            memory_bytes=1 << 38,
            gpu_memory_mib=80_000,
            labels={"zone": f"z{number}"},
            taints=(NodeTaint(key="spot", effect="NoSchedule"),) if number == 2 and seed % 2 else (),
        )
        for number in range(3)
    )
    queues = tuple(
        Queue(
            name=name,
            resources=QueueShares(
                gpu=Share(limit=-1, quota=dice.choice((0, 4)), over_quota_weight=1), cpu=FREE, memory=FREE
            ),
            created=number,
        )
        for number, name in enumerate("abc")
    )
    jobs = []
    for number in range(18):
        pods = dice.choice((1, 1, 1, 2))
        tasks = tuple(
            Task(
                id=f"j{number:02d}-{pod}",
                gpu=dice.choice((1, 1, 2, 4)),
                leader=pod == 1,
                priority=dice.choice((None, 1)),
                **dice.choice(CHOICES),
            )
            for pod in range(pods)
        )
        jobs.append(
            Job(
                id=f"j{number:02d}",
                queue=dice.choice("abc"),
                tasks=tasks,
                min_available=pods,
                created=float(number),
                priority=dice.choice((50, 50, 75)),
                preemptible=dice.random() < 0.9,
            )
        )
    *_, (last, _) = simulate(Snapshot(now=100, nodes=nodes, queues=queues, jobs=tuple(jobs)), 3)
    return last


@pytest.mark.parametrize("seed", range(30))
def test_a_kept_model_plays_as_new_snapshots_do(seed: int) -> None:
    snapshot = random_cluster(seed)
    targets = {job.id: frozenset({job.id}) for job in snapshot.jobs if job.tasks[0].status == "Pending"}
    runtimes = {job.id: RunningTime(runs=tuple(float(n) for n in range(5, 400, 7))) for job in snapshot.jobs}
    kept, plain = ForwardPlayer(snapshot), ForwardPlayer(snapshot, is_reference=True)
    assert (kept.is_fast, plain.is_fast) == (True, False)
    assert targets
    for number in range(3):
        sample = SampleTurn(number, 5, 200)
        assert kept.play(targets, runtimes, sample) == plain.play(targets, runtimes, sample)


def test_every_sample_begins_with_the_same_cluster() -> None:
    snapshot = random_cluster(1)
    targets = {job.id: frozenset({job.id}) for job in snapshot.jobs if job.tasks[0].status == "Pending"}
    runtimes = {job.id: RunningTime(declared=60) for job in snapshot.jobs}
    player = ForwardPlayer(snapshot)
    first = player.play(targets, runtimes, SampleTurn(0, 5, 200))
    assert player.play(targets, runtimes, SampleTurn(0, 5, 200)) == first


def test_portions_of_gpus_are_played_the_plain_way() -> None:
    snapshot = random_cluster(1)
    half = Job(id="half", queue="a", tasks=(Task(id="half-0", gpu_portion=0.5),), created=0)
    changed: Snapshot = replace(snapshot, jobs=(*snapshot.jobs, half))
    assert not ForwardPlayer(changed).is_fast
