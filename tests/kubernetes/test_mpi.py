"""MPI by Kubeflow's real MPI operator: refused without it; with it launcher and workers run, end, fail, are preempted.

The operator is built and started for these tests and taken away after them, so that others meet a cluster without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster import control
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.mpi_image import MPI_IMAGE, provide_image

pytestmark = pytest.mark.kubernetes
GOLDEN = Path(__file__).parents[1] / "golden" / "distributed-training"
GATHER = """
from mpi4py import MPI
import socket
world = MPI.COMM_WORLD
found = world.gather((world.rank, socket.gethostname()))
if world.rank == 0: print(found, world.size, flush=True)
"""


@pytest.fixture(scope="module")
def operator(harness: ClusterHarness) -> Iterator[None]:
    with harness.installed("mpi"):
        yield


@pytest.fixture
def definitions(harness: ClusterHarness) -> Iterator[None]:
    with harness.installed("kubeflow-crds"):
        yield


def launch(harness: ClusterHarness, name: str, *, seconds: float | None = None, code: int = 0, **spec: Any) -> str:
    """Two workers of one GPU each, that wait, and a launcher that ends as told."""
    members = {"distributedFramework": "MPI", "numWorkers": 2, **spec}
    launcher = harness.spec(gpus=0, seconds=seconds, code=code)
    return harness.submit("distributed", name, harness.spec(gpus=1) | members, masterSpec=launcher)


def gather(harness: ClusterHarness, **members: Any) -> str:
    """Four processes on two workers, in real containers."""
    mpi = {"distributedFramework": "MPI", "numWorkers": 2, "slotsPerWorker": 2, **members}
    command = {"command": "mpirun -n 4 python3 -c", "args": f"'{GATHER}'"}
    image = harness.real("") | {"image": MPI_IMAGE}
    return harness.submit("distributed", "gathers", image | mpi, masterSpec=image | command)


def answer_of(harness: ClusterHarness, workload: str) -> str:
    """The last line of the launcher that ended well."""
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    [launcher] = [pod["name"] for pod in harness.pods(workload) if "launcher" in pod["name"]]
    answer = harness.server.call("GET", f"/api/v1/workloads/{workload}/logs?pod={launcher}")
    return str(answer.body.decode().splitlines()[-1])


def job(harness: ClusterHarness) -> dict[str, Any]:
    [found] = harness.objects("mpijobs")
    return found


def test_without_its_operator_it_is_refused_before_its_start(harness: ClusterHarness) -> None:
    failed = harness.until_phase(launch(harness, "launched"), "Failed")
    assert "install the MPI operator" in failed["phaseMessage"]
    assert harness.names("pods,podgroups,services") == []


def test_golden_jobs_are_accepted(harness: ClusterHarness, definitions: None) -> None:
    paths = sorted(GOLDEN.glob("*.kubeflow.json"))
    assert len(paths) >= 5
    for path in paths:
        for body in json.loads(path.read_bytes()):
            body["metadata"]["namespace"] = harness.namespace
            done = harness.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
            assert done.returncode == 0, f"{path.name}: {done.stderr}"
    workload = launch(harness, "known")
    until(lambda: harness.objects("mpijobs"), "the job", PATIENCE)
    harness.act("delete", workload, "distributed")
    until(lambda: harness.objects("mpijobs") == [], "the job's end", PATIENCE)


def test_what_was_uninstalled_keeps_no_workload_from_being_removed(harness: ClusterHarness) -> None:
    """The server has known the kind since the test before."""
    assert harness.kubectl("get", "mpijobs").returncode != 0
    harness.until_phase(harness.train("plain"), "Running")
    harness.delete_all()


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_launcher_and_workers_run_together(harness: ClusterHarness, operator: None, policy: str) -> None:
    """`mpiLauncherCreationPolicy` and `sshAuthMountPath`."""
    members: dict[str, Any] = {
        "mpiLauncherCreationPolicy": policy,
        "sshAuthMountPath": "/keys",
        "restartPolicy": "OnFailure",
    }
    workload = launch(harness, "together", **members)
    harness.until_phase(workload, "Running")
    assert job(harness)["spec"]["launcherCreationPolicy"] == policy
    assert job(harness)["apiVersion"] == "kubeflow.org/v2beta1"
    made = harness.objects("pods")
    roles = [pod["metadata"]["labels"]["training.kubeflow.org/job-role"] for pod in made]
    assert sorted(roles) == ["launcher", "worker", "worker"]
    for pod in made:
        [main] = pod["spec"]["containers"]
        assert "/keys" in [mount["mountPath"] for mount in main["volumeMounts"]]
    [group] = harness.objects("podgroups")
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["queue"] == harness.project
    seen = harness.pods(workload)
    assert sorted(pod["name"] for pod in seen) == sorted(pod["metadata"]["name"] for pod in made)


def test_a_gang_without_room_for_all_waits_as_a_whole(harness: ClusterHarness, operator: None) -> None:
    workload = launch(harness, "wide", numWorkers=3, compute={"gpuDevicesRequest": 8})
    until(lambda: harness.server.message(workload) not in ("", "Waiting to be scheduled"), "a reason", PATIENCE)
    assert harness.server.phase(workload) == "Pending"
    assert all(not pod["spec"].get("nodeName") for pod in harness.objects("pods"))


@pytest.mark.parametrize(("policy", "want"), [("None", 2), ("Running", 0)], ids=["none", "running"])
def test_it_ends_with_its_launcher_and_cleans_up(
    harness: ClusterHarness, operator: None, policy: str, want: int
) -> None:
    workload = launch(harness, "led", seconds=2, cleanPodPolicy=policy)
    done = harness.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    roles = "training.kubeflow.org/job-role"

    def workers() -> int:
        return sum(pod["metadata"]["labels"][roles] == "worker" for pod in harness.objects("pods"))

    until(lambda: workers() == want, "the workers that stay", PATIENCE)


def test_a_launcher_that_fails_begins_again_with_its_workers(harness: ClusterHarness, operator: None) -> None:
    workload = launch(harness, "broken", seconds=1, code=4, backoffLimit=1)
    failed = harness.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    assert job(harness)["metadata"]["labels"]["fairlead/attempt"] == "1"


def test_a_worker_that_fails_ends_the_attempt_though_its_operator_says_nothing(
    harness: ClusterHarness, operator: None
) -> None:
    worker = harness.spec(gpus=1, seconds=1, code=5) | {
        "distributedFramework": "MPI",
        "numWorkers": 1,
        "backoffLimit": 1,
    }
    workload = harness.submit("distributed", "lost", worker, masterSpec=harness.spec(gpus=0))
    failed = harness.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    until(lambda: harness.names("mpijobs,jobs,pods") == [], "that nothing runs on", PATIENCE)


def test_preemption_is_not_a_failure(harness: ClusterHarness, operator: None) -> None:
    """All 16 GPUs are the workers' own; who may not be preempted takes them, and gives them back."""
    workload = launch(harness, "patient", compute={"gpuDevicesRequest": 8}, backoffLimit=0)
    harness.until_phase(workload, "Running")
    urgent = harness.train("urgent", gpus=8, priorityClass="high", preemptibility="non-preemptible")
    harness.until_phase(urgent, "Running")
    until(lambda: harness.server.phase(workload) == "Pending", "its preemption", PATIENCE)
    harness.act("delete", urgent)
    harness.until_phase(workload, "Running")
    assert "Failed" not in {one["type"] for one in job(harness)["status"]["conditions"] if one["status"] == "True"}


def test_suspend_resume_and_delete(harness: ClusterHarness, operator: None) -> None:
    workload = launch(harness, "paused")
    harness.until_phase(workload, "Running")
    first = job(harness)["metadata"]["uid"]
    harness.act("suspend", workload, "distributed")
    harness.until_phase(workload, "Stopped")
    assert harness.names("mpijobs,jobs,pods,services") == []
    harness.act("resume", workload, "distributed")
    harness.until_phase(workload, "Running")
    assert job(harness)["metadata"]["uid"] != first
    harness.act("delete", workload, "distributed")
    until(lambda: harness.names("mpijobs,jobs,pods,services,podgroups") == [], "an empty namespace", PATIENCE)
    until(
        lambda: not [one for one in harness.names("secrets,configmaps") if "paused" in one], "its keys' end", PATIENCE
    )


def test_a_policy_that_it_does_not_know_is_refused(harness: ClusterHarness, operator: None) -> None:
    refused = harness.until_phase(launch(harness, "for-ever", restartPolicy="Always"), "Failed")
    assert "only Never and OnFailure" in refused["phaseMessage"]


def test_an_operator_that_was_away_takes_its_jobs_up(
    cluster: clusters.Cluster, harness: ClusterHarness, operator: None
) -> None:
    folder = cluster.layout.folder
    control.stop(folder, "mpi-operator")
    try:
        workload = launch(harness, "unheard")
        until(lambda: "MPIJob" in harness.server.message(workload), "what it waits for", PATIENCE)
        assert harness.server.phase(workload) == "Pending"
    finally:
        control.start_again(folder, "mpi-operator")
    harness.until_phase(workload, "Running")
    control.kill(folder, "mpi-operator")
    assert harness.server.phase(workload) == "Running"


@pytest.mark.debian("openmpi-bin", "python3-mpi4py", "openssh-server")
def test_mpirun_starts_its_processes_in_the_workers_containers(
    cluster: clusters.Cluster, harness: ClusterHarness, operator: None, tmp_path: Path
) -> None:
    """`slotsPerWorker`; at the first try, though the launcher was not told to wait for its workers."""
    provide_image(cluster.layout, tmp_path)
    workload = gather(harness)
    assert answer_of(harness, workload) == f"{[(rank, f'gathers-worker-{rank // 2}') for rank in range(4)]} 4"
    assert job(harness)["metadata"]["labels"]["fairlead/attempt"] == "0"
