"""Services on a cluster with real traffic: from none to several pods and back, limits, time-outs and who may ask."""

import shlex
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from tests.e2e.server import Server, until
from tests.e2e.serving import PROGRAM, Callers, ask, change, events, revisions, url_of
from tests.e2e.web import bearer, fetch, log_in
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.field_cases import ENDS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def room(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """A server that looks back on four seconds of load."""
    folder = tmp_path_factory.mktemp("server")
    room = Room(cluster, folder)
    room.server = Server(room.server.data_dir, *room.server.arguments, "--scaling-window", "4", "--proxy-port", "0")
    try:
        room.open(CRDS)
        yield room
    finally:
        room.close()


def serve(room: Room, name: str, **members: Any) -> str:
    words = {"command": "python3 -c", "args": shlex.join([ENDS + PROGRAM, "/tmp", "8000"])}
    return room.submit("inference", name, room.real("") | words | {"servingPort": {"container": 8000}} | members)


def scaled(least: int, most: int, **members: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"minReplicas": least, "maxReplicas": most, "metric": "concurrency", "metricThreshold": 2}
    return {"autoscaling": given | {"metricThresholdPercentage": 100} | members}


def pods(room: Room) -> list[dict[str, Any]]:
    return [pod for pod in room.objects("pods") if "deletionTimestamp" not in pod["metadata"]]


def until_pods(room: Room, number: int) -> None:
    until(lambda: len(pods(room)) == number, f"{number} pods", PATIENCE)


def release(room: Room, name: str) -> None:
    """Make the file for which requests wait, in every pod."""
    for pod in pods(room):
        room.kubectl("exec", pod["metadata"]["name"], "-n", room.namespace, "--", "touch", f"/tmp/{name}")


def test_it_sleeps_and_a_request_wakes_it(room: Room) -> None:
    """`minReplicas` 0, `initialReplicas`, `activationReplicas` and `scaleToZeroRetentionSeconds`."""
    times = {"initialReplicas": 0, "activationReplicas": 2, "scaleToZeroRetentionSeconds": 3}
    workload = serve(room, "sleeper", **scaled(0, 3, **times))
    room.until_phase(workload, "Running")
    assert pods(room) == []
    assert ask(url_of(room.server, workload))["pod"].startswith("sleeper-")
    until(lambda: "Scaled to zero" in room.server.message(workload), "no pods", PATIENCE)
    until_pods(room, 0)
    words = [event["message"] for event in events(room.server, workload, "Scaled")]
    assert words[0] == "From 0 pods to 2: a request arrived"
    assert words[-1].endswith("no requests")
    assert ask(url_of(room.server, workload))["version"] == "1"


def test_pods_follow_the_requests_and_none_fails(room: Room) -> None:
    """`maxReplicas`, `metric`, `metricThreshold`, `metricThresholdPercentage` and `scaleDownDelaySeconds`."""
    workload = serve(room, "crowd", **scaled(1, 3, scaleDownDelaySeconds=1))
    room.until_phase(workload, "Running")
    url = url_of(room.server, workload)
    callers = Callers()
    callers.ask(url, "/hold/go", 6)
    until_pods(room, 3)
    room.until_phase(workload, "Running")
    callers.keep_asking(url)
    release(room, "go")
    until_pods(room, 1)
    answers = callers.end()
    assert {answer.status for answer in answers} == {200}
    assert len(answers) > 6


def test_a_pod_gets_no_more_at_once_than_its_limit(room: Room) -> None:
    """`concurrencyHardLimit`."""
    workload = serve(room, "narrow", autoscaling={"minReplicas": 1, "concurrencyHardLimit": 2})
    room.until_phase(workload, "Running")
    callers = Callers()
    callers.ask(url_of(room.server, workload), "/hold/on", 6)
    release(room, "on")
    assert {answer.status for answer in callers.end()} == {200}
    assert max(body["peak"] for body in callers.bodies()) <= 3


def test_times_of_requests_and_of_the_start(room: Room) -> None:
    """`requestTimeoutSeconds` and `initializationTimeoutSeconds`."""
    slow = serve(room, "slow", servingConfiguration={"requestTimeoutSeconds": 1})
    late = [{"name": "LATE", "value": "never"}]
    never = serve(room, "never", environmentVariables=late, servingConfiguration={"initializationTimeoutSeconds": 2})
    assert "were ready after 2 s" in room.until_phase(never, "Failed")["phaseMessage"]
    room.until_phase(slow, "Running")
    answer = fetch(url_of(room.server, slow), "/hold/never")
    assert (answer.status, b"did not start to answer within 1 s" in answer.body) == (504, True)
    until(lambda: all("never" not in pod["metadata"]["name"] for pod in pods(room)), "no pod of it", PATIENCE)


def test_a_new_version_takes_over_without_a_gap(room: Room) -> None:
    workload = serve(room, "rolled", environmentVariables=[{"name": "VERSION", "value": "1"}])
    room.until_phase(workload, "Running")
    url = url_of(room.server, workload)
    assert ask(url)["version"] == "1"
    callers = Callers()
    callers.keep_asking(url)
    changed = change(room.server, workload, environmentVariables=[{"name": "VERSION", "value": "2"}])
    assert changed.status == 202, changed
    until(lambda: ask(url)["version"] == "2", "the new version", PATIENCE)
    assert {answer.status for answer in callers.end()} == {200}
    assert len(revisions(room.server, workload)) == 2
    until_pods(room, 1)


def test_who_may_ask(room: Room) -> None:
    """`servingPort` with `authorizationType`, `authorizedUsers`, `authorizedGroups`, `clusterLocalAccessOnly`."""
    ada, bob = log_in(room.server, "ada@service.example", ("crew",)), log_in(room.server, "bob@service.example")
    ports: dict[str, dict[str, Any]] = {
        "users": {
            "protocol": "http",
            "authorizationType": "authorizedUsers",
            "authorizedUsers": ["ada@service.example"],
        },
        "crew": {"authorizationType": "authorizedGroups", "authorizedGroups": ["crew"]},
        "inside": {"clusterLocalAccessOnly": True},
    }
    started = {name: serve(room, name, servingPort={"container": 8000, **port}) for name, port in ports.items()}
    for name in ("users", "crew"):
        room.until_phase(started[name], "Running")
        url = url_of(room.server, started[name])
        assert [fetch(url, **bearer(token)).status for token in (ada, bob)] == [200, 403]
        assert fetch(url).status == 401
    room.until_phase(started["inside"], "Running")
    assert not room.server.workload(started["inside"]).get("urls")
    [service] = [one for one in room.objects("services") if one["metadata"]["name"].startswith("inside")]
    until(lambda: is_reached(f"http://{service['spec']['clusterIP']}:8000/"), "the way to its pod", PATIENCE)


def is_reached(url: str) -> bool:
    """The node learns of a pod that is ready a moment after us, and refuses until then."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False
