"""The same specs on this machine and on a cluster: the same phases in the same order."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.e2e.server import Server, until
from tests.kubernetes.cluster_harness import CODE, IMAGE, PATHS, PATIENCE, PYTHON, SECONDS, ClusterHarness

pytestmark = pytest.mark.kubernetes

#: What is done with a workload of that path once it is submitted, until it is where its history is read.
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


def ends(server: Server, path: str) -> None:
    """By itself."""
    until_phase(server, path, "Completed", "Failed")


def until_phase(server: Server, path: str, *phases: str) -> None:
    server.until_phase(path.rpartition("/")[2], *phases, patience=PATIENCE)


def act(server: Server, path: str, verb: str) -> None:
    answer = server.call("DELETE", path) if verb == "delete" else server.call("POST", f"{path}/{verb}")
    assert answer.status == 202, answer


def pauses(server: Server, path: str) -> None:
    until_phase(server, path, "Running")
    act(server, path, "suspend")
    until_phase(server, path, "Stopped")
    act(server, path, "resume")
    ends(server, path)


def is_deleted_running(server: Server, path: str) -> None:
    until_phase(server, path, "Running")
    act(server, path, "delete")
    until(lambda: "Deleting" in server.history(path.rpartition("/")[2]), "its end", PATIENCE)


def is_suspended_waiting(server: Server, path: str) -> None:
    until_phase(server, path, "Pending")
    act(server, path, "suspend")
    until_phase(server, path, "Stopped")
    act(server, path, "delete")
    until(lambda: "Deleting" in server.history(path.rpartition("/")[2]), "its end", PATIENCE)


class Case(NamedTuple):
    spec: dict[str, Any]
    steps: Steps
    want: list[str]
    kind: str = "training"


UP = ["Creating", "Pending", "Initializing", "Running"]
PAUSED = ["Stopping", "Stopped", "Resuming", "Pending", "Initializing", "Running"]
GREEDY = {
    "image": PYTHON,
    "command": "python3 -c",
    "args": "'import time; time.sleep(1); x = bytearray(200 << 20)'",
    "compute": {"cpuMemoryRequest": "30M", "cpuMemoryLimit": "30M"},
    "backoffLimit": 0,
}
GANG: dict[str, Any] = {"numWorkers": 1, "distributedFramework": "PyTorch"}

CASES: dict[str, Case] = {
    "ends well": Case(spec(2), ends, [*UP, "Completed"]),
    "fails": Case(spec(2, 3, backoffLimit=0), ends, [*UP, "Failed"]),
    "fails twice": Case(spec(2, 3, backoffLimit=1), ends, [*UP, "Degraded", "Running", "Failed"]),
    "several": Case(spec(2, completions=2, parallelism=2), ends, [*UP, "Completed"]),
    "suspended and resumed": Case(spec(4), pauses, [*UP, *PAUSED, "Completed"]),
    "too much memory": Case(GREEDY, ends, [*UP, "Failed"]),
    "deleted while it runs": Case(spec(600, terminationGracePeriodSeconds=0), is_deleted_running, [*UP, "Deleting"]),
    "suspended while it waits": Case(
        spec(600, compute={"gpuDevicesRequest": 99}),
        is_suspended_waiting,
        ["Creating", "Pending", "Stopping", "Stopped", "Deleting"],
    ),
    "workspace": Case(spec(4), pauses, [*UP, *PAUSED, "Completed"], "workspace"),
    "gang": Case(spec(3, **GANG), ends, [*UP, "Completed"], "distributed"),
    "gang that fails": Case(spec(2, 3, backoffLimit=0, **GANG), ends, [*UP, "Failed"], "distributed"),
    "service": Case(spec(600), is_deleted_running, [*UP, "Deleting"], "inference"),
    "groups": Case(
        {"leader": spec(600), "worker": spec(600), "workers": 1}, is_deleted_running, [*UP, "Deleting"], "groups"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_phases_are_the_same(harness: ClusterHarness, machine: Server, name: str) -> None:
    case = CASES[name]
    paths = {}
    for server, project in ((machine, "1"), (harness.server, harness.project_id)):
        body = {
            "name": name.replace(" ", "-"),
            "projectId": project,
            "clusterId": server.credentials["clusterId"],
            "spec": case.spec,
        }
        path = f"/api/v1/workloads/{PATHS[case.kind]}"
        answer = server.call("POST", path, body)
        assert answer.status == 202, answer
        paths[server] = f"{path}/{answer.json['workloadId']}"
    for server, path in paths.items():
        case.steps(server, path)
        assert server.history(path.rpartition("/")[2]) == case.want, f"on {server.arguments}"
