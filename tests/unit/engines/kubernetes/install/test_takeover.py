"""Taking workloads of a Run:ai over: what is planned for each object and namespace."""

import msgspec
import pytest

from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.engines.kubernetes.install.takeover import ADOPTED_FROM, Original, plan_copy, plan_namespaces

OURS = Resource("workloads.fairlead.dev/v2alpha1", "TrainingWorkload", "trainingworkloads")
PATH = "/apis/workloads.fairlead.dev/v2alpha1/namespaces/runai-team/trainingworkloads"


def original(spec: dict[str, object], **metadata: object) -> Original:
    whole = {"name": "fit", "namespace": "runai-team", "uid": "u1", **metadata}
    return msgspec.convert({"metadata": whole, "spec": spec}, Original)


IMAGE: dict[str, object] = {"name": {"value": "fit"}, "image": {"value": "busybox"}}


def test_a_copy_has_what_its_user_wrote_and_waits_for_the_end_of_the_original() -> None:
    spec = {**IMAGE, "gpu": {"value": 0.5}, "userId": {"value": "ann"}, "ingressUrl": {"value": "http://x"}}
    notes = {"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    step = plan_copy(OURS, original(spec, labels={"a": "b"}, annotations=notes), set(), starts=False)
    assert (step.method, step.path, step.what) == ("POST", PATH, "is copied, suspended")
    assert step.body["apiVersion"] == OURS.api
    assert step.body["metadata"] == {
        "name": "fit",
        "namespace": "runai-team",
        "labels": {"a": "b"},
        "annotations": {"team": "a", ADOPTED_FROM: "u1"},
    }
    assert step.body["spec"] == {**IMAGE, "gpu": {"value": 0.5}, "active": {"value": False}}


@pytest.mark.parametrize(
    ("spec", "starts", "want"),
    [
        ({**IMAGE, "active": {"value": False}}, False, "is copied"),
        (IMAGE, True, "is copied"),
        ({"name": {"value": "fit"}, "baseWorkload": "shared"}, True, "is copied"),
    ],
    ids=["suspended before", "started", "from a template"],
)
def test_a_copy_keeps_whether_it_is_suspended(spec: dict[str, object], starts: bool, want: str) -> None:
    step = plan_copy(OURS, original(spec), set(), starts=starts)
    assert (step.what, step.body["spec"]) == (want, spec)


def test_what_cannot_be_read_is_refused_with_its_reason() -> None:
    step = plan_copy(OURS, original({**IMAGE, "gpus": {"value": 1}}), set(), starts=False)
    assert step.is_refused
    assert not step.method
    assert "spec.gpus is not a field" in step.what


def test_what_exists_or_is_being_deleted_is_left_alone() -> None:
    assert plan_copy(OURS, original(IMAGE), {("runai-team", "fit")}, starts=False).what == "exists already"
    leaving = original(IMAGE, deletionTimestamp="2026-01-01T00:00:00Z")
    assert "is being deleted" in plan_copy(OURS, leaving, set(), starts=False).what


def test_namespaces_are_handed_over_first_and_only_if_they_have_no_owner() -> None:
    step = plan_copy(OURS, original(IMAGE), set(), starts=False)
    handed, copied = plan_namespaces([step], {"runai-team": ""}, "mine")
    assert (handed.method, handed.path) == ("PATCH", "/api/v1/namespaces/runai-team")
    assert handed.body == {"metadata": {"labels": {"fairlead/cluster": "mine"}}}
    assert copied == step
    assert plan_namespaces([step], {"runai-team": "mine"}, "mine") == [step]
    [refused] = plan_namespaces([step], {"runai-team": "other"}, "mine")
    assert refused.is_refused
    assert not refused.method
    [elsewhere] = plan_namespaces([msgspec.structs.replace(step, namespace="default")], {"default": ""}, "mine")
    assert elsewhere.is_refused
