"""The older page's dialect: how it is recognised, what is forgiven, and what comes back."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.admission.admit import admit
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from fairlead.kinds.kind import read_stored_spec
from fairlead.model.errors import Invalid

KIND = KINDS["training"]
PAGE = (Path(__file__).parents[3] / "golden/training/older-page.request.json").read_bytes()
CLUSTER = "71f69d83-ba66-4822-adf5-55ce55efd210"


def read(spec: dict[str, Any], **members: Any) -> Any:
    request = {"name": "t", "projectId": "1", "clusterId": CLUSTER, "spec": {"image": "x", **spec}, **members}
    return read_submission(KIND, json.dumps(request).encode())


def quantity(value: Any) -> dict[str, Any]:
    return {"compute": {"extendedResources": [{"resource": "a/b", "quantity": value}]}}


@pytest.mark.parametrize(
    ("spec", "members", "want"),
    [
        pytest.param({}, {}, "rest", id="present"),
        pytest.param({}, {"projectId": 7}, "rest-older", id="number of a project"),
        pytest.param(quantity("2"), {}, "rest", id="quantity as text"),
        pytest.param(quantity(2), {}, "rest-older", id="quantity as number"),
        pytest.param({"compute": {"migProfile": "1g.5gb"}}, {}, "rest-older", id="MIG profile"),
        pytest.param({"args": "--migProfile"}, {}, "rest", id="the word alone"),
        pytest.param({"compute": {"migProfile": None}}, {}, "rest", id="no MIG profile"),
    ],
)
def test_dialect(spec: dict[str, Any], members: dict[str, Any], want: str) -> None:
    assert read(spec, **members).dialect == want


def test_the_page_is_accepted_and_says_what_was_done() -> None:
    got = read_submission(KIND, PAGE)
    admit(KIND, got)
    assert {field for field, _ in got.remarks} == {
        "spec.probes.readiness.handler.httpGet.path",
        "spec.environmentVariables[0].secret.name",
        "spec.environmentVariables[0]",
        "spec.compute.gpuPortionRequest",
        "spec.compute.gpuMemoryRequest",
        "spec.compute.gpuMemoryLimit",
        "spec.tolerations[0].seconds",
        "spec.storage.git[0].repository",
        "spec.storage.configMapVolume[0].mountPath",
        "spec.storage.secretVolume[0].mountPath",
        "spec.exposedUrls[0]",
    }


def test_the_page_comes_back_as_sent_in_the_present_types() -> None:
    got = read_submission(KIND, PAGE)
    want = json.loads(PAGE)
    want["spec"]["compute"]["extendedResources"][0]["quantity"] = "2"
    raw = msgspec.json.encode(got.spec)
    assert json.loads(raw) == want["spec"]
    assert got.project_id == "1"
    assert read_stored_spec(KIND, raw) == got.spec


def test_the_same_contradictions_are_refused_in_the_present_dialect() -> None:
    request = json.loads(PAGE)
    request["projectId"] = "1"
    request["spec"]["compute"]["extendedResources"][0]["quantity"] = "2"
    del request["spec"]["compute"]["migProfile"]
    with pytest.raises(Invalid) as caught:
        read_submission(KIND, json.dumps(request).encode())
    assert {issue.field for issue in caught.value.issues} == {
        "spec.probes.readiness.handler.httpGet.path",
        "spec.environmentVariables[0].secret.name",
        "spec.environmentVariables[0]",
        "spec.compute.gpuMemoryRequest",
        "spec.compute.gpuMemoryLimit",
        "spec.tolerations[0].seconds",
        "spec.storage.git[0].repository",
        "spec.storage.configMapVolume[0].mountPath",
        "spec.storage.secretVolume[0].mountPath",
        "spec.exposedUrls[0]",
    }


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"image": None}, "spec.image", id="no image"),
        pytest.param({"args": 1}, "spec.args", id="wrong type"),
        pytest.param({"nonsense": 1}, "spec.nonsense", id="unknown property"),
        pytest.param({"compute": {"cpuMemoryRequest": "much"}}, "spec.compute.cpuMemoryRequest", id="no quantity"),
        pytest.param({"parallelism": 2}, "spec.parallelism", id="parallelism above completions"),
    ],
)
def test_the_rest_is_refused_in_the_older_dialect_too(spec: dict[str, Any], want: str) -> None:
    with pytest.raises(Invalid) as caught:
        read(spec, projectId=7)
    assert want in {issue.field for issue in caught.value.issues}


def test_request_type_of_its_own() -> None:
    got = read({"compute": {"gpuRequestType": "migProfile", "migProfile": "2g.10gb"}})
    [podset] = KIND.podsets(got.spec)
    assert podset.request.extended == {"nvidia.com/mig-2g.10gb": 1}
