"""Node pools on a real cluster, each with a scheduler of its own: labels, queues, and workloads that try several."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes
from deploy.cluster.options import add_pool
from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
POOLS = ("h100", "a100")
LABEL = "kai.scheduler/node-pool"
LABELS = (LABEL, "runai/node-pool")


@pytest.fixture(scope="module")
def pools(cluster: clusters.Cluster, room: Room) -> Iterator[None]:
    """Two pools of one node with two GPUs each; the nodes carry the pools' pairs and nothing of KAI's."""
    names = [f"{pool}-node" for pool in POOLS]
    for pool, name in zip(POOLS, names, strict=True):
        add_pool(cluster, pool)
        if name not in observe_nodes(cluster.api()):
            add_nodes(cluster.api(), [name], Shape(gpus=2, labels={"tier": pool}))
        body = {"name": pool, "labelKey": "tier", "labelValue": pool}
        answer = room.server.call(
            "POST", "/api/v1/node-pools", {**body, "clusterId": room.server.credentials["clusterId"]}
        )
        assert answer.status == 201, answer
    for label in LABELS:
        until(
            lambda label=label: [label_of(room, name, label) for name in names] == list(POOLS),  # type: ignore[misc]  # bound now
            f"{label} of the nodes",
            PATIENCE,
        )
    try:
        yield
    finally:
        remove_nodes(cluster.api(), names)


def label_of(room: Room, node: str, label: str = LABEL) -> str:
    words = ["get", "node", node, "-o", f"jsonpath={{.metadata.labels.{label.replace('.', chr(92) + '.')}}}"]
    return room.kubectl(*words).stdout


def occupy(room: Room, name: str, *names: str, gpus: int = 2) -> str:
    return room.train(name, gpus=gpus, nodePools=list(names))


def group(room: Room, workload: str) -> dict[str, Any]:
    [found] = [one for one in room.objects("podgroups") if of(one, workload)]
    return found


def of(body: dict[str, Any], workload: str) -> bool:
    return bool(body["metadata"]["labels"].get("fairlead/workload-id") == workload)


def test_projects_have_a_queue_in_every_pool(room: Room, pools: None) -> None:
    for pool in POOLS:
        name = f"{room.project}-{pool}"
        until(lambda name=name: f"Queue/{name}" in queues(room), f"queue {name}", PATIENCE)  # type: ignore[misc]  # bound now
        assert queues(room)[f"Queue/{name}"]["metadata"]["labels"][LABEL] == pool


def queues(room: Room) -> dict[str, dict[str, Any]]:
    return {f"Queue/{one['metadata']['name']}": one for one in room.objects("queues")}


def test_kais_operator_is_told_of_every_pool(room: Room, pools: None) -> None:
    """The operator itself does not run here; its definition is installed, and the API server checks the objects."""
    shards = {one["metadata"]["name"]: one["spec"] for one in room.objects("schedulingshards")}
    assert {name: shards[name]["partitionLabelValue"] for name in POOLS} == {name: name for name in POOLS}
    assert shards["h100"]["args"] == {"update-pod-eviction-condition": "true"}


def test_a_workload_runs_in_the_pool_that_it_asks_for(room: Room, pools: None) -> None:
    for pool in POOLS:
        workload = occupy(room, f"in-{pool}", pool, gpus=1)
        room.until_phase(workload, "Running")
        [pod] = room.pods(workload)
        assert pod["nodeName"] == f"{pool}-node"
        assert room.server.workload(workload)["currentNodePools"] == [pool]


def test_a_workload_without_room_in_its_first_pool_moves_to_the_next(room: Room, pools: None) -> None:
    room.until_phase(occupy(room, "first", "h100"), "Running")
    moving = occupy(room, "moving", "h100", "a100")
    room.until_phase(moving, "Running")
    found = group(room, moving)
    assert found["metadata"]["labels"][LABEL] == "a100"
    assert found["spec"]["queue"] == f"{room.project}-a100"
    [pod] = room.pods(moving)
    assert pod["nodeName"] == "a100-node"
    assert room.server.workload(moving)["currentNodePools"] == ["a100"]


def test_the_default_pool_is_one_of_them(room: Room, pools: None) -> None:
    room.until_phase(occupy(room, "before", "h100"), "Running")
    moving = occupy(room, "elsewhere", "h100", "default")
    room.until_phase(moving, "Running")
    found = group(room, moving)
    assert LABEL not in found["metadata"]["labels"]
    assert found["spec"]["queue"] == room.project


def test_a_gang_moves_as_a_whole(room: Room, pools: None) -> None:
    room.until_phase(occupy(room, "holder", "h100", gpus=1), "Running")
    spec = room.spec(gpus=1, numWorkers=1, distributedFramework="PyTorch", nodePools=["h100", "a100"])
    moving = room.submit("distributed", "pair", spec)
    room.until_phase(moving, "Running")
    assert {pod["nodeName"] for pod in room.pods(moving)} == {"a100-node"}


def test_what_no_pool_has_room_for_is_tried_again_when_one_has(room: Room, pools: None) -> None:
    holders = [occupy(room, f"full-{pool}", pool) for pool in POOLS]
    for holder in holders:
        room.until_phase(holder, "Running")
    waiting = occupy(room, "waiting", *POOLS)
    # It has gone round: KAI said no in both pools.
    until(lambda: {one["nodePool"] for one in refusals(room, waiting)} == set(POOLS), "a no from both", PATIENCE)
    assert room.server.phase(waiting) == "Pending"
    room.act("delete", holders[0])
    room.until_phase(waiting, "Running")
    assert room.pods(waiting)[0]["nodeName"] == "h100-node"


def test_nodes_of_a_pool_that_is_deleted_are_nobodys(cluster: clusters.Cluster, room: Room) -> None:
    """Of the default pool again, whose scheduler takes nodes without the label."""
    if "passing-node" not in observe_nodes(cluster.api()):
        add_nodes(cluster.api(), ["passing-node"], Shape(gpus=1, labels={"tier": "passing"}))
    try:
        cluster_id = room.server.credentials["clusterId"]
        body = {"name": "passing", "labelKey": "tier", "labelValue": "passing", "clusterId": cluster_id}
        made = room.server.call("POST", "/api/v1/node-pools", body)
        assert made.status == 201, made
        until(lambda: label_of(room, "passing-node") == "passing", "its label", PATIENCE)
        assert room.server.call("DELETE", f"/api/v1/node-pools/{made.json['id']}").status < 300
        for label in LABELS:
            until(lambda label=label: label_of(room, "passing-node", label) == "", f"no {label}", PATIENCE)  # type: ignore[misc]  # bound now
    finally:
        remove_nodes(cluster.api(), ["passing-node"])


def make_pool(room: Room, name: str) -> str:
    body = {"name": name, "labelKey": "tier", "labelValue": name, "clusterId": room.server.credentials["clusterId"]}
    made = room.server.call("POST", "/api/v1/node-pools", body)
    assert made.status == 201, made
    return str(made.json["id"])


def test_a_workload_whose_first_pool_goes_takes_the_next(room: Room) -> None:
    """No scheduler runs for that pool: nobody else could say that there is no room."""
    pool = make_pool(room, "leaving")
    waiting = occupy(room, "left", "leaving", "default", gpus=1)
    until(lambda: [one for one in room.objects("podgroups") if of(one, waiting)], "its pod group", PATIENCE)
    assert group(room, waiting)["metadata"]["labels"][LABEL] == "leaving"
    # Nobody speaks for that pool, and the user is told so.
    until(lambda: "scheduler of node pool leaving" in room.server.message(waiting), "words", PATIENCE)
    assert room.server.call("DELETE", f"/api/v1/node-pools/{pool}").status < 300
    room.until_phase(waiting, "Running")
    [pod] = room.pods(waiting)
    # What makes its pods says where it began, which nobody can change; it runs on.
    room.server.stop()
    room.server.token = ""
    room.server.start()
    later = occupy(room, "later", "leaving", "default", gpus=1)
    room.until_phase(later, "Running")
    assert (room.server.phase(waiting), [one["id"] for one in room.pods(waiting)]) == ("Running", [pod["id"]])
    # From its beginning, in a pool that there is.
    room.act("suspend", waiting)
    room.until_phase(waiting, "Stopped")
    room.act("resume", waiting)
    room.until_phase(waiting, "Running")
    [job] = [one for one in room.objects("jobs") if of(one, waiting)]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert (labels["kai.scheduler/queue"], LABEL in labels) == (room.project, False)


def refusals(room: Room, workload: str) -> list[dict[str, Any]]:
    groups = [one for one in room.objects("podgroups") if of(one, workload)]
    return [said for one in groups for said in one.get("status", {}).get("schedulingConditions", [])]
