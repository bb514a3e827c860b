"""How many requests a workload's whole life costs the API server, counted where they arrive.

A real server on an API server in memory, which plays pods and controllers. Watches are not counted: they last as long
as the server.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.memory_api.process import RunningApi, running_api

NAMESPACE = "runai-default"
OBJECTS = f"/apis/run.ai/v2alpha1/namespaces/{NAMESPACE}"
SECONDS = "cluster.fairlead/run-seconds"
#: A passing phase that lasts on a busy machine is written, which costs more: some lives may take more requests.
CHEAP_LIVES, MAX_LIVES = 2, 10
GROUPS = {"replicas": 1, "workers": 1, "leader": {"image": "busybox"}, "worker": {"image": "busybox"}}
#: The spec over REST, and the most requests of a life.
SPECS: dict[str, tuple[dict[str, Any], str, int]] = {
    "trainings": ({"image": "busybox"}, "Completed", 12),
    "workspaces": ({"image": "busybox"}, "Completed", 12),
    "distributed": ({"image": "busybox", "numWorkers": 2, "distributedFramework": "PyTorch"}, "Running", 17),
    "inferences": ({"image": "busybox", "servingPort": {"container": 8080}}, "Running", 12),
    "distributed-inferences": (GROUPS, "Running", 12),
}
PLACES = {
    "trainings": f"{OBJECTS}/trainingworkloads",
    "workspaces": f"{OBJECTS}/interactiveworkloads",
    "distributed": f"{OBJECTS}/distributedworkloads",
    "inferences": f"{OBJECTS}/inferenceworkloads",
    "distributed-inferences": (
        f"/apis/workloads.fairlead.dev/v1alpha1/namespaces/{NAMESPACE}/distributedinferenceworkloads"
    ),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    with running_api(tmp_path_factory.mktemp("memory-api")) as api:
        yield api


@pytest.fixture(scope="module")
def server(api: RunningApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("requests") / "data"
    server = Server(folder, "--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig)).start()
    try:
        # The first workload waits for the namespace and the lists of a start.
        live(server, api, "trainings", "first")
        yield server
    finally:
        server.close()


def live(server: Server, api: RunningApi, path: str, name: str) -> dict[str, int]:
    """The requests of one life: submitted, run, ended or running, deleted, gone."""
    spec, phase, _ = SPECS[path]
    if phase == "Completed":
        spec = {**spec, "annotations": [{"name": SECONDS, "value": "0.2"}]}
    api.reset_counts()
    body = {"name": name, "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec}
    answer = server.call("POST", f"/api/v1/workloads/{path}", body)
    assert answer.status == 202, answer
    id = answer.json["workloadId"]
    server.until_phase(id, phase)
    place = PLACES[path]
    until(lambda: [one for one in items(api, place) if one["status"].get("phase") == phase], f"{phase} in the cluster")
    assert server.call("DELETE", f"/api/v1/workloads/{path}/{id}").status == 202
    until(lambda: not items(api, place), "no custom resource")
    until(lambda: not items(api, f"/api/v1/namespaces/{NAMESPACE}/pods"), "no pods")
    return api.counts()


def items(api: RunningApi, path: str) -> list[dict[str, Any]]:
    return [{"status": {}, **one} for one in api.call("GET", path)["items"]]


def assert_cost(most: int, live_once: Callable[[int], dict[str, int]]) -> None:
    """Enough lives take at most so many requests each; the others of a few are let pass."""
    lives: list[dict[str, int]] = []
    for number in itertools.count():
        lives.append(live_once(number))
        if sum(sum(counts.values()) <= most for counts in lives) == CHEAP_LIVES:
            return
        assert number < MAX_LIVES, lives


@pytest.mark.parametrize("path", SPECS)
def test_requests_of_a_life(server: Server, api: RunningApi, path: str) -> None:
    assert_cost(SPECS[path][2], lambda number: live(server, api, path, f"{path}-{number}"))


def test_what_is_written_to_the_cluster(server: Server, api: RunningApi) -> None:
    """Fewer requests, but still everything that people look for: the object, its phases, an event for each."""
    counts = live(server, api, "trainings", "told")
    assert counts["create trainingworkloads"] == 1
    assert counts["patch trainingworkloads/status"] >= 3
    events = items(api, f"/api/v1/namespaces/{NAMESPACE}/events")
    told = [one["reason"] for one in events if one["involvedObject"]["name"] == "told"]
    assert [reason for reason in told if reason != "Pending"][:2] == ["Running", "Completed"]


def test_an_applied_training(server: Server, api: RunningApi) -> None:
    """Applied and deleted with kubectl; its requests are not counted."""
    spec: dict[str, Any] = {"image": {"value": "busybox"}, "annotations": {"items": {SECONDS: {"value": "0.2"}}}}
    place = f"{OBJECTS}/trainingworkloads"

    def live_applied(number: int) -> dict[str, int]:
        api.reset_counts()
        name = f"applied-{number}"
        api.call("POST", place, {"metadata": {"name": name}, "spec": {**spec, "name": {"value": name}}})
        until(lambda: [one for one in items(api, place) if one["status"].get("phase") == "Completed"], "its end")
        api.call("DELETE", f"{place}/{name}")
        until(lambda: not items(api, place), "no custom resource")
        return api.counts()

    assert_cost(12, live_applied)


def test_the_next_server_deletes_what_it_found_with_as_few_requests(tmp_path: Path) -> None:
    """It knows what a workload consists of that was as desired at its start, and asks for no other kinds."""
    with running_api(tmp_path / "api") as api:
        flags = ("--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig), "--keep-logs-size", "0")
        with contextlib.closing(Server(tmp_path / "data", *flags).start()) as server:
            id = run_training(server, "stays")
        api.reset_counts()
        with contextlib.closing(Server(tmp_path / "data", *flags).start()) as server:
            # The last kind of the two lists of a start; then, that the next one runs, the first was looked at.
            until(lambda: api.counts().get("list persistentvolumeclaims", 0) == 2, "the lists of a start")
            run_training(server, "next")
            api.reset_counts()
            assert server.call("DELETE", f"/api/v1/workloads/trainings/{id}").status == 202
            until(lambda: len(items(api, f"{OBJECTS}/trainingworkloads")) == 1, "no custom resource of it")
            counts = api.counts()
        assert len(items(api, f"/api/v1/namespaces/{NAMESPACE}/pods")) == 1
    assert counts["delete jobs"] == 1
    assert counts.keys() & {"list jobs", "list services", "list secrets", "list deployments"} == set(), counts


def run_training(server: Server, name: str) -> str:
    body = {"name": name, "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": {"image": "busybox"}}
    id: str = server.call("POST", "/api/v1/workloads/trainings", body).json["workloadId"]
    server.until_phase(id, "Running")
    return id
