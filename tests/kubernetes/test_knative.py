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
from tests.kubernetes.room import PATIENCE, Room

pytestmark = pytest.mark.kubernetes
SERVICES = "services.serving.knative.dev"
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module", autouse=True)
def knative(cluster: clusters.Cluster, room: Room) -> Iterator[None]:
    """Installed after the server has started: it is found while it runs."""
    add(cluster, "knative-crds")
    room.kubectl("create", "namespace", "knative-serving")
    switch(room, "enabled")
    try:
        yield
    finally:
        room.delete_all()
        room.kubectl("delete", "namespace", "knative-serving", "--wait=false")
        drop(cluster, "knative-crds")


def switch(room: Room, value: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-features", "namespace": "knative-serving"},
        "data": dict.fromkeys(FEATURES, value),
    }
    assert room.kubectl("apply", "-f", "-", stdin=json.dumps(body)).returncode == 0


def serve(room: Room, name: str, **spec: Any) -> str:
    given = room.spec(gpus=1) | {"servingPort": {"container": 8000}, "probes": probe()}
    return room.submit("inference", name, given | spec)


def probe() -> dict[str, Any]:
    return {"readiness": {"handler": {"httpGet": {"port": 8000, "path": "/"}}}}


def service(room: Room) -> dict[str, Any]:
    found: dict[str, Any] = until(lambda: next(iter(room.objects(SERVICES)), None), "Knative's Service", PATIENCE)
    return found


def play_revision(room: Room, number: int, replicas: int = 1) -> str:
    """What Knative makes of the Service as it is now: a Deployment with the template's labels."""
    body = service(room)
    template = body["spec"]["template"]
    name = f"{body['metadata']['name']}-{number:05d}-deployment"
    labels = template["metadata"]["labels"] | {"app": name}
    pod = {name: template["spec"][name] for name in ("schedulerName", "priorityClassName", "containers", "affinity")}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": room.namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    made = room.kubectl("apply", "-f", "-", stdin=json.dumps(deployment))
    assert made.returncode == 0, made.stderr
    return name


def play_condition(room: Room, status: str, reason: str, message: str) -> None:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
    change = json.dumps({"status": {"conditions": [ready]}})
    name = service(room)["metadata"]["name"]
    words = ["patch", SERVICES, name, "-n", room.namespace, "--subresource=status", "--type=merge", "-p", change]
    done = room.kubectl(*words)
    assert done.returncode == 0, done.stderr


def until_words(room: Room, workload: str, words: str) -> None:
    until(lambda: words in room.server.message(workload), words, PATIENCE)


def test_an_inference_is_knatives_service_and_follows_its_numbers(room: Room) -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 4, "metric": "concurrency", "metricThreshold": 5}
    workload = serve(room, "model", autoscaling=bounds)
    body = service(room)
    annotations = body["spec"]["template"]["metadata"]["annotations"]
    assert annotations["autoscaling.knative.dev/max-scale"] == "4"
    assert body["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local"
    assert room.names("deployments") == []
    deployment = play_revision(room, 1)
    room.until_phase(workload, "Running")
    until_words(room, workload, "1 of 1 pod ready")
    room.kubectl("scale", "deployment", deployment, "-n", room.namespace, "--replicas=3")
    until_words(room, workload, "3 of 3 pods ready")
    room.kubectl("scale", "deployment", deployment, "-n", room.namespace, "--replicas=1")
    until_words(room, workload, "1 of 1 pod ready")
    assert service(room)["metadata"]["generation"] == body["metadata"]["generation"], "nothing was written"
    room.act("delete", workload, "inference")
    until(lambda: room.objects(SERVICES) == [], "the Service's end", PATIENCE)


def test_a_change_is_the_services_new_template(room: Room) -> None:
    workload = serve(room, "changing")
    before = play_revision(room, 1)
    room.until_phase(workload, "Running")
    change = {"spec": {"environmentVariables": [{"name": "NEW", "value": "1"}]}}
    answer = room.server.call("PATCH", f"/api/v1/workloads/inferences/{workload}", change)
    assert answer.status == 202, answer
    until(lambda: role(room) == "predictor.at.2", "the new template", PATIENCE)
    play_revision(room, 2)
    until(lambda: "revision 2" not in room.server.message(workload), "the new revision", PATIENCE)
    room.kubectl("delete", "deployment", before, "-n", room.namespace)
    room.until_phase(workload, "Running")
    until_words(room, workload, "1 of 1 pod ready")
    assert role(room) == "predictor.at.2"


def role(room: Room) -> str:
    return str(service(room)["spec"]["template"]["metadata"]["labels"]["fairlead/role"])


def test_what_knative_says_is_shown(room: Room) -> None:
    workload = serve(room, "stuck")
    play_condition(room, "False", "RevisionMissing", "the image has no such name")
    until_words(room, workload, "Knative: the image has no such name")
    assert room.server.phase(workload) == "Pending"


@pytest.mark.parametrize(
    "spec",
    [{"minReplicas": 0, "maxReplicas": 1}, {"maxReplicas": 2, "metric": "latency", "metricThreshold": 5}],
    ids=["may sleep", "latency"],
)
def test_what_knative_cannot_do_is_a_deployment(room: Room, spec: dict[str, Any]) -> None:
    serve(room, "ours", autoscaling=spec)
    until(lambda: room.names("deployments") != [], "a Deployment", PATIENCE)
    assert room.objects(SERVICES) == []


def test_a_knative_that_takes_no_pods_of_ours_is_not_used(room: Room) -> None:
    switch(room, "disabled")
    try:
        serve(room, "without")
        until(lambda: room.names("deployments") != [], "a Deployment", PATIENCE)
        assert room.objects(SERVICES) == []
    finally:
        switch(room, "enabled")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("inference-service/*.knative.json")), ids=lambda path: path.name)
def test_golden_services_are_accepted(room: Room, path: Path) -> None:
    for body in json.loads(path.read_bytes()):
        body["metadata"]["namespace"] = room.namespace
        done = room.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=json.dumps(body))
        assert done.returncode == 0, done.stderr
