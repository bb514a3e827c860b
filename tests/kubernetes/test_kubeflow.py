"""Distributed trainings by Kubeflow's real training operator: objects, phases, ends, retries, preemption, pods.

The operator is built and started for these tests and taken away after them, so that others meet a cluster without it.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.options import add, drop
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
#: framework -> (kind, types of its pods, variables by which the operator lets them find each other)
FRAMEWORKS = {
    "PyTorch": ("pytorchjobs", {"master", "worker"}, {"MASTER_ADDR", "WORLD_SIZE", "RANK"}),
    "TF": ("tfjobs", {"chief", "worker"}, {"TF_CONFIG"}),
    "XGBoost": ("xgboostjobs", {"master", "worker"}, {"MASTER_ADDR", "WORLD_SIZE", "RANK"}),
    "JAX": ("jaxjobs", {"worker"}, {"COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID"}),
}


@pytest.fixture(scope="module", autouse=True)
def operator(harness: ClusterHarness) -> Iterator[None]:
    with harness.installed("kubeflow"):
        yield


def job(harness: ClusterHarness, kind: str = "pytorchjobs") -> dict[str, Any]:
    [found] = harness.objects(kind)
    return found


def train(harness: ClusterHarness, name: str, *, framework: str = "PyTorch", **members: Any) -> str:
    spec = harness.spec(**{"gpus": 1, **members}) | {"distributedFramework": framework}
    return harness.submit("distributed", name, spec)


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_each_framework_runs_by_its_operator(harness: ClusterHarness, framework: str) -> None:
    kind, types, variables = FRAMEWORKS[framework]
    workload = train(harness, f"by-{framework.lower()}", framework=framework, numWorkers=2)
    harness.until_phase(workload, "Running")
    made = harness.objects("pods")
    assert {pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] for pod in made} == types
    for pod in made:
        names = [one["name"] for one in pod["spec"]["containers"][0]["env"]]
        assert variables <= set(names)
        assert len(names) == len(set(names)), "nothing is said twice"
        assert pod["metadata"]["ownerReferences"][0]["uid"] == job(harness, kind)["metadata"]["uid"]
    [group] = harness.objects("podgroups")
    assert group["spec"]["minMember"] == len(made)
    assert group["spec"]["queue"] == harness.project
    assert sorted(pod["name"] for pod in harness.pods(workload)) == sorted(pod["metadata"]["name"] for pod in made)


def test_a_gang_without_room_for_all_waits_as_a_whole(harness: ClusterHarness) -> None:
    workload = train(harness, "wide", gpus=8, numWorkers=2)
    until(lambda: harness.server.message(workload) not in ("", "Waiting to be scheduled"), "a reason", PATIENCE)
    assert harness.server.phase(workload) == "Pending"
    assert job(harness)["kind"] == "PyTorchJob"
    assert all(not pod["spec"].get("nodeName") for pod in harness.objects("pods"))


@pytest.mark.parametrize(("policy", "want"), [("All", []), ("Running", ["led-master-0"])], ids=["all", "running"])
def test_it_ends_with_its_master_and_cleans_up(harness: ClusterHarness, policy: str, want: list[str]) -> None:
    spec = harness.spec(gpus=1, numWorkers=1) | {"distributedFramework": "PyTorch", "cleanPodPolicy": policy}
    workload = harness.submit("distributed", "led", spec, masterSpec=harness.spec(gpus=1, seconds=2))
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    until(lambda: [pod["metadata"]["name"] for pod in harness.objects("pods")] == want, "the others' end", PATIENCE)


def test_a_job_that_fails_begins_again_as_a_whole(harness: ClusterHarness) -> None:
    workload = train(harness, "broken", seconds=1, code=4, numWorkers=1, backoffLimit=1)
    failed = harness.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    assert job(harness)["metadata"]["labels"]["fairlead/attempt"] == "1"


def test_failures_are_counted_over_the_death_of_the_server(harness: ClusterHarness) -> None:
    """A server writes down with what a job begins again and removes it; another one, after its death, makes it."""
    workload = train(harness, "widowed", seconds=2, code=4, numWorkers=1, backoffLimit=1)
    until(
        lambda: written(harness, "widowed-attempts") == {"attempt": "1", "failures": "1"}, "its first failure", PATIENCE
    )
    harness.server.kill()
    harness.kubectl("delete", "pytorchjob", "widowed", "-n", harness.namespace, "--cascade=foreground", "--wait")
    harness.server.start()
    failed = harness.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    assert job(harness)["metadata"]["labels"]["fairlead/attempt"] == "1"


def written(harness: ClusterHarness, name: str) -> dict[str, str]:
    return next((one["data"] for one in harness.objects("configmaps") if one["metadata"]["name"] == name), {})


def test_preemption_is_not_a_failure(harness: ClusterHarness) -> None:
    """All 16 GPUs are the trainings' own; who may not be preempted takes them, and gives them back."""
    workload = train(harness, "patient", gpus=8, numWorkers=1, backoffLimit=0)
    harness.until_phase(workload, "Running")
    urgent = harness.train("urgent", gpus=8, priorityClass="high", preemptibility="non-preemptible")
    harness.until_phase(urgent, "Running")
    until(lambda: harness.server.phase(workload) == "Pending", "its preemption", PATIENCE)
    harness.act("delete", urgent)
    harness.until_phase(workload, "Running")
    assert harness.server.workload(workload)["phase"] == "Running"
    conditions = {one["type"] for one in job(harness)["status"]["conditions"] if one["status"] == "True"}
    assert "Failed" not in conditions


def test_a_quota_on_pods_is_what_it_waits_for(harness: ClusterHarness) -> None:
    """The operator has its own word for it."""
    with harness.no_pods():
        workload = train(harness, "kept-out", gpus=0, numWorkers=1)
        until(lambda: "exceeded quota: none" in harness.server.message(workload), "the quota's words", PATIENCE)
        assert harness.server.phase(workload) == "Pending"


def test_suspend_resume_and_delete(harness: ClusterHarness) -> None:
    workload = train(harness, "paused", numWorkers=1)
    harness.until_phase(workload, "Running")
    first = job(harness)["metadata"]["uid"]
    harness.act("suspend", workload, "distributed")
    harness.until_phase(workload, "Stopped")
    assert harness.names("pytorchjobs,pods,services") == []
    harness.act("resume", workload, "distributed")
    harness.until_phase(workload, "Running")
    assert job(harness)["metadata"]["uid"] != first
    harness.act("delete", workload, "distributed")
    until(lambda: harness.names("pytorchjobs,pods,services,podgroups") == [], "an empty namespace", PATIENCE)


def test_pods_find_each_other_in_real_containers(harness: ClusterHarness) -> None:
    """The name in MASTER_ADDR leads to the master, and the container's output is the pod's."""
    listening = (
        "import os, socket; s = socket.create_server(('', int(os.environ['MASTER_PORT']))); "
        "c, _ = s.accept(); print('met', c.recv(9).decode(), os.environ['RANK'], flush=True)"
    )
    asking = (
        "import os, socket, time\n"
        "for attempt in range(300):\n"
        "    try:\n"
        "        c = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 2)\n"
        "        break\n"
        "    except OSError: time.sleep(0.2)\n"
        "c.sendall(b'worker-' + os.environ['RANK'].encode())"
    )
    spec = harness.real("") | {"command": "python3 -c", "args": _quoted(asking), "numWorkers": 1}
    master = harness.real("") | {"command": "python3 -c", "args": _quoted(listening)}
    workload = harness.submit("distributed", "talking", spec | {"distributedFramework": "PyTorch"}, masterSpec=master)
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    shown = harness.kubectl("logs", "talking-master-0", "-n", harness.namespace).stdout
    assert shown.strip() == "met worker-1 0"
    answer = harness.server.call("GET", f"/api/v1/workloads/{workload}/logs?pod=talking-master-0")
    assert "met worker-1 0" in answer.body.decode()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_a_workload_that_started_without_an_operator_continues_without_it(
    cluster: clusters.Cluster, harness: ClusterHarness
) -> None:
    drop(cluster, "kubeflow")
    workload = train(harness, "own", numWorkers=1)
    harness.until_phase(workload, "Running")
    before = {pod["metadata"]["uid"] for pod in harness.objects("pods")}
    add(cluster, "kubeflow")
    harness.server.stop()
    harness.server.token = ""
    harness.server.start()
    harness.until_phase(workload, "Running")
    assert harness.objects("pytorchjobs") == []
    assert {pod["metadata"]["uid"] for pod in harness.objects("pods")} == before


def test_what_an_operator_runs_is_found_again_after_a_restart(harness: ClusterHarness) -> None:
    workload = train(harness, "found", numWorkers=1)
    harness.until_phase(workload, "Running")
    uid = job(harness)["metadata"]["uid"]
    harness.server.kill()
    harness.server.start()
    harness.until_phase(workload, "Running")
    assert job(harness)["metadata"]["uid"] == uid
