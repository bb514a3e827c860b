"""Each golden request, and the objects of Kubernetes that it becomes."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.engines.kubernetes.render.context import Owner
from fairlead.engines.kubernetes.render.workload import render_objects
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import EnvironmentVariable
from tests import builders
from tests.unit.engines.golden_place import GOLDEN_PLACE

FOLDER = Path(__file__).parents[4] / "golden"
CLUSTER = "71f69d83-ba66-4822-adf5-55ce55efd210"
REQUESTS = sorted(FOLDER.glob("*/*.request.json"))


def rendered(path: Path) -> list[dict[str, Any]]:
    kind = KINDS[path.parent.name]
    podsets = kind.podsets(read_submission(kind, path.read_bytes()).spec)
    found = render_objects(GOLDEN_PLACE, podsets)
    objects: list[dict[str, Any]] = json.loads(msgspec.json.encode(found.objects + found.pods(GOLDEN_PLACE)))
    return objects


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: f"{path.parent.name}/{path.name.split('.')[0]}")
def test_request_becomes_these_objects(path: Path) -> None:
    want = path.with_name(path.name.replace(".request.", ".kubernetes."))
    assert rendered(path) == json.loads(want.read_bytes())


def test_every_object_says_whose_it_is() -> None:
    for path in REQUESTS:
        for body in rendered(path):
            labels = body["metadata"]["labels"]
            assert labels["fairlead/workload-id"] == "w", f"{path.name}: {body['kind']}"
            assert labels["fairlead/cluster"] == "c"


def test_what_came_from_an_object_goes_with_it() -> None:
    owner = Owner("run.ai/v2alpha1", "Thing", "mine", "uid-1")
    found = render_objects(msgspec.structs.replace(GOLDEN_PLACE, owner=owner), (builders.podset(),))
    [reference] = found.runners[0]["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("Thing", "uid-1", True)


@pytest.mark.parametrize(
    ("word", "want"),
    [
        ("${RUNAI_JOB_NAME}/x", "$(RUNAI_JOB_NAME)/x"),
        ("$(RUNAI_JOB_NAME)", "$(RUNAI_JOB_NAME)"),
        ("${HOME}", "${HOME}"),
        ("${RUNAI_JOB_NAME:-y}", "${RUNAI_JOB_NAME:-y}"),
        ("kill -9 $$", "kill -9 $$$$"),
        ("$$(date)", "$$(date)"),
    ],
    ids=["braces", "round", "not ours to fill in", "the shell's", "two dollars", "escaped"],
)
def test_variables_in_arguments(word: str, want: str) -> None:
    assert container_with(args=(word,))["args"] == [want]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("$(A)/x", "$(A)/x"),
        ("$$(A)", "$$(A)"),
        ("pa$$word", "pa$$$$word"),
        ("${A} $${A}", "${A} $$$${A}"),
        ("$$$(A)", "$$$$$(A)"),
    ],
    ids=["a variable before it", "escaped", "two dollars", "braces mean nothing", "two dollars before a variable"],
)
def test_variables_in_values_of_variables(value: str, want: str) -> None:
    """Kubernetes expands them, and turns `$$` into one dollar everywhere."""
    environment = (EnvironmentVariable(name="B", value=value),)
    assert container_with(environment=environment)["env"][0] == {"name": "B", "value": want}


def container_with(**members: Any) -> dict[str, Any]:
    podset = builders.podset()
    container = msgspec.structs.replace(podset.container, **members)
    found = render_objects(GOLDEN_PLACE, (msgspec.structs.replace(podset, container=container),))
    rendered: dict[str, Any] = found.runners[0]["spec"]["template"]["spec"]["containers"][0]
    return rendered


def template_of(**spec: Any) -> dict[str, Any]:
    sent = {"name": "t", "projectId": "1", "clusterId": CLUSTER, "spec": {"image": "x", **spec}}
    podsets = KINDS["training"].podsets(read_submission(KINDS["training"], json.dumps(sent).encode()).spec)
    rendered: dict[str, Any] = render_objects(GOLDEN_PLACE, podsets).runners[0]["spec"]["template"]
    return rendered


@pytest.mark.parametrize(
    ("reference", "want"),
    [
        ({}, ["SshKey", "ssh-privatekey", "PrivateKey", "sshKey", "key"]),
        ({"secretKeyOfPassword": "deploy"}, ["deploy"]),
    ],
    ids=["a known name", "a name of its own"],
)
def test_the_key_of_a_repository(reference: dict[str, str], want: list[str]) -> None:
    secret = {"name": "login", "authenticationMethod": "ssh-key", **reference}
    git = [{"repository": "ssh://git@a/b", "path": "/code", "secretRef": secret}]
    template = template_of(storage={"git": git})
    environment = template["spec"]["initContainers"][0]["env"]
    sources = [each["valueFrom"]["secretKeyRef"] for each in environment if "valueFrom" in each]
    assert [source["key"] for source in sources] == want


def test_labels_of_a_job_are_its_own() -> None:
    """Kubernetes refuses a Job whose template has other values of them."""
    names = ("job-name", "controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid")
    labels = [{"name": name, "value": "mine"} for name in (*names, "team")]
    rendered = template_of(labels=labels)["metadata"]["labels"]
    assert rendered["team"] == "mine"
    assert not set(names) & set(rendered)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param({}, [[("run.ai/type", "In", ["a100"])]], id="none of its own"),
        pytest.param({"nodeType": "a100"}, None, id="its own"),
        pytest.param(
            {
                "nodeAffinityRequired": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]
                }
            },
            [[("z", "Exists", None), ("run.ai/type", "In", ["a100"])]],
            id="beside its affinity",
        ),
    ],
)
def test_node_types_of_the_project_apply_to_pods_without_one(fields: dict[str, Any], want: Any) -> None:
    podset = builders.podset()
    container = msgspec.structs.replace(podset.container, fields=builders.container_fields(fields))
    place = msgspec.structs.replace(GOLDEN_PLACE, node_types=("a100",))
    made = render_objects(place, (msgspec.structs.replace(podset, container=container),))
    affinity = made.runners[0]["spec"]["template"]["spec"].get("affinity")
    if want is None:
        assert affinity is None
        return
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    given = [[(one["key"], one["operator"], one.get("values")) for one in term["matchExpressions"]] for term in terms]
    assert given == want
