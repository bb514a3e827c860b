"""podAffinity means the workload's own pods, as on a cluster, whatever labels they and others have."""

from typing import Any

import pytest
from msgspec.structs import replace

from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.decide.placement.equivalence import KnownBlockers
from fairlead.control.decide.placement.snapshot import label_topologies, render_jobs
from fairlead.kinds import KINDS
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod
from fairlead.model.spec.fields import build
from fairlead.scheduling import Decisions, Snapshot, SnapshotNode, decide
from fairlead.scheduling.model.snapshot import Queue, QueueShares, Share
from tests import builders

NOW = 1_000_000
SHARE = Share(limit=-1, quota=-1)
SHARES = QueueShares(gpu=SHARE, cpu=SHARE, memory=SHARE)


def nodes(**gpus: int) -> tuple[SnapshotNode, ...]:
    """Nodes named after their zone and a number: `a1` is in zone a."""
    return tuple(
        SnapshotNode(name=name, cpu_milli=64_000, memory_bytes=1 << 40, gpu=gpu, labels={"zone": name[0]})
        for name, gpu in gpus.items()
    )


def entry(name: str, kind: str, spec: dict[str, Any], *pods: Pod) -> WorkloadEntry:
    workload = builders.workload(name, project_id="1", phase=Phase.PENDING)
    podsets = KINDS[kind].podsets(build(KINDS[kind].spec, spec))
    return WorkloadEntry(workload=workload, podsets=podsets, pods=tuple(replace(pod, workload_id=name) for pod in pods))


def decided(cluster: tuple[SnapshotNode, ...], *entries: WorkloadEntry) -> Decisions:
    jobs = tuple(job for each in entries for job in render_jobs(each, "", NOW))
    queues = (
        Queue(name="department-1", resources=SHARES),
        Queue(name="project-1", parent="department-1", resources=SHARES),
    )
    return decide(
        Snapshot(now=NOW / 1000, nodes=cluster, queues=queues, jobs=jobs, topologies=tuple(label_topologies(jobs)))
    )


def zones(decisions: Decisions) -> list[str]:
    return sorted(bind.node[0] for bind in decisions.binds)


def running(node: str, role: str = "worker", **members: Any) -> Pod:
    return builders.pod(f"at-{node}", phase=PodPhase.RUNNING, node=node, role=role, started_at=1, **members)


def needs(rule: str, gpu: int = 1) -> dict[str, Any]:
    return {"image": "x", "compute": {"gpuDevicesRequest": gpu}, "podAffinity": {"type": rule, "key": "zone"}}


def groups(leader: dict[str, Any], worker: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"leader": leader, "worker": worker, "workers": 1, **members}


def test_an_unrelated_workload_delays_no_other() -> None:
    """Without labels the rule matched every pod of the project: an unrelated one in a full zone blocked the leader."""
    other = entry("other", "training", {"image": "x", "compute": {"gpuDevicesRequest": 1}}, running("a1"))
    mine = entry("mine", "distributed-inference", groups(needs("Required"), needs("Required")))
    assert zones(decided(nodes(a1=1, b1=2), other, mine)) == ["b", "b"]


@pytest.mark.parametrize("size", [{"a1": 1, "b1": 1, "b2": 1}, {"a1": 1, "a2": 1, "b1": 1}, {"a1": 1, "b1": 2}])
def test_a_leader_and_its_worker_land_in_the_zone_that_has_room_for_both(size: dict[str, int]) -> None:
    [first, second] = zones(
        decided(nodes(**size), entry("w", "distributed-inference", groups(*[needs("Required")] * 2)))
    )
    assert first == second


def test_a_gang_that_no_zone_has_room_for_waits_whole() -> None:
    decisions = decided(nodes(a1=1, b1=1), entry("w", "distributed-inference", groups(*[needs("Required")] * 2)))
    assert decisions.binds == ()


def test_pods_of_a_training_stay_in_the_zone_of_the_first() -> None:
    spec = needs("Required") | {"completions": 2, "parallelism": 2}
    assert decided(nodes(a1=1, b1=4), entry("w", "training", spec, running("a1", group=0))).binds == ()
    assert zones(decided(nodes(a1=2, b1=4), entry("w", "training", spec, running("a1", group=0)))) == ["a"]


def test_preferred_pods_are_near_each_other_if_there_is_room() -> None:
    spec = needs("Preferred") | {"completions": 2, "parallelism": 2}
    # Packing alone would choose b1, which is fuller.
    assert zones(decided(nodes(a1=4, b1=1), entry("w", "training", spec, running("a1", group=0)))) == ["a"]
    assert zones(decided(nodes(a1=1, b1=1), entry("w", "training", spec, running("a1", group=0)))) == ["b"]


def test_a_label_of_another_workload_with_the_same_labels_does_not_count() -> None:
    spec = needs("Required") | {"labels": [{"name": "app", "value": "x"}]}
    other = entry("other", "training", spec, running("a1"))
    assert zones(decided(nodes(a1=1, b1=1), other, entry("mine", "training", spec))) == ["b"]


def test_the_reason_of_one_workload_is_not_reused_for_an_equal_one() -> None:
    spec = needs("Required") | {"completions": 2, "parallelism": 2}
    waiting = entry("w", "training", spec, running("a1", group=0))
    blockers = KnownBlockers()
    blockers.learn({"w": waiting}, decided(nodes(a1=1, b1=4), waiting))
    assert blockers.reason(entry("v", "training", spec), NOW) is None
