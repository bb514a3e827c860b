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
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.field_cases import ENDS

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    """A server that looks back on four seconds of load."""
    folder = tmp_path_factory.mktemp("server")
    harness = ClusterHarness(cluster, folder)
    harness.server = Server(
        harness.server.data_dir, *harness.server.arguments, "--scaling-window", "4", "--proxy-port", "0"
    )
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


def serve(harness: ClusterHarness, name: str, **members: Any) -> str:
    words = {"command": "python3 -c", "args": shlex.join([ENDS + PROGRAM, "/tmp", "8000"])}
    return harness.submit("inference", name, harness.real("") | words | {"servingPort": {"container": 8000}} | members)


def scaled(least: int, most: int, **members: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"minReplicas": least, "maxReplicas": most, "metric": "concurrency", "metricThreshold": 2}
    return {"autoscaling": given | {"metricThresholdPercentage": 100} | members}


def pods(harness: ClusterHarness) -> list[dict[str, Any]]:
    return [pod for pod in harness.objects("pods") if "deletionTimestamp" not in pod["metadata"]]


def until_pods(harness: ClusterHarness, number: int) -> None:
    until(lambda: len(pods(harness)) == number, f"{number} pods", PATIENCE)


def release(harness: ClusterHarness, name: str) -> None:
    """Make the file for which requests wait, in every pod."""
    for pod in pods(harness):
        harness.kubectl("exec", pod["metadata"]["name"], "-n", harness.namespace, "--", "touch", f"/tmp/{name}")


def test_it_sleeps_and_a_request_wakes_it(harness: ClusterHarness) -> None:
    """`minReplicas` 0, `initialReplicas`, `activationReplicas` and `scaleToZeroRetentionSeconds`."""
    times = {"initialReplicas": 0, "activationReplicas": 2, "scaleToZeroRetentionSeconds": 3}
    workload = serve(harness, "sleeper", **scaled(0, 3, **times))
    harness.until_phase(workload, "Running")
    assert pods(harness) == []
    assert ask(url_of(harness.server, workload))["pod"].startswith("sleeper-")
    until(lambda: "Scaled to zero" in harness.server.message(workload), "no pods", PATIENCE)
    until_pods(harness, 0)
    words = [event["message"] for event in events(harness.server, workload, "Scaled")]
    assert words[0] == "From 0 pods to 2: a request arrived"
    assert words[-1].endswith("no requests")
    assert ask(url_of(harness.server, workload))["version"] == "1"


def test_pods_follow_the_requests_and_no_request_fails(harness: ClusterHarness) -> None:
    """`maxReplicas`, `metric`, `metricThreshold`, `metricThresholdPercentage` and `scaleDownDelaySeconds`."""
    workload = serve(harness, "crowd", **scaled(1, 3, scaleDownDelaySeconds=1))
    harness.until_phase(workload, "Running")
    url = url_of(harness.server, workload)
    callers = Callers()
    callers.ask(url, "/hold/go", 6)
    until_pods(harness, 3)
    harness.until_phase(workload, "Running")
    callers.keep_asking(url)
    release(harness, "go")
    until_pods(harness, 1)
    answers = callers.end()
    assert {answer.status for answer in answers} == {200}
    assert len(answers) > 6


def test_a_pod_gets_no_more_at_once_than_its_limit(harness: ClusterHarness) -> None:
    """`concurrencyHardLimit`."""
    workload = serve(harness, "narrow", autoscaling={"minReplicas": 1, "concurrencyHardLimit": 2})
    harness.until_phase(workload, "Running")
    callers = Callers()
    callers.ask(url_of(harness.server, workload), "/hold/on", 6)
    release(harness, "on")
    assert {answer.status for answer in callers.end()} == {200}
    assert max(body["peak"] for body in callers.bodies()) <= 3


def test_times_of_requests_and_of_the_start(harness: ClusterHarness) -> None:
    """`requestTimeoutSeconds` and `initializationTimeoutSeconds`."""
    slow = serve(harness, "slow", servingConfiguration={"requestTimeoutSeconds": 1})
    late = [{"name": "LATE", "value": "never"}]
    never = serve(harness, "never", environmentVariables=late, servingConfiguration={"initializationTimeoutSeconds": 2})
    assert "were ready after 2 s" in harness.until_phase(never, "Failed")["phaseMessage"]
    harness.until_phase(slow, "Running")
    answer = fetch(url_of(harness.server, slow), "/hold/never")
    assert (answer.status, b"did not start to answer within 1 s" in answer.body) == (504, True)
    until(lambda: all("never" not in pod["metadata"]["name"] for pod in pods(harness)), "no pod of it", PATIENCE)


def test_a_new_version_takes_over_without_a_gap(harness: ClusterHarness) -> None:
    workload = serve(harness, "rolled", environmentVariables=[{"name": "VERSION", "value": "1"}])
    harness.until_phase(workload, "Running")
    url = url_of(harness.server, workload)
    assert ask(url)["version"] == "1"
    callers = Callers()
    callers.keep_asking(url)
    changed = change(harness.server, workload, environmentVariables=[{"name": "VERSION", "value": "2"}])
    assert changed.status == 202, changed
    until(lambda: ask(url)["version"] == "2", "the new version", PATIENCE)
    assert {answer.status for answer in callers.end()} == {200}
    assert len(revisions(harness.server, workload)) == 2
    until_pods(harness, 1)


def test_who_may_ask(harness: ClusterHarness) -> None:
    """`servingPort` with `authorizationType`, `authorizedUsers`, `authorizedGroups`, `clusterLocalAccessOnly`."""
    ada, bob = log_in(harness.server, "ada@service.example", ("crew",)), log_in(harness.server, "bob@service.example")
    ports: dict[str, dict[str, Any]] = {
        "users": {
            "protocol": "http",
            "authorizationType": "authorizedUsers",
            "authorizedUsers": ["ada@service.example"],
        },
        "crew": {"authorizationType": "authorizedGroups", "authorizedGroups": ["crew"]},
        "inside": {"clusterLocalAccessOnly": True},
    }
    started = {name: serve(harness, name, servingPort={"container": 8000, **port}) for name, port in ports.items()}
    for name in ("users", "crew"):
        harness.until_phase(started[name], "Running")
        url = url_of(harness.server, started[name])
        assert [fetch(url, **bearer(token)).status for token in (ada, bob)] == [200, 403]
        assert fetch(url).status == 401
    harness.until_phase(started["inside"], "Running")
    assert not harness.server.workload(started["inside"]).get("urls")
    [service] = [one for one in harness.objects("services") if one["metadata"]["name"].startswith("inside")]
    until(lambda: is_reached(f"http://{service['spec']['clusterIP']}:8000/"), "the way to its pod", PATIENCE)


def is_reached(url: str) -> bool:
    """The node learns of a pod that is ready a moment after us, and refuses until then."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False
