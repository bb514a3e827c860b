"""Changes of a service while it serves: revisions that take over, fail, follow each other, and outlive the server."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import PATIENCE, Server, until
from tests.e2e.serving import (
    PATH,
    Callers,
    ask,
    change,
    delete,
    events,
    pods,
    revisions,
    spec_of,
    start,
    until_pods,
    url_of,
    version,
)
from tests.e2e.several import kill_pod
from tests.e2e.web import fetch

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="two revisions on one port need networks of their own, which need root"
)
ARGUMENTS = ("--personal", "--retry-delay", "20", "--scaling-window", "2", "--proxy-port", "0")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("revisions") / "data", *ARGUMENTS).start()
    yield server
    server.close()


def serve(server: Server, folder: Path, name: str, **spec: Any) -> tuple[str, str]:
    """A service that runs: its id and its URL."""
    workload_id = start(server, name, spec_of(folder, 8200, **spec))
    server.until_phase(workload_id, "Running")
    return workload_id, url_of(server, workload_id)


def until_version(url: str, number: str) -> None:
    until(lambda: ask(url)["version"] == number, f"version {number}")


def test_an_update_takes_over_without_a_failed_request(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "rolled", autoscaling={"minReplicas": 2})
    callers = Callers()
    for _ in range(4):
        callers.keep_asking(url)
    callers.ask(url, "/hold/done")
    answer = change(server, workload_id, environmentVariables=version("2"))
    assert answer.status == 202
    assert answer.json["spec"]["environmentVariables"] == version("2")
    until_version(url, "2")
    # The request that an older pod has is still answered by it.
    first, second = revisions(server, workload_id)
    assert (first["phase"], second["phase"]) == ("Stopped", "Running")
    assert [pod["revisionId"] for pod in revision_pods(server, second["id"])] == [second["id"]] * 2
    (tmp_path / "done").touch()
    until(lambda: revision_pods(server, first["id"]) == [], "the end of the older pods")
    answers = callers.end()
    assert {each.status for each in answers} == {200}
    assert {body["version"] for body in callers.bodies()} == {"1", "2"}
    assert server.until_phase(workload_id, "Running")["runningPods"] == 2
    assert server.history(workload_id)[-2:] == ["Updating", "Running"]
    delete(server, workload_id)


def revision_pods(server: Server, revision_id: str, deleted: bool = False) -> list[dict[str, Any]]:
    query = "?deleted=true" if deleted else ""
    found: list[dict[str, Any]] = server.call("GET", f"{PATH}/revisions/{revision_id}/pods{query}").json["pods"]
    return found


def test_revisions_can_be_read(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "read")
    change(server, workload_id, environmentVariables=version("2"), args=None)
    until_version(url, "2")
    assert server.call("GET", f"{PATH}/{workload_id}/revisions/count").json == {"count": 2}
    first, second = revisions(server, workload_id)
    assert (first["name"], second["name"]) == ("read-00001", "read-00002")
    assert (first["isServing"], second["isServing"]) == (False, True)
    assert second["environmentVariables"] == {"VERSION": "2"}
    assert server.call("GET", f"{PATH}/revisions/{second['id']}").json["name"] == "read-00002"
    until(lambda: revision_pods(server, first["id"], deleted=True), "the older pod's end")
    told = server.call("GET", f"{PATH}/revisions/{second['id']}/events?sortOrder=asc").json["events"]
    assert [event["reason"] for event in told[:3]] == ["RevisionCreated", "Scheduled", "Started"]
    assert "read-00001-0" not in {event["involvedObject"]["name"] for event in told}
    records = server.call("GET", f"{PATH}/revisions/{second['id']}/history?limit=2").json
    assert (len(records["records"]), records["next"]) == (2, 2)
    listed = server.call("GET", f"/api/v1/workloads/pods?filterBy=revisionId=={second['id']}").json["pods"]
    assert [pod["name"] for pod in listed] == ["read-00002-0"]
    assert server.call("GET", f"{PATH}/revisions/{workload_id}").status == 404
    assert server.call("GET", f"{PATH}/revisions/no-id/pods").status == 404
    delete(server, workload_id)
    assert revisions(server, workload_id) == []
    gone = server.call("GET", f"{PATH}/{workload_id}/revisions?deleted=true").json["revisions"]
    assert [each["name"] for each in gone] == ["read-00001", "read-00002"]


def test_an_update_that_fails_leaves_the_one_before_for_good(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "careful")
    hurry = {"initializationTimeoutSeconds": 1}
    change(server, workload_id, environmentVariables=version("2", FAIL="1"), servingConfiguration=hurry)
    [failure] = until(lambda: events(server, workload_id, "RevisionFailed"), "the failure")
    assert failure["message"].startswith("Revision 2 failed: 0 of 1 pod were ready after 1 s.")
    assert [each["phase"] for each in revisions(server, workload_id)] == ["Running", "Failed"]
    server.until_phase(workload_id, "Running")
    assert until_pods(server, workload_id, 1) == ["careful-00001-0"]
    assert ask(url)["version"] == "1"
    [condition] = [each for each in server.workload(workload_id)["conditions"] if each["type"] == "RevisionFailed"]
    assert condition["message"].endswith("Revision 1 keeps serving")
    patience = {"initializationTimeoutSeconds": 600}
    change(server, workload_id, environmentVariables=version("3"), servingConfiguration=patience)
    until_version(url, "3")
    assert not [each for each in server.workload(workload_id)["conditions"] if each["type"] == "RevisionFailed"]
    delete(server, workload_id)


def test_an_update_that_cannot_start_fails_at_once(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "sure")
    change(server, workload_id, command="/no/such/program")
    [failure] = until(lambda: events(server, workload_id, "RevisionFailed"), "the failure")
    assert "could not be started" in failure["message"]
    assert ask(url)["version"] == "1"
    delete(server, workload_id)


def test_of_several_updates_the_last_counts(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "hasty")
    for number in ("2", "3", "4"):
        late = {} if number == "4" else {"LATE": "never"}
        assert change(server, workload_id, environmentVariables=version(number, **late)).status == 202
    until_version(url, "4")
    found = revisions(server, workload_id)
    assert [each["phase"] for each in found] == ["Stopped"] * (len(found) - 1) + ["Running"]
    assert until_pods(server, workload_id, 1)[0].startswith(found[-1]["name"])
    delete(server, workload_id)


def test_a_change_of_the_first_before_it_was_ready_replaces_it(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8200, environmentVariables=version("1", LATE="never"))
    workload_id = start(server, "early", spec)
    until_pods(server, workload_id, 1)
    change(server, workload_id, environmentVariables=version("2"))
    server.until_phase(workload_id, "Running")
    assert ask(url_of(server, workload_id))["version"] == "2"
    assert until_pods(server, workload_id, 1) == ["early-00002-0"]
    delete(server, workload_id)


def test_a_change_of_the_number_alone_makes_no_revision(server: Server, tmp_path: Path) -> None:
    workload_id, _ = serve(server, tmp_path, "numbers")
    bounds = {"minReplicas": 2, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 10}
    assert change(server, workload_id, autoscaling=bounds).status == 202
    assert until_pods(server, workload_id, 2) == ["numbers-00001-0", "numbers-00001-1"]
    assert change(server, workload_id, autoscaling={"minReplicas": 1}, priorityClass="high").status == 202
    assert until_pods(server, workload_id, 1) == ["numbers-00001-0"]
    shown = server.workload(workload_id)
    assert (shown["requestedPods"]["max"], shown["priorityClassName"]) == (3, "high")
    assert len(revisions(server, workload_id)) == 1
    for nothing in ({}, {"autoscaling": None}, {"autoscaling": {"minReplicas": 1}}):
        before = server.call("GET", f"{PATH}/{workload_id}").json
        answer = server.call("PATCH", f"{PATH}/{workload_id}", {"spec": nothing})
        assert (answer.status, answer.json["spec"]) == (202, before["spec"])
    delete(server, workload_id)


def test_deleting_in_the_middle_of_an_update_leaves_nothing(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "dropped")
    change(server, workload_id, environmentVariables=version("2", LATE="never"))
    until_pods(server, workload_id, 2)
    delete(server, workload_id)
    until(lambda: fetch(url).status == 404, "the URL's end")
    assert pods(server, workload_id) == []


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_update_continues_after_the_server_was_killed(
    make_server: Callable[..., Server], tmp_path: Path, moment: str
) -> None:
    """Killed while the new revision starts; it gets ready while no server runs, or after one does again."""
    server = make_server(*ARGUMENTS)
    workload_id, _ = serve(server, tmp_path / "service", "survivor")
    change(server, workload_id, environmentVariables=version("2", LATE="now"))
    until_pods(server, workload_id, 2)
    server.kill()
    if moment == "before":
        (tmp_path / "service" / "now").touch()
    server.start()
    server.log_in()
    url = url_of(server, workload_id)
    if moment == "after":
        assert ask(url)["version"] == "1"
        (tmp_path / "service" / "now").touch()
    until_version(url, "2")
    assert until_pods(server, workload_id, 1) == ["survivor-00002-0"]
    assert [each["phase"] for each in revisions(server, workload_id)] == ["Stopped", "Running"]
    delete(server, workload_id)


def test_scaling_continues_after_the_server_was_killed(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server(*ARGUMENTS)
    workload_id, _ = serve(server, tmp_path / "service", "scaled")
    assert change(server, workload_id, autoscaling={"minReplicas": 3}).status == 202
    server.kill()
    server.start()
    server.log_in()
    until_pods(server, workload_id, 3)
    server.until_phase(workload_id, "Running")
    assert change(server, workload_id, autoscaling={"minReplicas": 1}).status == 202
    server.kill()
    server.start()
    server.log_in()
    assert until_pods(server, workload_id, 1) == ["scaled-00001-0"]
    assert ask(url_of(server, workload_id))["pod"] == "scaled-00001-0"
    delete(server, workload_id)


def test_a_pod_that_dies_is_passed_over_and_comes_back(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "mortal", autoscaling={"minReplicas": 2})
    found = server.call("GET", f"/api/v1/workloads/{workload_id}/pods").json["pods"]
    victim = next(pod for pod in found if pod["name"] == "mortal-00001-1")
    kill_pod(victim["id"])

    def starts() -> int:
        assert ask(url)["version"] == "1", "the other pod was well"
        told = events(server, workload_id, "Started")
        return sum(event["involvedObject"]["name"] == victim["name"] for event in told)

    until(lambda: starts() == 2, "its return")
    until(lambda: {ask(url)["pod"] for _ in range(4)} == {"mortal-00001-0", "mortal-00001-1"}, "both of them")
    assert server.until_phase(workload_id, "Running")["runningPods"] == 2
    delete(server, workload_id)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"servingPort": {"container": 9}}, "spec.servingPort"),
        ({"replicas": 3}, "spec.replicas"),
        ({"autoscaling": {"minReplicas": "two"}}, "spec.autoscaling.minReplicas"),
        ({"autoscaling": {"maxReplicas": 4}}, "spec.autoscaling.metric"),
        ({"priorityClass": "loud"}, "spec.priorityClass"),
        ({"environmentVariables": [{"name": "A"}]}, "spec.environmentVariables[0]"),
        ({"environmentVariables": [{"name": "A", "secret": {"name": "no-such", "key": "k"}}]}, "secret"),
    ],
    ids=["servingPort", "unknown", "type", "rule", "choice", "source", "name"],
)
def test_bad_changes_are_refused_with_their_paths(
    server: Server, tmp_path: Path, spec: dict[str, Any], path: str
) -> None:
    workload_id = start(server, f"bad-{os.urandom(4).hex()}", spec_of(tmp_path, 8200))
    answer = server.call("PATCH", f"{PATH}/{workload_id}", {"spec": spec})
    assert (answer.status, path in answer.json["details"]) == (400, True), answer
    delete(server, workload_id)
    assert server.call("PATCH", f"{PATH}/{workload_id}", {"spec": {}}).status == 404


def open_stream(url: str) -> socket.socket:
    """A stream of events whose first event has come."""
    host = url.removeprefix("http://").rstrip("/")
    connected = socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), PATIENCE)
    connected.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    read_until(connected, b"data: first")
    return connected


def read_until(connected: socket.socket, words: bytes) -> bytes:
    heard = b""
    while words not in heard:
        piece = connected.recv(4096)
        assert piece, f"closed after {heard!r}"
        heard += piece
    return heard


def test_two_hundred_streams_and_sockets_outlast_scaling_and_an_update(server: Server, tmp_path: Path) -> None:
    workload_id, url = serve(server, tmp_path, "streams", autoscaling={"minReplicas": 2})
    status, echo = open_socket_of(url)
    assert status == 101
    streams = [open_stream(url) for _ in range(200)]
    change(server, workload_id, autoscaling={"minReplicas": 3})
    until_pods(server, workload_id, 3)
    change(server, workload_id, environmentVariables=version("2"))
    until_version(url, "2")
    streams += [open_stream(url) for _ in range(20)]
    echo.sendall(b"still here")
    assert read_until(echo, b"STILL HERE")
    (tmp_path / "end").touch()
    for stream in streams:
        assert b"0\r\n\r\n" in read_until(stream, b"0\r\n\r\n")
        stream.close()
    echo.close()
    assert until_pods(server, workload_id, 3) == [f"streams-00002-{index}" for index in range(3)]
    delete(server, workload_id)


def open_socket_of(url: str) -> tuple[int, socket.socket]:
    host = url.removeprefix("http://").rstrip("/")
    connected = socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), PATIENCE)
    lines = ("GET /echo HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "", "")
    connected.sendall("\r\n".join(lines).encode())
    head = read_until(connected, b"\r\n\r\n")
    return int(head.split()[1]), connected
