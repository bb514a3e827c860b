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
from tests.kubernetes.mpi_image import MPI_IMAGE, provide_image
from tests.kubernetes.room import PATIENCE, Room

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
def operator(room: Room) -> Iterator[None]:
    with room.installed("mpi"):
        yield


@pytest.fixture
def definitions(room: Room) -> Iterator[None]:
    with room.installed("kubeflow-crds"):
        yield


def launch(room: Room, name: str, *, seconds: float | None = None, code: int = 0, **spec: Any) -> str:
    """Two workers of one GPU each, that wait, and a launcher that ends as told."""
    members = {"distributedFramework": "MPI", "numWorkers": 2, **spec}
    launcher = room.spec(gpus=0, seconds=seconds, code=code)
    return room.submit("distributed", name, room.spec(gpus=1) | members, masterSpec=launcher)


def gather(room: Room, **members: Any) -> str:
    """Four processes on two workers, in real containers."""
    mpi = {"distributedFramework": "MPI", "numWorkers": 2, "slotsPerWorker": 2, **members}
    command = {"command": "mpirun -n 4 python3 -c", "args": f"'{GATHER}'"}
    image = room.real("") | {"image": MPI_IMAGE}
    return room.submit("distributed", "gathers", image | mpi, masterSpec=image | command)


def answer_of(room: Room, workload: str) -> str:
    """The last line of the launcher that ended well."""
    done = room.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    [launcher] = [pod["name"] for pod in room.pods(workload) if "launcher" in pod["name"]]
    answer = room.server.call("GET", f"/api/v1/workloads/{workload}/logs?pod={launcher}")
    return str(answer.body.decode().splitlines()[-1])


def job(room: Room) -> dict[str, Any]:
    [found] = room.objects("mpijobs")
    return found


def test_without_its_operator_it_is_refused_before_its_start(room: Room) -> None:
    failed = room.until_phase(launch(room, "launched"), "Failed")
    assert "install the MPI operator" in failed["phaseMessage"]
    assert room.names("pods,podgroups,services") == []


def test_golden_jobs_are_accepted(room: Room, definitions: None) -> None:
    paths = sorted(GOLDEN.glob("*.kubeflow.json"))
    assert len(paths) >= 5
    for path in paths:
        for body in json.loads(path.read_bytes()):
            body["metadata"]["namespace"] = room.namespace
            done = room.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
            assert done.returncode == 0, f"{path.name}: {done.stderr}"
    workload = launch(room, "known")
    until(lambda: room.objects("mpijobs"), "the job", PATIENCE)
    room.act("delete", workload, "distributed")
    until(lambda: room.objects("mpijobs") == [], "the job's end", PATIENCE)


def test_what_was_uninstalled_keeps_no_workload_from_being_removed(room: Room) -> None:
    """The server has known the kind since the test before."""
    assert room.kubectl("get", "mpijobs").returncode != 0
    room.until_phase(room.train("plain"), "Running")
    room.delete_all()


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
def test_launcher_and_workers_run_together(room: Room, operator: None, policy: str) -> None:
    """`mpiLauncherCreationPolicy` and `sshAuthMountPath`."""
    members: dict[str, Any] = {
        "mpiLauncherCreationPolicy": policy,
        "sshAuthMountPath": "/keys",
        "restartPolicy": "OnFailure",
    }
    workload = launch(room, "together", **members)
    room.until_phase(workload, "Running")
    assert job(room)["spec"]["launcherCreationPolicy"] == policy
    assert job(room)["apiVersion"] == "kubeflow.org/v2beta1"
    made = room.objects("pods")
    roles = [pod["metadata"]["labels"]["training.kubeflow.org/job-role"] for pod in made]
    assert sorted(roles) == ["launcher", "worker", "worker"]
    for pod in made:
        [main] = pod["spec"]["containers"]
        assert "/keys" in [mount["mountPath"] for mount in main["volumeMounts"]]
    [group] = room.objects("podgroups")
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["queue"] == room.project
    seen = room.pods(workload)
    assert sorted(pod["name"] for pod in seen) == sorted(pod["metadata"]["name"] for pod in made)


def test_a_gang_without_room_for_all_waits_as_a_whole(room: Room, operator: None) -> None:
    workload = launch(room, "wide", numWorkers=3, compute={"gpuDevicesRequest": 8})
    until(lambda: room.server.message(workload) not in ("", "Waiting to be scheduled"), "a reason", PATIENCE)
    assert room.server.phase(workload) == "Pending"
    assert all(not pod["spec"].get("nodeName") for pod in room.objects("pods"))


@pytest.mark.parametrize(("policy", "want"), [("None", 2), ("Running", 0)], ids=["none", "running"])
def test_it_ends_with_its_launcher_and_cleans_up(room: Room, operator: None, policy: str, want: int) -> None:
    workload = launch(room, "led", seconds=2, cleanPodPolicy=policy)
    done = room.until_phase(workload, "Completed", "Failed")
    assert done["phase"] == "Completed", done
    roles = "training.kubeflow.org/job-role"

    def workers() -> int:
        return sum(pod["metadata"]["labels"][roles] == "worker" for pod in room.objects("pods"))

    until(lambda: workers() == want, "the workers that stay", PATIENCE)


def test_a_launcher_that_fails_begins_again_with_its_workers(room: Room, operator: None) -> None:
    workload = launch(room, "broken", seconds=1, code=4, backoffLimit=1)
    failed = room.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    assert job(room)["metadata"]["labels"]["fairlead/attempt"] == "1"


def test_a_worker_that_fails_ends_the_attempt_though_its_operator_says_nothing(room: Room, operator: None) -> None:
    worker = room.spec(gpus=1, seconds=1, code=5) | {"distributedFramework": "MPI", "numWorkers": 1, "backoffLimit": 1}
    workload = room.submit("distributed", "lost", worker, masterSpec=room.spec(gpus=0))
    failed = room.until_phase(workload, "Failed")
    assert "2 pods failed, more than the backoff limit of 1" in failed["phaseMessage"]
    until(lambda: room.names("mpijobs,jobs,pods") == [], "that nothing runs on", PATIENCE)


def test_preemption_is_no_failure(room: Room, operator: None) -> None:
    """All 16 GPUs are the workers' own; who may not be preempted takes them, and gives them back."""
    workload = launch(room, "patient", compute={"gpuDevicesRequest": 8}, backoffLimit=0)
    room.until_phase(workload, "Running")
    urgent = room.train("urgent", gpus=8, priorityClass="high", preemptibility="non-preemptible")
    room.until_phase(urgent, "Running")
    until(lambda: room.server.phase(workload) == "Pending", "its preemption", PATIENCE)
    room.act("delete", urgent)
    room.until_phase(workload, "Running")
    assert "Failed" not in {one["type"] for one in job(room)["status"]["conditions"] if one["status"] == "True"}


def test_suspend_resume_and_delete(room: Room, operator: None) -> None:
    workload = launch(room, "paused")
    room.until_phase(workload, "Running")
    first = job(room)["metadata"]["uid"]
    room.act("suspend", workload, "distributed")
    room.until_phase(workload, "Stopped")
    assert room.names("mpijobs,jobs,pods,services") == []
    room.act("resume", workload, "distributed")
    room.until_phase(workload, "Running")
    assert job(room)["metadata"]["uid"] != first
    room.act("delete", workload, "distributed")
    until(lambda: room.names("mpijobs,jobs,pods,services,podgroups") == [], "an empty namespace", PATIENCE)
    until(lambda: not [one for one in room.names("secrets,configmaps") if "paused" in one], "its keys' end", PATIENCE)


def test_a_policy_that_it_does_not_know_is_refused(room: Room, operator: None) -> None:
    refused = room.until_phase(launch(room, "for-ever", restartPolicy="Always"), "Failed")
    assert "Never and OnFailure only" in refused["phaseMessage"]


def test_an_operator_that_was_away_takes_its_jobs_up(cluster: clusters.Cluster, room: Room, operator: None) -> None:
    folder = cluster.layout.folder
    control.stop(folder, "mpi-operator")
    try:
        workload = launch(room, "unheard")
        until(lambda: "MPIJob" in room.server.message(workload), "what it waits for", PATIENCE)
        assert room.server.phase(workload) == "Pending"
    finally:
        control.start_again(folder, "mpi-operator")
    room.until_phase(workload, "Running")
    control.kill(folder, "mpi-operator")
    assert room.server.phase(workload) == "Running"


@pytest.mark.debian("openmpi-bin", "python3-mpi4py", "openssh-server")
def test_mpirun_starts_its_processes_in_the_workers_containers(
    cluster: clusters.Cluster, room: Room, operator: None, tmp_path: Path
) -> None:
    """`slotsPerWorker`; at the first try, though the launcher was not told to wait for its workers."""
    provide_image(cluster.layout, tmp_path)
    workload = gather(room)
    assert answer_of(room, workload) == f"{[(rank, f'gathers-worker-{rank // 2}') for rank in range(4)]} 4"
    assert job(room)["metadata"]["labels"]["fairlead/attempt"] == "0"
