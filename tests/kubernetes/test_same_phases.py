"""The same specs on this machine and on a cluster: the same phases in the same order."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.server import Server
from tests.kubernetes.room import CODE, IMAGE, PATIENCE, SECONDS, Room

pytestmark = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]

Steps = Callable[[Server, str], None]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("machine") / "data", "--personal", "--retry-delay", "50")
    try:
        yield server.start()
    finally:
        server.close()


def spec(seconds: float, code: int = 0, **members: Any) -> dict[str, Any]:
    """Says twice what its pods do: to a shell, and to the stand-in for a kubelet."""
    told = [{"name": SECONDS, "value": f"{seconds:g}"}, {"name": CODE, "value": str(code)}]
    return {
        "image": IMAGE,
        "command": "sh -c",
        "args": f"'sleep {seconds:g}; exit {code}'",
        "annotations": told,
        **members,
    }


def nothing(server: Server, workload: str) -> None:
    """It ends by itself."""


def pause(server: Server, workload: str) -> None:
    server.until_phase(workload, "Running", patience=PATIENCE)
    assert server.call("POST", f"/api/v1/workloads/trainings/{workload}/suspend").status == 202
    server.until_phase(workload, "Stopped", patience=PATIENCE)
    assert server.call("POST", f"/api/v1/workloads/trainings/{workload}/resume").status == 202


CASES: dict[str, tuple[dict[str, Any], Steps, list[str]]] = {
    "ends well": (spec(2), nothing, ["Creating", "Pending", "Initializing", "Running", "Completed"]),
    "fails": (spec(2, 3, backoffLimit=0), nothing, ["Creating", "Pending", "Initializing", "Running", "Failed"]),
    "suspended and resumed": (
        spec(4),
        pause,
        [
            "Creating",
            "Pending",
            "Initializing",
            "Running",
            "Stopping",
            "Stopped",
            "Resuming",
            "Pending",
            "Initializing",
            "Running",
            "Completed",
        ],
    ),
    "several": (
        spec(2, completions=2, parallelism=2),
        nothing,
        ["Creating", "Pending", "Initializing", "Running", "Completed"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_phases_are_the_same(room: Room, machine: Server, name: str) -> None:
    given, steps, want = CASES[name]
    for server, project in ((machine, "1"), (room.server, room.project_id)):
        body = {
            "name": name.replace(" ", "-"),
            "projectId": project,
            "clusterId": server.credentials["clusterId"],
            "spec": given,
        }
        answer = server.call("POST", "/api/v1/workloads/trainings", body)
        assert answer.status == 202, answer
        workload = str(answer.json["workloadId"])
        steps(server, workload)
        server.until_phase(workload, "Completed", "Failed", patience=PATIENCE)
        assert server.history(workload) == want, f"on {server.arguments}"
