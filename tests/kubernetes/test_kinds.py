"""Every kind on a real cluster: which objects it becomes, and that it runs, scales and goes."""

from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes


def test_a_workspace_is_one_pod(harness: ClusterHarness) -> None:
    workload = harness.submit("workspace", "desk", harness.spec(gpus=1))
    harness.until_phase(workload, "Running")
    assert len(harness.objects("pods")) == 1
    [group] = harness.objects("podgroups")
    assert group["spec"]["preemptibility"] == "non-preemptible"


def test_what_restarts_for_ever_comes_back_by_itself(harness: ClusterHarness) -> None:
    workload = harness.submit("workspace", "ever", harness.spec(gpus=1, restartPolicy="Always"))
    harness.until_phase(workload, "Running")
    [pod] = harness.objects("pods")
    harness.kubectl("delete", "pod", pod["metadata"]["name"], "-n", harness.namespace)
    uid = pod["metadata"]["uid"]
    until(lambda: [one["id"] for one in harness.pods(workload) if one["id"] != uid], "another pod", PATIENCE)
    harness.until_phase(workload, "Running")
    assert uid not in [one["metadata"]["uid"] for one in harness.objects("pods")]


def test_distributed_pods_start_together(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=4, numWorkers=2, distributedFramework="PyTorch")
    workload = harness.submit("distributed", "gang", spec)
    harness.until_phase(workload, "Running")
    names = [pod["metadata"]["name"] for pod in harness.objects("pods")]
    assert sorted(names) == ["gang-master-0", "gang-worker-0", "gang-worker-1"]
    [group] = harness.objects("podgroups")
    assert group["spec"]["minMember"] == 3
    variables = {one["name"]: one.get("value") for one in harness.objects("pods")[0]["spec"]["containers"][0]["env"]}
    assert variables["MASTER_ADDR"] == "gang-master-0.gang"
    assert variables["WORLD_SIZE"] == "3"


def test_a_gang_without_room_for_all_waits_as_a_whole(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=8, numWorkers=2, distributedFramework="PyTorch")
    workload = harness.submit("distributed", "wide", spec)
    until(lambda: harness.server.message(workload) not in ("", "Waiting to be scheduled"), "a reason", PATIENCE)
    assert harness.server.phase(workload) == "Pending"
    assert all(not pod["spec"].get("nodeName") for pod in harness.objects("pods"))


def test_a_gang_ends_with_its_master(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=1, numWorkers=1, distributedFramework="PyTorch", cleanPodPolicy="All")
    master = harness.spec(gpus=1, seconds=2)
    workload = harness.submit("distributed", "led", spec, masterSpec=master)
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    until(
        lambda: [pod["metadata"]["name"] for pod in harness.objects("pods")] == ["led-master-0"],
        "the worker's end",
        PATIENCE,
    )


def test_a_gang_that_fails_begins_again_as_a_whole(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=1, seconds=1, code=4, numWorkers=1, distributedFramework="PyTorch", backoffLimit=1)
    workload = harness.submit("distributed", "broken", spec)
    failed = harness.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]


def test_inference_is_a_deployment_behind_a_service(harness: ClusterHarness) -> None:
    spec = harness.spec(gpus=1, servingPort={"container": 8000}, autoscaling={"minReplicas": 2, "maxReplicas": 2})
    workload = harness.submit("inference", "model", spec)
    harness.until_phase(workload, "Running")
    [deployment] = harness.objects("deployments")
    assert deployment["spec"]["replicas"] == 2
    [service] = harness.objects("services")
    assert service["spec"]["ports"][0]["port"] == 8000


def groups(harness: ClusterHarness, name: str, **members: Any) -> str:
    pod = harness.spec(gpus=1)
    spec = {"leader": pod, "worker": pod, "workers": 1, "replicas": 2, **members}
    return harness.submit("groups", name, spec)


def test_distributed_inference_is_a_leader_worker_set(harness: ClusterHarness) -> None:
    workload = groups(harness, "big")
    running = harness.until_phase(workload, "Running")
    assert "2 of 2 groups available" in running["phaseMessage"]
    assert len(harness.objects("pods")) == 4
    assert len(harness.objects("podgroups")) == 2
    answer = harness.server.call(
        "PATCH", f"/api/v1/workloads/distributed-inferences/{workload}", {"spec": {"replicas": 1}}
    )
    assert answer.status == 202, answer
    until(lambda: len(harness.objects("pods")) == 2, "one group", PATIENCE)
    until(lambda: "1 of 1 group available" in harness.server.message(workload), "its phase", PATIENCE)


def test_a_group_whose_pod_is_lost_is_made_again(harness: ClusterHarness) -> None:
    workload = groups(harness, "lost", replicas=1)
    harness.until_phase(workload, "Running")
    before = {pod["metadata"]["uid"] for pod in harness.objects("pods")}
    harness.kubectl("delete", "pod", "lost-0-1", "-n", harness.namespace)

    def uids() -> set[str]:
        return {pod["metadata"]["uid"] for pod in harness.objects("pods")}

    until(lambda: len(uids()) == 2 and not uids() & before, "a group of new pods", PATIENCE)
    harness.until_phase(workload, "Running")
    assert not uids() & before


def test_secrets_that_the_server_keeps_are_the_workloads_own(harness: ClusterHarness) -> None:
    body = {"name": "token", "projectId": harness.project_id, "data": {"key": "s3cret"}}
    made = harness.server.call("POST", "/api/v1/secrets", body)
    assert made.status in (200, 201), made
    variable = {"name": "TOKEN", "secret": {"name": "token", "key": "key"}}
    workload = harness.train("secretive", environmentVariables=[variable])
    harness.until_phase(workload, "Running")
    assert "Secret/secretive-secret-token" in harness.names("secrets")
    harness.act("delete", workload)
    until(lambda: "Secret/secretive-secret-token" not in harness.names("secrets"), "the copy's end", PATIENCE)
