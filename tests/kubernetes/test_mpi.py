"""MPI on a cluster: refused before its start without its operator; with its definition, a job that the API server
accepts. All frameworks' golden jobs are checked against the operators' real definitions."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.options import add, drop
from tests.e2e.server import until
from tests.kubernetes.room import PATIENCE, Room

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]
GOLDEN = Path(__file__).parents[1] / "golden" / "distributed-training"


@pytest.fixture
def definitions(cluster: clusters.Cluster, room: Room) -> Iterator[None]:
    add(cluster, "kubeflow-crds")
    try:
        yield
    finally:
        room.delete_all()
        drop(cluster, "kubeflow-crds")


def submit(room: Room, name: str, **members: str) -> str:
    spec = room.spec(gpus=1, numWorkers=2) | {"distributedFramework": "MPI", **members}
    return room.submit("distributed", name, spec)


def test_without_its_operator_it_is_refused_before_its_start(room: Room) -> None:
    failed = room.until_phase(submit(room, "launched"), "Failed")
    assert "install the MPI operator" in failed["phaseMessage"]
    assert room.names("pods,podgroups,services") == []


def test_with_its_definition_it_is_a_job_of_the_operator(room: Room, definitions: None) -> None:
    workload = submit(room, "launched", mpiLauncherCreationPolicy="WaitForWorkersReady")
    [job] = until(lambda: room.objects("mpijobs"), "the job", PATIENCE)
    assert job["apiVersion"] == "kubeflow.org/v2beta1"
    assert job["spec"]["launcherCreationPolicy"] == "WaitForWorkersReady"
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
    refused = room.until_phase(submit(room, "for-ever", restartPolicy="Always"), "Failed")
    assert "Never and OnFailure only" in refused["phaseMessage"]
    room.act("delete", workload, "distributed")
    until(lambda: room.objects("mpijobs") == [], "the job's end", PATIENCE)


def test_golden_jobs_are_accepted(room: Room, definitions: None) -> None:
    paths = sorted(GOLDEN.glob("*.kubeflow.json"))
    assert len(paths) >= 5
    for path in paths:
        for body in json.loads(path.read_bytes()):
            body["metadata"]["namespace"] = room.namespace
            done = room.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
            assert done.returncode == 0, f"{path.name}: {done.stderr}"
