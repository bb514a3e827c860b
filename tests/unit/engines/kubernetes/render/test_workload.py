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
from tests import builders
from tests.unit.engines.golden_place import GOLDEN_PLACE

FOLDER = Path(__file__).parents[4] / "golden"
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
    podset = builders.podset()
    container = msgspec.structs.replace(podset.container, args=(word,))
    found = render_objects(GOLDEN_PLACE, (msgspec.structs.replace(podset, container=container),))
    assert found.runners[0]["spec"]["template"]["spec"]["containers"][0]["args"] == [want]


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
