"""Inference by the real Knative Serving: its controller, webhook, autoscaler and activator run in pods of the cluster.

Its gateway alone is played (`deploy/cluster/gateway.py`): nothing here goes through one, because requests come through
Fairlead's proxy. Run by `make test-operators`; what needs no real Knative is in `test_knative.py`.
"""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.layout import NODE
from tests.e2e.server import Server, until
from tests.e2e.serving import PROGRAM, Callers, ask, change, revisions, url_of
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.field_cases import ENDS
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.operators
SERVICES = "services.serving.knative.dev"
#: Everything that Knative makes of one of its Services.
MADE = (
    f"{SERVICES},configurations.serving.knative.dev,routes.serving.knative.dev,revisions.serving.knative.dev,"
    "podautoscalers.autoscaling.internal.knative.dev,serverlessservices.networking.internal.knative.dev,"
    "ingresses.networking.internal.knative.dev,deployments,services,pods,podgroups"
)


@pytest.fixture(scope="module")
def room(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    room = Room(cluster, tmp_path_factory.mktemp("server"))
    room.server = Server(room.server.data_dir, *room.server.arguments, "--proxy-port", "0")
    try:
        room.open(CRDS)
        yield room
    finally:
        room.close()


@pytest.fixture(scope="module", autouse=True)
def knative(room: Room) -> Iterator[None]:
    with room.installed("knative"):
        yield


def serve(room: Room, name: str, **members: Any) -> str:
    words = {"command": "python3 -c", "args": shlex.join([ENDS + PROGRAM, "/tmp", "8000"])}
    given = {"servingPort": {"container": 8000}, "compute": {"gpuDevicesRequest": 1}}
    return room.submit("inference", name, room.real("") | words | given | members)


def service(room: Room) -> dict[str, Any]:
    [found] = room.objects(SERVICES)
    return found


def pods(room: Room) -> list[dict[str, Any]]:
    return [pod for pod in room.objects("pods") if "deletionTimestamp" not in pod["metadata"]]


def until_pods(room: Room, number: int) -> None:
    until(lambda: len(pods(room)) == number, f"{number} pods", PATIENCE)


def is_ready(room: Room) -> bool:
    conditions = service(room).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_an_inference_is_run_by_knative_and_placed_by_kai(room: Room) -> None:
    workload = serve(room, "model")
    room.until_phase(workload, "Running")
    until(lambda: is_ready(room), "that Knative finds it ready", PATIENCE)
    [pod] = pods(room)
    assert {one["name"] for one in pod["spec"]["containers"]} == {"main", "queue-proxy"}
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    [group] = room.objects("podgroups")
    assert group["spec"]["queue"] == room.project
    [seen] = room.pods(workload)
    assert (seen["name"], seen["k8sPhase"], seen["nodeName"]) == (pod["metadata"]["name"], "Running", NODE)
    assert ask(url_of(room.server, workload))["pod"] == pod["metadata"]["name"]
    room.act("delete", workload, "inference")
    until(lambda: room.names(MADE) == [], "an empty namespace", PATIENCE)


def test_knative_counts_the_requests_and_pods_follow(room: Room) -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 2}
    workload = serve(room, "crowd", autoscaling=bounds | {"metricThresholdPercentage": 100})
    room.until_phase(workload, "Running")
    url = url_of(room.server, workload)
    callers = Callers()
    callers.ask(url, "/hold/go", 6)
    until_pods(room, 3)
    until(lambda: "3 of 3 pods ready" in room.server.message(workload), "that all are ready", PATIENCE)
    for pod in pods(room):
        name = pod["metadata"]["name"]
        room.kubectl("exec", name, "-n", room.namespace, "-c", "main", "--", "touch", "/tmp/go")
    assert {answer.status for answer in callers.end()} == {200}
    until_pods(room, 1)
    until(lambda: "1 of 1 pod ready" in room.server.message(workload), "that one is left", PATIENCE)


def test_a_change_is_a_new_revision_without_a_gap(room: Room) -> None:
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
    assert len(room.objects("revisions.serving.knative.dev")) == 2
    until_pods(room, 1)
    until(lambda: "1 of 1 pod ready" in room.server.message(workload), "that one is left", PATIENCE)


def test_what_does_not_start_in_time_fails_and_nothing_is_left(room: Room) -> None:
    times = {"servingConfiguration": {"initializationTimeoutSeconds": 20}, "servingPort": {"container": 8000}}
    workload = room.submit("inference", "broken", room.real("exit 3") | times)
    until(lambda: "Pod broken-" in room.server.message(workload), "the container's words", PATIENCE)
    assert "ready after 20 s" in room.until_phase(workload, "Failed")["phaseMessage"]
    until(lambda: room.names(MADE) == [], "an empty namespace", PATIENCE)


def test_what_knative_does_not_take_is_a_deployment(room: Room) -> None:
    """Requests that may take longer than its settings allow."""
    workload = serve(room, "patient", servingConfiguration={"requestTimeoutSeconds": 3600})
    room.until_phase(workload, "Running")
    assert room.objects(SERVICES) == []
    assert ask(url_of(room.server, workload))["version"] == "1"
