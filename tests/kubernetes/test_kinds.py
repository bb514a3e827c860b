"""Every kind on a real cluster: which objects it becomes, and that it runs, scales and goes."""

from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


def test_a_workspace_is_one_pod(room: Room) -> None:
    workload = room.submit("workspace", "desk", room.spec(gpus=1))
    room.until_phase(workload, "Running")
    assert len(room.objects("pods")) == 1
    [group] = room.objects("podgroups")
    assert group["spec"]["preemptibility"] == "non-preemptible"


def test_what_restarts_for_ever_comes_back_by_itself(room: Room) -> None:
    workload = room.submit("workspace", "ever", room.spec(gpus=1, restartPolicy="Always"))
    room.until_phase(workload, "Running")
    [pod] = room.objects("pods")
    room.kubectl("delete", "pod", pod["metadata"]["name"], "-n", room.namespace)
    until(
        lambda: (
            [one["metadata"]["uid"] for one in room.objects("pods")] not in ([], [pod["metadata"]["uid"]])
            and room.server.phase(workload) == "Running"
        ),
        "another pod",
        PATIENCE,
    )


def test_distributed_pods_start_together(room: Room) -> None:
    spec = room.spec(gpus=4, numWorkers=2, distributedFramework="PyTorch")
    workload = room.submit("distributed", "gang", spec)
    room.until_phase(workload, "Running")
    names = [pod["metadata"]["name"] for pod in room.objects("pods")]
    assert sorted(names) == ["gang-master-0", "gang-worker-0", "gang-worker-1"]
    [group] = room.objects("podgroups")
    assert group["spec"]["minMember"] == 3
    variables = {one["name"]: one.get("value") for one in room.objects("pods")[0]["spec"]["containers"][0]["env"]}
    assert variables["MASTER_ADDR"] == "gang-master-0.gang"
    assert variables["WORLD_SIZE"] == "3"


def test_a_gang_without_room_for_all_waits_as_a_whole(room: Room) -> None:
    spec = room.spec(gpus=8, numWorkers=2, distributedFramework="PyTorch")
    workload = room.submit("distributed", "wide", spec)
    until(lambda: room.server.message(workload) not in ("", "Waiting to be scheduled"), "a reason", PATIENCE)
    assert room.server.phase(workload) == "Pending"
    assert all(not pod["spec"].get("nodeName") for pod in room.objects("pods"))


def test_a_gang_ends_with_its_master(room: Room) -> None:
    spec = room.spec(gpus=1, numWorkers=1, distributedFramework="PyTorch", cleanPodPolicy="All")
    master = room.spec(gpus=1, seconds=2)
    workload = room.submit("distributed", "led", spec, masterSpec=master)
    done = room.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    until(
        lambda: [pod["metadata"]["name"] for pod in room.objects("pods")] == ["led-master-0"],
        "the worker's end",
        PATIENCE,
    )


def test_a_gang_that_fails_begins_again_as_a_whole(room: Room) -> None:
    spec = room.spec(gpus=1, seconds=1, code=4, numWorkers=1, distributedFramework="PyTorch", backoffLimit=1)
    workload = room.submit("distributed", "broken", spec)
    failed = room.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]


def test_inference_is_a_deployment_behind_a_service(room: Room) -> None:
    spec = room.spec(gpus=1, servingPort={"container": 8000}, autoscaling={"minReplicas": 2, "maxReplicas": 2})
    workload = room.submit("inference", "model", spec)
    room.until_phase(workload, "Running")
    [deployment] = room.objects("deployments")
    assert deployment["spec"]["replicas"] == 2
    [service] = room.objects("services")
    assert service["spec"]["ports"][0]["port"] == 8000


def groups(room: Room, name: str, **members: Any) -> str:
    pod = room.spec(gpus=1)
    spec = {"leader": pod, "worker": pod, "workers": 1, "replicas": 2, **members}
    return room.submit("groups", name, spec)


def test_distributed_inference_is_a_leader_worker_set(room: Room) -> None:
    workload = groups(room, "big")
    running = room.until_phase(workload, "Running")
    assert "2 of 2 groups available" in running["phaseMessage"]
    assert len(room.objects("pods")) == 4
    assert len(room.objects("podgroups")) == 2
    answer = room.server.call(
        "PATCH", f"/api/v1/workloads/distributed-inferences/{workload}", {"spec": {"replicas": 1}}
    )
    assert answer.status == 202, answer
    until(lambda: len(room.objects("pods")) == 2, "one group", PATIENCE)
    until(lambda: "1 of 1 groups available" in room.server.message(workload), "its phase", PATIENCE)


def test_a_group_whose_pod_is_lost_is_made_again(room: Room) -> None:
    workload = groups(room, "lost", replicas=1)
    room.until_phase(workload, "Running")
    before = {pod["metadata"]["uid"] for pod in room.objects("pods")}
    room.kubectl("delete", "pod", "lost-0-1", "-n", room.namespace)
    until(
        lambda: (
            len(after := {pod["metadata"]["uid"] for pod in room.objects("pods")}) == 2
            and not after & before
            and room.server.phase(workload) == "Running"
        ),
        "a group of new pods",
        PATIENCE,
    )


def test_secrets_that_the_server_keeps_are_the_workloads_own(room: Room) -> None:
    body = {"name": "token", "projectId": room.project_id, "data": {"key": "s3cret"}}
    made = room.server.call("POST", "/api/v1/secrets", body)
    assert made.status in (200, 201), made
    variable = {"name": "TOKEN", "secret": {"name": "token", "key": "key"}}
    workload = room.train("secretive", environmentVariables=[variable])
    room.until_phase(workload, "Running")
    assert "Secret/secretive-secret-token" in room.names("secrets")
    room.act("delete", workload)
    until(lambda: "Secret/secretive-secret-token" not in room.names("secrets"), "the copy's end", PATIENCE)
