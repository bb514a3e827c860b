"""Inference by Knative: its real definitions in a real API server, its controllers played.

Building Knative takes minutes, so that only `make test-operators` runs it (`test_knative_serving.py`). Here the
objects are checked by the API server against Knative's schemas, and these tests do what its controllers do: make a
Deployment of a revision, change its size, write the Service's conditions.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.options import add, drop
from fairlead.engines.kubernetes.render.knative import FEATURES
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes
SERVICES = "services.serving.knative.dev"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module", autouse=True)
def knative(cluster: clusters.Cluster, harness: ClusterHarness) -> Iterator[None]:
    """Installed after the server has started: it is found while it runs."""
    add(cluster, "knative-crds")
    harness.kubectl("create", "namespace", "knative-serving")
    switch(harness, "enabled")
    try:
        yield
    finally:
        harness.delete_all()
        harness.kubectl("delete", "namespace", "knative-serving", "--wait=false")
        drop(cluster, "knative-crds")


def switch(harness: ClusterHarness, value: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-features", "namespace": "knative-serving"},
        "data": dict.fromkeys(FEATURES, value),
    }
    assert harness.kubectl("apply", "-f", "-", stdin=json.dumps(body)).returncode == 0


def serve(harness: ClusterHarness, name: str, **spec: Any) -> str:
    given = harness.spec(gpus=1) | {"servingPort": {"container": 8000}, "probes": probe()}
    return harness.submit("inference", name, given | spec)


def probe() -> dict[str, Any]:
    return {"readiness": {"handler": {"httpGet": {"port": 8000, "path": "/"}}}}


def service(harness: ClusterHarness) -> dict[str, Any]:
    found: dict[str, Any] = until(lambda: next(iter(harness.objects(SERVICES)), None), "Knative's Service", PATIENCE)
    return found


def play_revision(harness: ClusterHarness, number: int, replicas: int = 1) -> str:
    """What Knative makes of the Service as it is now: a Deployment with the template's labels."""
    body = service(harness)
    template = body["spec"]["template"]
    name = f"{body['metadata']['name']}-{number:05d}-deployment"
    labels = template["metadata"]["labels"] | {"app": name}
    pod = {name: template["spec"][name] for name in ("schedulerName", "priorityClassName", "containers", "affinity")}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": harness.namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    made = harness.kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
    assert made.returncode == 0, made.stderr
    return name


def play_condition(harness: ClusterHarness, status: str, reason: str, message: str) -> None:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
    change = json.dumps({"status": {"conditions": [ready]}})
    name = service(harness)["metadata"]["name"]
    words = ["patch", SERVICES, name, "-n", harness.namespace, "--subresource=status", "--type=merge", "-p", change]
    done = harness.kubectl(*words)
    assert done.returncode == 0, done.stderr


def until_words(harness: ClusterHarness, workload: str, words: str) -> None:
    until(lambda: words in harness.server.message(workload), words, PATIENCE)


def test_an_inference_is_knatives_service_and_follows_its_numbers(harness: ClusterHarness) -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 4, "metric": "concurrency", "metricThreshold": 5}
    workload = serve(harness, "model", autoscaling=bounds)
    body = service(harness)
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/max-scale"] == "4"
    assert body["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local"
    assert harness.names("deployments") == []
    deployment = play_revision(harness, 1)
    harness.until_phase(workload, "Running")
    until_words(harness, workload, "1 of 1 pod ready")
    harness.kubectl("scale", "deployment", deployment, "-n", harness.namespace, "--replicas=3")
    until_words(harness, workload, "3 of 3 pods ready")
    harness.kubectl("scale", "deployment", deployment, "-n", harness.namespace, "--replicas=1")
    until_words(harness, workload, "1 of 1 pod ready")
    assert service(harness)["metadata"]["generation"] == body["metadata"]["generation"], "nothing was written"
    harness.act("delete", workload, "inference")
    until(lambda: harness.objects(SERVICES) == [], "the Service's end", PATIENCE)


def test_a_change_is_the_services_new_template(harness: ClusterHarness) -> None:
    workload = serve(harness, "changing")
    before = play_revision(harness, 1)
    harness.until_phase(workload, "Running")
    change = {"spec": {"environmentVariables": [{"name": "NEW", "value": "1"}]}}
    answer = harness.server.call("PATCH", f"/api/v1/workloads/inferences/{workload}", change)
    assert answer.status == 202, answer
    until(lambda: role(harness) == "predictor.at.2", "the new template", PATIENCE)
    play_revision(harness, 2)
    until(lambda: "revision 2" not in harness.server.message(workload), "the new revision", PATIENCE)
    harness.kubectl("delete", "deployment", before, "-n", harness.namespace)
    harness.until_phase(workload, "Running")
    until_words(harness, workload, "1 of 1 pod ready")
    assert role(harness) == "predictor.at.2"


def role(harness: ClusterHarness) -> str:
    return str(service(harness)["spec"]["template"]["metadata"]["labels"]["fairlead/role"])


def test_what_knative_says_is_shown(harness: ClusterHarness) -> None:
    workload = serve(harness, "stuck")
    play_condition(harness, "False", "RevisionMissing", "the image has no such name")
    until_words(harness, workload, "Knative: the image has no such name")
    assert harness.server.phase(workload) == "Pending"


@pytest.mark.parametrize(
    "spec",
    [{"minReplicas": 0, "maxReplicas": 1}, {"maxReplicas": 2, "metric": "latency", "metricThreshold": 5}],
    ids=["may sleep", "latency"],
)
def test_what_knative_cannot_do_is_a_deployment(harness: ClusterHarness, spec: dict[str, Any]) -> None:
    serve(harness, "ours", autoscaling=spec)
    until(lambda: harness.names("deployments") != [], "a Deployment", PATIENCE)
    assert harness.objects(SERVICES) == []


def test_a_knative_that_takes_no_pods_of_ours_is_not_used(harness: ClusterHarness) -> None:
    switch(harness, "disabled")
    try:
        serve(harness, "without")
        until(lambda: harness.names("deployments") != [], "a Deployment", PATIENCE)
        assert harness.objects(SERVICES) == []
    finally:
        switch(harness, "enabled")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("inference-service/*.knative.json")), ids=lambda path: path.name)
def test_golden_services_are_accepted(harness: ClusterHarness, path: Path) -> None:
    for body in json.loads(path.read_bytes()):
        body["metadata"]["namespace"] = harness.namespace
        done = harness.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
        assert done.returncode == 0, done.stderr
