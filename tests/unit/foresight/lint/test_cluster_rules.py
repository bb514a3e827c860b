"""Rules on the cluster: for each a case that it finds, and one beside it that it must not."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fairlead.foresight.lint import cluster_rules
from fairlead.foresight.lint.material import LintFinding, LintMaterial, cluster_of, workload_of
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.kinds import KINDS
from fairlead.scheduling import (
    Job,
    NodeTaint,
    PoolSettings,
    Queue,
    QueueShares,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    Task,
    Topology,
    TopologyConstraint,
)

GIB = 1 << 30
FREE = Share(limit=-1, quota=-1)
RACK = "example.com/rack"


def node(name: str = "n1", gpu: int = 4, **more: Any) -> SnapshotNode:
    more = {"cpu_milli": 16_000, "memory_bytes": 64 * GIB, **more}
    return SnapshotNode(name=name, gpu=gpu, gpu_memory_mib=40_000, **more)


def queue(name: str = "team-a", quota: float = 4, limit: float = -1, **more: Any) -> Queue:
    shares: dict[str, Share] = {"cpu": FREE, "memory": FREE, **more.pop("shares", {})}
    gpu = Share(limit=limit, quota=quota, over_quota_weight=1)
    return Queue(name=f"q-{name}", display_name=name, resources=QueueShares(gpu=gpu, **shares), **more)


def job(pods: int = 1, gpu: int = 1, **more: Any) -> Job:
    tasks = tuple(Task(id=f"t{number}", gpu=gpu, cpu_milli=100, memory_bytes=GIB) for number in range(pods))
    return Job(id="bert", name="bert", queue="q-team-a", tasks=tasks, **{"min_available": pods, **more})


def snapshot(*jobs: Job, **more: Any) -> LintMaterial:
    content = {"nodes": (node(), node("n2")), "queues": (queue(),), **more}
    return LintMaterial(cluster=cluster_of("s.json", Snapshot(now=0, jobs=jobs, **content)))


def with_workload(material: LintMaterial, spec: dict[str, Any], kind: str = "training") -> LintMaterial:
    read = IntermediateWorkload(kind=KINDS[kind], name="bert", project="team-a", spec={"image": "x", **spec})
    if kind != "training":
        read = IntermediateWorkload(kind=KINDS[kind], name="bert", project="team-a", spec=spec)
    workload = workload_of("w.yaml", read)
    assert workload.pod_sets, workload.violations
    return LintMaterial(workloads=(workload,), cluster=material.cluster)


Find = Callable[[LintMaterial], Iterable[LintFinding]]


def found(find: Find, material: LintMaterial) -> list[tuple[str, str]]:
    return [(each.file, each.path) for each in find(material)]


@pytest.mark.parametrize(
    ("one", "want"),
    [
        (queue(quota=8), []),
        (queue(quota=9), ["queues[0].resources.gpu.quota"]),
        (queue(quota=-1), []),
        (queue(shares={"cpu": Share(limit=-1, quota=33_000)}), ["queues[0].resources.cpu.quota"]),
        (queue(shares={"memory": Share(limit=-1, quota=128 * GIB)}), []),
        (queue(quota=1, node_pool="empty"), ["queues[0].resources.gpu.quota"]),
    ],
)
def test_a_quota_that_exceeds_its_pool(one: Queue, want: list[str]) -> None:
    material = snapshot(queues=(one,))
    assert found(cluster_rules.find_quota_above_pool, material) == [("s.json", path) for path in want]


def test_the_counter_example_of_a_quota() -> None:
    (finding,) = cluster_rules.find_quota_above_pool(snapshot(queues=(queue(quota=9),)))
    assert finding.message == "The quota of 9 GPUs exceeds the node pool, which has 8 GPUs."
    assert finding.subject == "team-a in node pool default"


@pytest.mark.parametrize(
    ("queues", "want"),
    [
        ((queue(),), ""),
        ((queue(quota=0, limit=0), queue("team-b")), ""),
        ((queue(quota=0, limit=0), queue("team-b", quota=0, limit=0)), "the GPUs of the node pool default"),
        ((queue(shares={"cpu": Share(limit=0)}),), "the node pool default"),
        ((queue("all", 0, 0), queue(parent="q-all")), "the GPUs of the node pool default"),
        ((queue("all"), queue(parent="q-all")), ""),
        # A department without projects.
        ((), "the node pool default"),
    ],
)
def test_a_pool_that_no_project_may_use(queues: tuple[Queue, ...], want: str) -> None:
    messages = [each.message for each in cluster_rules.find_unusable_pool(snapshot(queues=queues))]
    assert messages == ([f"Nobody may use {want}."] if want else [])


def test_gpus_are_not_missed_in_a_pool_without_them() -> None:
    material = snapshot(nodes=(node(gpu=0),), queues=(queue(quota=0, limit=0),))
    assert list(cluster_rules.find_unusable_pool(material)) == []


def test_a_pool_that_is_only_named_in_settings() -> None:
    settings = Settings(pools=(PoolSettings(name="spare"),))
    assert found(cluster_rules.find_unusable_pool, snapshot(settings=settings)) == [("s.json", "settings.pools[0]")]


@pytest.mark.parametrize(
    ("one", "want"),
    [
        (job(8), False),
        (job(9), True),
        (job(9, min_available=8), False),
        # 3 GPUs of each pod: one pod for each node.
        (job(3, gpu=3), True),
        (job(1, gpu=5), True),
        (job(8, deleting=True), False),
        (job(9, deleting=True), False),
    ],
)
def test_a_gang_larger_than_the_cluster(one: Job, want: bool) -> None:
    assert found(cluster_rules.find_too_large_gang, snapshot(one)) == ([("s.json", "jobs[0]")] if want else [])


def test_a_gang_is_not_larger_because_nodes_are_away() -> None:
    away = node("n2", taints=(NodeTaint(key="gpu"),), unschedulable=True, ready=False)
    assert list(cluster_rules.find_too_large_gang(snapshot(job(8), nodes=(node(), away)))) == []


@pytest.mark.parametrize(("workers", "want"), [(1, False), (2, True)])
def test_a_group_of_a_workload_larger_than_the_cluster(workers: int, want: bool) -> None:
    role = {"image": "x", "compute": {"gpuDevicesRequest": 4}}
    spec = {"leader": role, "worker": role, "workers": workers, "replicas": 5}
    material = with_workload(snapshot(), spec, "distributed-inference")
    assert found(cluster_rules.find_too_large_gang, material) == ([("w.yaml", "spec")] if want else [])


def test_pods_without_a_gang_need_room_for_one_of_them() -> None:
    spec = {"parallelism": 20, "completions": 20, "compute": {"gpuDevicesRequest": 4}}
    assert found(cluster_rules.find_too_large_gang, with_workload(snapshot(), spec)) == []
    spec = {"compute": {"gpuDevicesRequest": 5}}
    assert found(cluster_rules.find_too_large_gang, with_workload(snapshot(), spec)) == [("w.yaml", "spec")]


@pytest.mark.parametrize(
    ("one", "queues", "want"),
    [
        (job(5, preemptible=False), (queue(),), True),
        (job(4, preemptible=False), (queue(),), False),
        (job(5), (queue(),), False),
        (job(5, preemptible=False), (queue(quota=-1),), False),
        (job(4, preemptible=False), (queue("all", 3), queue(parent="q-all")), True),
        # Another of its pools has the quota.
        (job(5, preemptible=False, node_pools=("default", "big")), (queue(), queue(quota=8, node_pool="big")), False),
        (job(5, preemptible=False), (queue(), queue(quota=8, node_pool="big")), True),
    ],
)
def test_non_preemptible_beyond_quota(one: Job, queues: tuple[Queue, ...], want: bool) -> None:
    hits = found(cluster_rules.find_non_preemptible_over_quota, snapshot(one, queues=queues))
    assert hits == ([("s.json", "jobs[0]")] if want else [])


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"compute": {"gpuDevicesRequest": 5}, "preemptibility": "non-preemptible"}, True),
        ({"compute": {"gpuDevicesRequest": 5}, "priorityClass": "high"}, True),
        ({"compute": {"gpuDevicesRequest": 5}}, False),
        ({"compute": {"gpuDevicesRequest": 4}, "priorityClass": "high"}, False),
    ],
)
def test_a_non_preemptible_workload_beyond_quota(spec: dict[str, Any], want: bool) -> None:
    hits = list(cluster_rules.find_non_preemptible_over_quota(with_workload(snapshot(), spec)))
    assert [each.file for each in hits] == ["w.yaml"] * want
    if want:
        assert "it asks for 5 GPUs, the quota of team-a in node pool default is 4 GPUs" in hits[0].counter_example


RACKS: dict[str, Any] = {
    "nodes": (node(labels={RACK: "r1"}), node("n2")),
    "topologies": (Topology(name="net", levels=(RACK,)),),
}


@pytest.mark.parametrize(
    ("one", "topologies", "want"),
    [
        (job(), (Topology(name="net", levels=(RACK,)),), []),
        (job(), (Topology(name="net", levels=("example.com/rak", RACK)),), ["topologies[0].levels[0]"]),
        (job(topology=TopologyConstraint(topology="net", required=RACK)), RACKS["topologies"], []),
        (job(topology=TopologyConstraint(topology="net", required="zone")), RACKS["topologies"], ["jobs[0].topology"]),
        (job(topology=TopologyConstraint(topology="lan", preferred=RACK)), RACKS["topologies"], ["jobs[0].topology"]),
    ],
)
def test_a_topology_level_that_no_node_has(one: Job, topologies: tuple[Topology, ...], want: list[str]) -> None:
    material = snapshot(one, nodes=RACKS["nodes"], topologies=topologies)
    assert found(cluster_rules.find_unknown_level, material) == [("s.json", path) for path in want]


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({"podAffinity": {"type": "Required", "key": RACK}}, ""),
        ({"podAffinity": {"type": "Required", "key": "example.com/rak"}}, f"did you mean {RACK}?"),
        (
            {
                "annotations": [
                    {"name": "kai.scheduler/topology", "value": "net"},
                    {"name": "kai.scheduler/topology-required-placement", "value": "zone"},
                ]
            },
            "has no level zone",
        ),
    ],
)
def test_a_level_in_a_workload(spec: dict[str, Any], want: str) -> None:
    messages = [each.message for each in cluster_rules.find_unknown_level(with_workload(snapshot(**RACKS), spec))]
    assert len(messages) == bool(want)
    assert all(want in message for message in messages)


def test_without_a_cluster_nothing_is_said_of_it() -> None:
    nothing = LintMaterial()
    for find in (
        cluster_rules.find_quota_above_pool,
        cluster_rules.find_unusable_pool,
        cluster_rules.find_too_large_gang,
        cluster_rules.find_non_preemptible_over_quota,
        cluster_rules.find_unknown_level,
    ):
        assert list(find(nothing)) == []
