"""Inference as Knative's Service: the object, and what is read from it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.workload import kinds_for, render_objects
from fairlead.engines.kubernetes.sessions import listening_port
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.revision import Stage
from fairlead.model.spec.fields import build
from tests.unit.engines.golden_place import GOLDEN_PLACE

FOLDER = Path(__file__).parents[4] / "golden" / "inference-service"
REQUESTS = sorted(FOLDER.glob("*.request.json"))
KIND = KINDS["inference-service"]
PLACE = msgspec.structs.replace(
    GOLDEN_PLACE, priority_class="very-high", is_preemptible=False, launch=LaunchChoices(frozenset({"Service"}))
)


def podsets(**spec: Any) -> tuple[PodSet, ...]:
    given = {"image": "x", "servingPort": {"container": 8000}, **spec}
    found: tuple[PodSet, ...] = KIND.podsets(build(KIND.spec, given))
    return found


def service_of(*sets: PodSet) -> dict[str, Any]:
    [body] = render_objects(PLACE, sets).runners
    assert body["apiVersion"] == "serving.knative.dev/v1"
    return body


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.name.split(".")[0])
def test_request_becomes_this_service(path: Path) -> None:
    rendered = render_objects(PLACE, KIND.podsets(read_submission(KIND, path.read_bytes()).spec))
    want = path.with_name(path.name.replace(".request.", ".knative."))
    assert json.loads(msgspec.json.encode(rendered.objects)) == json.loads(want.read_bytes())


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        ({}, True),
        ({"autoscaling": {"minReplicas": 0, "maxReplicas": 1}}, False),
        ({"autoscaling": {"maxReplicas": 2, "metric": "latency", "metricThreshold": 9}}, False),
        ({"autoscaling": {"maxReplicas": 2, "metric": "throughput", "metricThreshold": 9}}, True),
        ({"servingPort": {}}, False),
    ],
    ids=["plain", "may sleep", "latency", "throughput", "no port"],
)
def test_what_knative_cannot_do_stays_with_us(spec: dict[str, Any], want: bool) -> None:
    sets = podsets(**spec)
    assert bool(kinds_for(sets)) == want
    kinds = [body["kind"] for body in render_objects(PLACE, sets).runners]
    assert kinds == (["Service"] if want else ["Deployment"])


def test_without_knative_it_is_a_deployment() -> None:
    rendered = render_objects(msgspec.structs.replace(PLACE, launch=LaunchChoices()), podsets())
    assert [body["kind"] for body in rendered.runners] == ["Deployment"]


def test_its_number_of_pods_is_not_ours_to_write() -> None:
    few, many = (msgspec.structs.replace(podsets()[0], count=count) for count in (1, 5))
    assert service_of(few) == service_of(many)


def test_the_newest_revision_that_is_wanted_is_its_template() -> None:
    [serving] = podsets()
    serving = msgspec.structs.replace(serving, role="predictor@1", revision=1, stage=Stage.SERVING)
    coming = msgspec.structs.replace(serving, role="predictor@2", revision=2, stage=Stage.STARTING)
    labels = service_of(serving, coming)["spec"]["template"]["metadata"]["labels"]
    assert labels["fairlead/role"] == "predictor.at.2"


def service(**ready: str) -> objects.Runner:
    labels = {"fairlead/run": "1", "networking.knative.dev/visibility": "cluster-local"}
    conditions = (msgspec.convert({"type": "Ready", **ready}, objects.Condition),) if ready else ()
    return objects.Runner(
        metadata=objects.Metadata(name="s", labels=labels), status=objects.RunnerStatus(conditions=conditions)
    )


def pod(name: str) -> objects.Pod:
    labels = {"fairlead/run": "1", "fairlead/role": "predictor.at.1"}
    return objects.Pod(metadata=objects.Metadata(name=name, labels=labels), status=objects.PodStatus(phase="Pending"))


def test_the_number_of_pods_is_what_knative_keeps() -> None:
    report = render_report("w", ObservedWorkload(runners=(service(),), pods=(pod("a"), pod("b"))))
    assert report.replicas_wanted == {"predictor@1": 2}
    assert report.waits == ()


def test_what_knative_says_is_the_reason() -> None:
    runner = service(status="False", reason="RevisionFailed", message="no such image")
    [wait] = render_report("w", ObservedWorkload(runners=(runner,))).waits
    assert (wait.code, wait.message) == ("RevisionFailed", "Knative: no such image")
    unknown = render_report("w", ObservedWorkload(runners=(service(status="Unknown", message="on its way"),)))
    assert unknown.waits == ()


def test_requests_go_where_knative_counts_them() -> None:
    main = objects.Container(name="main", ports=(objects.ContainerPort(container_port=8000),))
    counted = objects.Pod(spec=objects.PodSpec(containers=(main, objects.Container(name="queue-proxy"))))
    assert [listening_port(counted, port) for port in (8000, 9000)] == [8012, 9000]
    assert listening_port(objects.Pod(spec=objects.PodSpec(containers=(main,))), 8000) == 8000
