"""Services that follow their load on real processes: from none to many and back, and what waits meanwhile."""

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, until
from tests.e2e.serving import (
    Callers,
    ask,
    change,
    delete,
    events,
    pods,
    revisions,
    spec_of,
    start,
    submit,
    until_pods,
    url_of,
)
from tests.e2e.web import fetch

NEEDS_NETWORKS = pytest.mark.skipif(
    os.geteuid() != 0, reason="several pods on one port need networks of their own, which need root"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that looks back on two seconds of load."""
    arguments = ("--personal", "--retry-delay", "20", "--scaling-window", "2", "--proxy-port", "0")
    server = Server(tmp_path_factory.mktemp("scaling") / "data", *arguments).start()
    yield server
    server.close()


def scaled(least: int, most: int, **members: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"minReplicas": least, "maxReplicas": most, "metric": "concurrency", "metricThreshold": 2}
    return {"autoscaling": given | {"metricThresholdPercentage": 100} | members}


def until_asleep(server: Server, workload_id: str) -> None:
    until(lambda: "Scaled to zero" in server.message(workload_id), "no pods")
    until_pods(server, workload_id, 0)


def test_a_request_to_a_sleeping_service_waits_and_is_answered(server: Server, tmp_path: Path) -> None:
    workload_id = start(server, "sleeper", spec_of(tmp_path, 8101, autoscaling={"minReplicas": 0}))
    running = server.until_phase(workload_id, "Running")
    assert running["requestedPods"] == {"number": 1, "min": 0, "max": 1, "parallelism": 1}
    url = url_of(server, workload_id)
    assert ask(url)["pod"]
    for _ in range(2):
        until_asleep(server, workload_id)
        assert server.phase(workload_id) == "Running"
        assert ask(url)["version"] == "1"
    assert "Degraded" not in server.history(workload_id)
    reasons = [event["message"] for event in events(server, workload_id, "Scaled")]
    assert reasons[:2] == ["From 1 pod to 0: no requests", "From 0 pods to 1: a request arrived"]
    delete(server, workload_id)
    assert fetch(url).status == 404


@NEEDS_NETWORKS
def test_it_begins_asleep_and_wakes_with_as_many_as_it_should(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8102, **scaled(0, 3, initialReplicas=0, activationReplicas=2))
    workload_id = start(server, "activated", spec)
    server.until_phase(workload_id, "Running")
    assert pods(server, workload_id) == []
    assert ask(url_of(server, workload_id))["pod"].startswith("activated-00001-")
    assert [event["message"] for event in events(server, workload_id, "Scaled")][:1] == [
        "From 0 pods to 2: a request arrived"
    ]
    until_asleep(server, workload_id)
    delete(server, workload_id)


@NEEDS_NETWORKS
def test_pods_follow_the_requests_at_once_and_no_request_fails(server: Server, tmp_path: Path) -> None:
    workload_id = start(server, "crowd", spec_of(tmp_path, 8103, **scaled(1, 3)))
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    callers = Callers()
    callers.ask(url, "/hold/go", 6)
    until_pods(server, workload_id, 3)
    server.until_phase(workload_id, "Running")
    callers.keep_asking(url)
    (tmp_path / "go").touch()
    until_pods(server, workload_id, 1)
    answers = callers.end()
    assert {answer.status for answer in answers} == {200}
    assert len(answers) > 6
    assert ask(url)["pod"] == "crowd-00001-0"
    delete(server, workload_id)


@NEEDS_NETWORKS
@pytest.mark.parametrize(
    ("metric", "threshold", "path"), [("throughput", 2, "/"), ("latency", 100, "/slow")], ids=["throughput", "latency"]
)
def test_pods_follow_other_measures(server: Server, tmp_path: Path, metric: str, threshold: int, path: str) -> None:
    spec = spec_of(tmp_path, 8104, **scaled(1, 2, metric=metric, metricThreshold=threshold))
    workload_id = start(server, metric, spec)
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    callers = Callers()
    callers.keep_asking(url, path)
    until_pods(server, workload_id, 2)
    assert {answer.status for answer in callers.end()} == {200}
    until_pods(server, workload_id, 1)
    delete(server, workload_id)


def test_a_pod_gets_no_more_at_once_than_its_limit(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8105, autoscaling={"minReplicas": 1, "concurrencyHardLimit": 2})
    workload_id = start(server, "narrow", spec)
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    callers = Callers()
    callers.ask(url, "/hold/on", 6)
    (tmp_path / "on").touch()
    assert {answer.status for answer in callers.end()} == {200}
    # The readiness probe connects too, and may do so beside the two.
    assert max(body["peak"] for body in callers.bodies()) <= 3
    delete(server, workload_id)


def test_the_last_pod_is_kept_for_its_retention(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8106, autoscaling={"minReplicas": 0, "scaleToZeroRetentionSeconds": 4})
    workload_id = start(server, "kept", spec)
    server.until_phase(workload_id, "Running")
    ask(url_of(server, workload_id))
    until_asleep(server, workload_id)
    [ready] = events(server, workload_id, "Running")
    [asleep] = events(server, workload_id, "Scaled")
    moments = [datetime.fromisoformat(event["createdAt"].replace("Z", "+00:00")) for event in (ready, asleep)]
    assert (moments[1] - moments[0]).total_seconds() >= 4
    delete(server, workload_id)


@NEEDS_NETWORKS
def test_pods_stay_for_the_delay_although_the_load_has_gone(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8107, **scaled(1, 2, scaleDownDelaySeconds=3600))
    workload_id = start(server, "steady", spec)
    server.until_phase(workload_id, "Running")
    callers = Callers()
    callers.ask(url_of(server, workload_id), "/hold/leave", 4)
    until_pods(server, workload_id, 2)
    (tmp_path / "leave").touch()
    assert {answer.status for answer in callers.end()} == {200}
    # A shorter delay shows that only the delay has kept them.
    assert change(server, workload_id, autoscaling={"scaleDownDelaySeconds": 3}).status == 202
    until_pods(server, workload_id, 1)
    assert [event["message"][:15] for event in events(server, workload_id, "Scaled")] == [
        "From 1 pod to 2",
        "From 2 pods to ",
    ]
    assert len(revisions(server, workload_id)) == 1
    delete(server, workload_id)


def test_a_request_that_is_not_answered_in_time_ends_with_504(server: Server, tmp_path: Path) -> None:
    spec = spec_of(tmp_path, 8108, servingConfiguration={"requestTimeoutSeconds": 1})
    workload_id = start(server, "slow", spec)
    server.until_phase(workload_id, "Running")
    answer = fetch(url_of(server, workload_id), "/hold/never")
    assert (answer.status, b"did not start to answer within 1 s" in answer.body) == (504, True)
    assert change(server, workload_id, servingConfiguration={"requestTimeoutSeconds": 300}).status == 202
    until(lambda: fetch(url_of(server, workload_id)).status == 200, "an answer in the time that it has now")
    delete(server, workload_id)


def test_a_service_that_is_never_ready_has_failed(server: Server, tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path,
        8109,
        environmentVariables=[{"name": "LATE", "value": "never"}],
        servingConfiguration={"initializationTimeoutSeconds": 1},
    )
    workload_id = start(server, "never", spec)
    failed = server.until_phase(workload_id, "Failed")
    assert failed["phaseMessage"] == "Revision 1 failed: 0 of 1 pod were ready after 1 s."
    until_pods(server, workload_id, 0)
    [revision] = revisions(server, workload_id)
    assert revision["phase"] == "Failed"
    assert fetch(url_of(server, workload_id)).status in (404, 503)


@NEEDS_NETWORKS
def test_pods_that_find_no_room_leave_the_others_serving(server: Server, tmp_path: Path) -> None:
    cores = os.cpu_count() or 1
    spec = spec_of(tmp_path, 8110, compute={"cpuCoreRequest": cores * 0.6}, **scaled(1, 2))
    workload_id = start(server, "tight", spec)
    server.until_phase(workload_id, "Running")
    url = url_of(server, workload_id)
    callers = Callers()
    callers.ask(url, "/hold/room", 4)
    degraded = server.until_phase(workload_id, "Degraded")
    assert degraded["phaseMessage"]
    assert ask(url)["pod"] == "tight-00001-0"
    (tmp_path / "room").touch()
    assert {answer.status for answer in callers.end()} == {200}
    server.until_phase(workload_id, "Running")
    delete(server, workload_id)


@pytest.mark.parametrize(
    ("autoscaling", "path"),
    [
        ({"minReplicas": 3, "maxReplicas": 2, "metric": "latency", "metricThreshold": 1}, "maxReplicas"),
        ({"minReplicas": 1, "maxReplicas": 2}, "metric"),
        ({"minReplicas": 1, "maxReplicas": 2, "metric": "concurrency"}, "metricThreshold"),
        ({"minReplicas": 1, "maxReplicas": 2, "metric": "concurrency", "metricThreshold": 0}, "metricThreshold"),
        ({"minReplicas": 1, "maxReplicas": 2, "metric": "gpu_use", "metricThreshold": 1}, "metric"),
        ({"minReplicas": 0, "maxReplicas": 2, "metric": "latency", "metricThreshold": 1}, "metric"),
        ({"minReplicas": 1, "initialReplicas": 2}, "initialReplicas"),
        ({"minReplicas": 0, "activationReplicas": 2}, "activationReplicas"),
        ({"minReplicas": -1}, "minReplicas"),
        ({"maxReplicas": 0}, "maxReplicas"),
        ({"scaleDownDelaySeconds": 3601}, "scaleDownDelaySeconds"),
        ({"metricThresholdPercentage": 0.5}, "metricThresholdPercentage"),
        ({"concurrencyHardLimit": "many"}, "concurrencyHardLimit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_followed_is_refused_with_its_path(
    server: Server, autoscaling: dict[str, Any], path: str
) -> None:
    answer = submit(server, "wrong", {"image": "x", "autoscaling": autoscaling})
    assert answer.status == 400
    assert f"spec.autoscaling.{path}: " in answer.json["details"]


def test_every_violation_is_reported_at_once(server: Server) -> None:
    spec = {"image": "x", "autoscaling": {"minReplicas": 3, "maxReplicas": 2}, "servingPort": {}}
    answer = submit(server, "Wrong", spec)
    assert answer.status == 400
    for path in ("name", "spec.autoscaling.maxReplicas", "spec.servingPort.container"):
        assert f"{path}: " in answer.json["details"]
