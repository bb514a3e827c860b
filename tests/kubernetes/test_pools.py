"""Node pools on a real cluster, each with a scheduler of its own: labels, queues, and workloads that try several."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from deploy.cluster.options import add_pool
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
POOLS = ("h100", "a100")
LABEL = "kai.scheduler/node-pool"
LABELS = (LABEL, "runai/node-pool")


@pytest.fixture(scope="module")
def pools(cluster: clusters.Cluster, harness: ClusterHarness) -> Iterator[None]:
    """Two pools of one node with two GPUs each; the nodes carry the pools' pairs and nothing of KAI's."""
    names = [f"{pool}-node" for pool in POOLS]
    for pool, name in zip(POOLS, names, strict=True):
        add_pool(cluster, pool)
        if name not in observe_nodes(cluster.api()):
            add_nodes(cluster.api(), [name], Shape(gpus=2, labels={"tier": pool}))
        body = {"name": pool, "labelKey": "tier", "labelValue": pool}
        answer = harness.server.call(
            "POST", "/api/v1/node-pools", {**body, "clusterId": harness.server.credentials["clusterId"]}
        )
        assert answer.status == 201, answer
    for label in LABELS:
        until(
            lambda label=label: [label_of(harness, name, label) for name in names] == list(POOLS),  # type: ignore[misc]  # bound now
            f"{label} of the nodes",
            PATIENCE,
        )
    try:
        yield
    finally:
        remove_nodes(cluster.api(), names)


def label_of(harness: ClusterHarness, node: str, label: str = LABEL) -> str:
    words = ["get", "node", node, "-o", f"jsonpath={{.metadata.labels.{label.replace('.', chr(92) + '.')}}}"]
    return harness.kubectl(*words).stdout


def occupy(harness: ClusterHarness, name: str, *names: str, gpus: int = 2) -> str:
    return harness.train(name, gpus=gpus, nodePools=list(names))


def group(harness: ClusterHarness, workload: str) -> dict[str, Any]:
    [found] = [one for one in harness.objects("podgroups") if of(one, workload)]
    return found


def of(body: dict[str, Any], workload: str) -> bool:
    return bool(body["metadata"]["labels"].get("fairlead/workload-id") == workload)


def test_projects_have_a_queue_in_every_pool(harness: ClusterHarness, pools: None) -> None:
    for pool in POOLS:
        name = f"{harness.project}-{pool}"
        until(lambda name=name: f"Queue/{name}" in queues(harness), f"queue {name}", PATIENCE)  # type: ignore[misc]  # bound now
        assert queues(harness)[f"Queue/{name}"]["metadata"]["labels"][LABEL] == pool


def queues(harness: ClusterHarness) -> dict[str, dict[str, Any]]:
    return {f"Queue/{one['metadata']['name']}": one for one in harness.objects("queues")}


def test_kais_operator_gets_a_shard_for_every_pool(harness: ClusterHarness, pools: None) -> None:
    """The operator itself does not run here; its definition is installed, and the API server checks the objects."""
    shards = {one["metadata"]["name"]: one["spec"] for one in harness.objects("schedulingshards")}
    assert {name: shards[name]["partitionLabelValue"] for name in POOLS} == {name: name for name in POOLS}
    assert shards["h100"]["args"] == {"update-pod-eviction-condition": "true"}


def test_a_workload_runs_in_the_pool_that_it_asks_for(harness: ClusterHarness, pools: None) -> None:
    for pool in POOLS:
        workload = occupy(harness, f"in-{pool}", pool, gpus=1)
        harness.until_phase(workload, "Running")
        [pod] = harness.pods(workload)
        assert pod["nodeName"] == f"{pool}-node"
        assert harness.server.workload(workload)["currentNodePools"] == [pool]


def test_a_workload_without_room_in_its_first_pool_moves_to_the_next(harness: ClusterHarness, pools: None) -> None:
    harness.until_phase(occupy(harness, "first", "h100"), "Running")
    moving = occupy(harness, "moving", "h100", "a100")
    harness.until_phase(moving, "Running")
    found = group(harness, moving)
    assert found["metadata"]["labels"][LABEL] == "a100"
    assert found["spec"]["queue"] == f"{harness.project}-a100"
    [pod] = harness.pods(moving)
    assert pod["nodeName"] == "a100-node"
    assert harness.server.workload(moving)["currentNodePools"] == ["a100"]


def test_the_default_pool_is_one_of_them(harness: ClusterHarness, pools: None) -> None:
    harness.until_phase(occupy(harness, "before", "h100"), "Running")
    moving = occupy(harness, "elsewhere", "h100", "default")
    harness.until_phase(moving, "Running")
    found = group(harness, moving)
    assert LABEL not in found["metadata"]["labels"]
    assert found["spec"]["queue"] == harness.project


def test_a_gang_moves_as_a_whole(harness: ClusterHarness, pools: None) -> None:
    harness.until_phase(occupy(harness, "holder", "h100", gpus=1), "Running")
    spec = harness.spec(gpus=1, numWorkers=1, distributedFramework="PyTorch", nodePools=["h100", "a100"])
    moving = harness.submit("distributed", "pair", spec)
    harness.until_phase(moving, "Running")
    assert {pod["nodeName"] for pod in harness.pods(moving)} == {"a100-node"}


def test_what_no_pool_has_room_for_is_tried_again_when_one_has(harness: ClusterHarness, pools: None) -> None:
    holders = [occupy(harness, f"full-{pool}", pool) for pool in POOLS]
    for holder in holders:
        harness.until_phase(holder, "Running")
    waiting = occupy(harness, "waiting", *POOLS)
    # It has gone round: KAI said no in both pools.
    until(lambda: {one["nodePool"] for one in refusals(harness, waiting)} == set(POOLS), "a no from both", PATIENCE)
    assert harness.server.phase(waiting) == "Pending"
    harness.act("delete", holders[0])
    harness.until_phase(waiting, "Running")
    assert harness.pods(waiting)[0]["nodeName"] == "h100-node"


def test_nodes_of_a_pool_that_is_deleted_are_nobodys(cluster: clusters.Cluster, harness: ClusterHarness) -> None:
    """Of the default pool again, whose scheduler takes nodes without the label."""
    if "passing-node" not in observe_nodes(cluster.api()):
        add_nodes(cluster.api(), ["passing-node"], Shape(gpus=1, labels={"tier": "passing"}))
    try:
        cluster_id = harness.server.credentials["clusterId"]
        body = {"name": "passing", "labelKey": "tier", "labelValue": "passing", "clusterId": cluster_id}
        made = harness.server.call("POST", "/api/v1/node-pools", body)
        assert made.status == 201, made
        until(lambda: label_of(harness, "passing-node") == "passing", "its label", PATIENCE)
        assert harness.server.call("DELETE", f"/api/v1/node-pools/{made.json['id']}").status < 300
        for label in LABELS:
            until(lambda label=label: label_of(harness, "passing-node", label) == "", f"no {label}", PATIENCE)  # type: ignore[misc]  # bound now
    finally:
        remove_nodes(cluster.api(), ["passing-node"])


def make_pool(harness: ClusterHarness, name: str) -> str:
    body = {"name": name, "labelKey": "tier", "labelValue": name, "clusterId": harness.server.credentials["clusterId"]}
    made = harness.server.call("POST", "/api/v1/node-pools", body)
    assert made.status == 201, made
    return str(made.json["id"])


def test_a_workload_whose_first_pool_goes_takes_the_next(harness: ClusterHarness) -> None:
    """No scheduler runs for that pool: nobody else could say that there is no room."""
    pool = make_pool(harness, "leaving")
    waiting = occupy(harness, "left", "leaving", "default", gpus=1)
    until(lambda: [one for one in harness.objects("podgroups") if of(one, waiting)], "its pod group", PATIENCE)
    assert group(harness, waiting)["metadata"]["labels"][LABEL] == "leaving"
    # Nobody speaks for that pool, and the user is told so.
    until(lambda: "scheduler of node pool leaving" in harness.server.message(waiting), "words", PATIENCE)
    assert harness.server.call("DELETE", f"/api/v1/node-pools/{pool}").status < 300
    harness.until_phase(waiting, "Running")
    [pod] = harness.pods(waiting)
    # What makes its pods says where it began, which nobody can change; it runs on.
    harness.server.stop()
    harness.server.token = ""
    harness.server.start()
    later = occupy(harness, "later", "leaving", "default", gpus=1)
    harness.until_phase(later, "Running")
    assert (harness.server.phase(waiting), [one["id"] for one in harness.pods(waiting)]) == ("Running", [pod["id"]])
    # From its beginning, in a pool that there is.
    harness.act("suspend", waiting)
    harness.until_phase(waiting, "Stopped")
    harness.act("resume", waiting)
    harness.until_phase(waiting, "Running")
    [job] = [one for one in harness.objects("jobs") if of(one, waiting)]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert (labels["kai.scheduler/queue"], LABEL in labels) == (harness.project, False)


def refusals(harness: ClusterHarness, workload: str) -> list[dict[str, Any]]:
    groups = [one for one in harness.objects("podgroups") if of(one, workload)]
    return [said for one in groups for said in one.get("status", {}).get("schedulingConditions", [])]
