"""A workload whose deletion was requested is listed until nothing of it is left."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.client import Client
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from tests import builders
from tests.contract.api.api_server import START, ApiServer
from tests.unit.cli.calling import call

DELETING, SUCCESSOR, GONE = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))


@pytest.fixture(scope="module")
def filled(api: ApiServer) -> ApiServer:
    """One is being deleted while its pod still stops, a newer one has its name, and one is gone."""
    project_id = api.get("/api/v1/org-unit/projects")["projects"][0]["id"]
    shared: dict[str, Any] = {"cluster_id": api.cluster_id, "project_id": project_id}
    deleted = {**shared, "phase": Phase.DELETING, "desired_phase": DesiredPhase.DELETED, "deleted_at": START + 1000}
    api.put(
        builders.workload("train", id=DELETING, created_at=START, **deleted),
        builders.workload("train", id=SUCCESSOR, created_at=START + 2000, phase=Phase.RUNNING, **shared),
        builders.workload("old", id=GONE, created_at=START, gone=True, **deleted),
        builders.pod("train-0-0", id="stopping", workload_id=DELETING, phase=PodPhase.STOPPING, project_id=project_id),
        builders.pod("old-0-0", id="lost", workload_id=GONE, phase=PodPhase.SUCCEEDED, project_id=project_id),
    )
    return api


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param("", [(DELETING, "Deleting"), (SUCCESSOR, "Running")], id="default"),
        pytest.param("filterBy=phase==Deleting", [(DELETING, "Deleting")], id="by phase"),
        pytest.param("deleted=true", [(DELETING, "Deleting"), (GONE, "Deleting")], id="deleted"),
    ],
)
def test_a_workload_is_listed_until_its_deletion_is_complete(
    filled: ApiServer, query: str, want: list[tuple[str, str]]
) -> None:
    listed = filled.get(f"/api/v1/workloads?{query}")["workloads"]
    assert sorted((row["id"], row["phase"]) for row in listed) == want
    assert filled.get(f"/api/v1/workloads/count?{query}") == {"count": len(want)}


def test_its_pods_are_listed_as_long_as_it_is(filled: ApiServer) -> None:
    for workload_id, want in ((DELETING, ["train-0-0"]), (GONE, [])):
        pods = filled.get(f"/api/v1/workloads/{workload_id}/pods")["pods"]
        assert [pod["name"] for pod in pods] == want


def test_its_name_means_the_workload_that_took_it_over(filled: ApiServer) -> None:
    with Client(f"http://127.0.0.1:{filled.port}", token=filled.token) as client:
        assert client.find_workload("train")["id"] == SUCCESSOR


def test_the_command_line_shows_it(filled: ApiServer, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{filled.port}"
    listed = call("list", "--all", "-o", "json", home=tmp_path, FAIRLEAD_URL=url, FAIRLEAD_TOKEN=filled.token)
    assert [(row["name"], row["phase"]) for row in json.loads(listed.out)] == [
        ("train", "Running"),
        ("train", "Deleting"),
    ], listed.err
