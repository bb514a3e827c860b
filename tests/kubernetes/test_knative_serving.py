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
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.field_cases import ENDS

pytestmark = pytest.mark.operators
SERVICES = "services.serving.knative.dev"
#: Everything that Knative makes of one of its Services.
MADE = (
    f"{SERVICES},configurations.serving.knative.dev,routes.serving.knative.dev,revisions.serving.knative.dev,"
    "podautoscalers.autoscaling.internal.knative.dev,serverlessservices.networking.internal.knative.dev,"
    "ingresses.networking.internal.knative.dev,deployments,services,pods,podgroups"
)


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    harness = ClusterHarness(cluster, tmp_path_factory.mktemp("server"))
    harness.server = Server(harness.server.data_dir, *harness.server.arguments, "--proxy-port", "0")
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


@pytest.fixture(scope="module", autouse=True)
def knative(harness: ClusterHarness) -> Iterator[None]:
    with harness.installed("knative"):
        yield


def serve(harness: ClusterHarness, name: str, **members: Any) -> str:
    words = {"command": "python3 -c", "args": shlex.join([ENDS + PROGRAM, "/tmp", "8000"])}
    given = {"servingPort": {"container": 8000}, "compute": {"gpuDevicesRequest": 1}}
    return harness.submit("inference", name, harness.real("") | words | given | members)


def service(harness: ClusterHarness) -> dict[str, Any]:
    [found] = harness.objects(SERVICES)
    return found


def pods(harness: ClusterHarness) -> list[dict[str, Any]]:
    return [pod for pod in harness.objects("pods") if "deletionTimestamp" not in pod["metadata"]]


def until_pods(harness: ClusterHarness, number: int) -> None:
    until(lambda: len(pods(harness)) == number, f"{number} pods", PATIENCE)


def is_ready(harness: ClusterHarness) -> bool:
    conditions = service(harness).get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def test_an_inference_is_run_by_knative_and_placed_by_kai(harness: ClusterHarness) -> None:
    workload = serve(harness, "model")
    harness.until_phase(workload, "Running")
    until(lambda: is_ready(harness), "that Knative finds it ready", PATIENCE)
    [pod] = pods(harness)
    assert {one["name"] for one in pod["spec"]["containers"]} == {"main", "queue-proxy"}
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    [group] = harness.objects("podgroups")
    assert group["spec"]["queue"] == harness.project
    [seen] = harness.pods(workload)
    assert (seen["name"], seen["k8sPhase"], seen["nodeName"]) == (pod["metadata"]["name"], "Running", NODE)
    assert ask(url_of(harness.server, workload))["pod"] == pod["metadata"]["name"]
    harness.act("delete", workload, "inference")
    until(lambda: harness.names(MADE) == [], "an empty namespace", PATIENCE)


def test_knative_counts_the_requests_and_pods_follow(harness: ClusterHarness) -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 3, "metric": "concurrency", "metricThreshold": 2}
    workload = serve(harness, "crowd", autoscaling=bounds | {"metricThresholdPercentage": 100})
    harness.until_phase(workload, "Running")
    url = url_of(harness.server, workload)
    callers = Callers()
    callers.ask(url, "/hold/go", 6)
    until_pods(harness, 3)
    until(lambda: "3 of 3 pods ready" in harness.server.message(workload), "that all are ready", PATIENCE)
    for pod in pods(harness):
        name = pod["metadata"]["name"]
        harness.kubectl("exec", name, "-n", harness.namespace, "-c", "main", "--", "touch", "/tmp/go")
    assert {answer.status for answer in callers.end()} == {200}
    until_pods(harness, 1)
    until(lambda: "1 of 1 pod ready" in harness.server.message(workload), "that one is left", PATIENCE)


def test_a_change_is_a_new_revision_without_a_gap(harness: ClusterHarness) -> None:
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
    # Those of earlier tests may still be there.
    assert [name for name in harness.names("revisions.serving.knative.dev") if "/rolled-" in name] == [
        "Revision/rolled-00001",
        "Revision/rolled-00002",
    ]
    until_pods(harness, 1)
    until(lambda: "1 of 1 pod ready" in harness.server.message(workload), "that one is left", PATIENCE)


def test_what_does_not_start_in_time_fails_and_nothing_is_left(harness: ClusterHarness) -> None:
    times = {"servingConfiguration": {"initializationTimeoutSeconds": 20}, "servingPort": {"container": 8000}}
    workload = harness.submit("inference", "broken", harness.real("exit 3") | times)
    until(lambda: "Pod broken-" in harness.server.message(workload), "the container's words", PATIENCE)
    assert "ready after 20 s" in harness.until_phase(workload, "Failed")["phaseMessage"]
    until(lambda: harness.names(MADE) == [], "an empty namespace", PATIENCE)


def test_what_knative_does_not_take_is_a_deployment(harness: ClusterHarness) -> None:
    """Requests that may take longer than its settings allow."""
    workload = serve(harness, "patient", servingConfiguration={"requestTimeoutSeconds": 3600})
    harness.until_phase(workload, "Running")
    assert harness.objects(SERVICES) == []
    assert ask(url_of(harness.server, workload))["version"] == "1"
