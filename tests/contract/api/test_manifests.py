"""Templates kept as workload YAML, what they inherit, and workloads written in every dialect."""

import json
from typing import Any

import pytest

from tests.contract.api.api_server import Answer, ApiServer

STORE = "/api/v1/workload-templates/manifests"
TEMPLATES = "/api/v1/workload-templates"
CREATE = "/api/v1/workloads/trainings"


def document(name: str, spec: dict[str, Any], namespace: str = "runai-default", **more: Any) -> str:
    head = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload"}
    metadata = {"name": name, "namespace": namespace}
    return json.dumps({**head, **more, "metadata": metadata, "spec": {"usage": "Template", **spec}})


def store(api: ApiServer, name: str, spec: dict[str, Any], namespace: str = "runai-default", **more: Any) -> Answer:
    return api.call("PUT", STORE, {"manifest": document(name, spec, namespace, **more)})


def variables(**values: str) -> dict[str, Any]:
    return {"environment": {"items": {name: {"value": value} for name, value in values.items()}}}


def submit(api: ApiServer, name: str, template: str, spec: dict[str, Any] | None = None) -> Answer:
    body = {"name": name, "projectId": "1", "clusterId": api.cluster_id, "templateId": template, "spec": spec or {}}
    return api.call("POST", CREATE, body)


def test_a_document_is_kept_changed_and_shown(api: ApiServer) -> None:
    first = store(api, "kept", {"image": {"value": "a"}})
    assert (first.status, first.json["change"]) == (200, "created"), first
    assert store(api, "kept", {"image": {"value": "a"}}).json["change"] == "unchanged"
    again = store(api, "kept", {"image": {"value": "b"}})
    assert again.json == {"id": first.json["id"], "name": "kept", "change": "changed"}
    [row] = api.get(f"{TEMPLATES}?filterBy=name==kept")["entries"]
    assert (row["meta"]["workloadType"], row["meta"]["scopeType"], row["spec"]) == (
        "Training",
        "project",
        {"image": "b"},
    )
    shown = api.get(f"{TEMPLATES}/{first.json['id']}/manifest")
    assert shown["manifest"] == document("kept", {"image": {"value": "b"}})


def test_what_is_inherited_is_merged_item_by_item(api: ApiServer) -> None:
    store(api, "company", {"image": {"value": "i"}, **variables(A="all", B="all", C="all")}, "runai")
    store(api, "team", {"baseWorkload": "company", **variables(B="team", C="team")})
    middle = store(api, "mine", {"baseWorkload": "team", **variables(C="mine")})
    made = submit(api, "inherits", middle.json["id"], {"environmentVariables": [{"name": "D", "value": "own"}]})
    assert made.status == 202, made
    spec = made.json["spec"]
    found = {one["name"]: one["value"] for one in spec["environmentVariables"]}
    assert (spec["image"], found) == ("i", {"A": "all", "B": "team", "C": "mine", "D": "own"})


def test_a_projects_template_comes_before_everybodys(api: ApiServer) -> None:
    store(api, "twice", {"image": {"value": "everybody"}}, "runai")
    store(api, "twice", {"image": {"value": "own"}})
    near = store(api, "near", {"baseWorkload": "twice"})
    assert submit(api, "near", near.json["id"]).json["spec"]["image"] == "own"
    wide = store(api, "wide", {"baseWorkload": "twice"}, "runai")
    assert submit(api, "wide", wide.json["id"]).json["spec"]["image"] == "everybody"


def test_a_template_of_rest_can_be_a_base(api: ApiServer) -> None:
    meta = {"name": "plain", "scopeType": "project", "scopeId": "1"}
    spec = {"image": "r", "environmentVariables": [{"name": "A", "value": "rest"}]}
    api.call("POST", f"{TEMPLATES}/trainings", {"meta": meta, "spec": spec})
    above = store(api, "above", {"baseWorkload": "plain", **variables(B="yaml")})
    made = submit(api, "above", above.json["id"])
    assert made.json["spec"]["image"] == "r"
    assert {one["name"] for one in made.json["spec"]["environmentVariables"]} == {"A", "B"}


def test_a_change_over_rest_takes_in_what_was_inherited(api: ApiServer) -> None:
    store(api, "far", {"image": {"value": "i"}})
    id = store(api, "close", {"baseWorkload": "far", "cpu": {"value": 1}}).json["id"]
    patched = api.call("PATCH", f"{TEMPLATES}/trainings/{id}", {"spec": {"command": "c"}})
    assert patched.json["spec"] == {"image": "i", "command": "c", "compute": {"cpuCoreRequest": 1}}
    assert api.get(f"{TEMPLATES}/{id}/manifest")["manifest"] == ""


@pytest.mark.parametrize(
    ("name", "spec", "namespace", "want_field", "want_words"),
    [
        pytest.param("x", {"baseWorkload": "nobody"}, "runai-default", "spec.baseWorkload", "no template", id="base"),
        pytest.param(
            "ring-1", {"baseWorkload": "ring-2"}, "runai-default", "spec.baseWorkload", "in a cycle", id="cycle"
        ),
        pytest.param("x", {"imag": {"value": "i"}}, "runai-default", "spec.imag", "image?", id="a mistake"),
        pytest.param("x", {"usage": "Submit"}, "runai-default", "spec.usage", "Template", id="no template"),
        pytest.param("x", {}, "runai-nowhere", "metadata.namespace", "no project", id="no project"),
    ],
)
def test_refusals(
    api: ApiServer, name: str, spec: dict[str, Any], namespace: str, want_field: str, want_words: str
) -> None:
    store(api, "ring-1", {})
    store(api, "ring-2", {"baseWorkload": "ring-1"})
    refused = store(api, name, spec, namespace)
    assert refused.status == 400, refused
    assert want_field in refused.json["details"]
    assert want_words in refused.json["details"]


def test_the_chain_is_shown(api: ApiServer) -> None:
    store(api, "chain-1", {})
    store(api, "chain-2", {"baseWorkload": "chain-1"})
    refused = store(api, "chain-1", {"baseWorkload": "chain-2"})
    assert "runai-default/chain-1 → runai-default/chain-2 → runai-default/chain-1" in refused.json["details"]


def test_a_deleted_base_is_reported_at_submission(api: ApiServer) -> None:
    base = store(api, "leaves", {"image": {"value": "i"}}).json["id"]
    orphan = store(api, "orphan", {"baseWorkload": "leaves"}).json["id"]
    assert api.call("DELETE", f"{TEMPLATES}/trainings/{base}").status == 204
    refused = submit(api, "orphan", orphan)
    assert (refused.status, refused.json["complianceIssues"][0]["field"]) == (400, "spec.baseWorkload")


def test_a_workload_in_every_dialect(api: ApiServer) -> None:
    spec = {"image": "python:3", "command": "python", "compute": {"gpuDevicesRequest": 2}, "category": "Train"}
    body = {"name": "written", "projectId": "1", "clusterId": api.cluster_id, "spec": spec}
    id = api.call("POST", CREATE, body).json["workloadId"]
    path = f"/api/v1/workloads/{id}/as/"
    as_yaml = api.call("GET", f"{path}yaml").body.decode()
    assert "kind: TrainingWorkload" in as_yaml
    assert "# not converted: spec.category:" in as_yaml
    assert "# set by the system: spec.userId: " in as_yaml
    command = api.call("GET", f"{path}command").body.decode()
    assert command.startswith("fairlead training submit written -p default")
    assert json.loads(api.call("GET", f"{path}rest").body)["spec"] == spec
    objects = api.call("GET", f"{path}kubernetes").body.decode()
    assert ("kind: Job\n" in objects, "namespace: runai-default\n" in objects) == (True, True), objects
    assert api.call("GET", f"{path}latin").status == 400
    assert api.call("GET", "/api/v1/workloads/01a1e214-220a-7df2-99bc-b6d69117a650/as/yaml").status == 404


def test_what_a_workload_was_written_as_is_a_condition(api: ApiServer) -> None:
    body = {"name": "legacy", "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "i"}}
    made = api.call("POST", f"{CREATE}?origin=Job", body)
    assert made.status == 202, made
    shown = api.get(f"/api/v1/workloads/{made.json['workloadId']}")
    told = [(one["reason"], one["message"]) for one in shown["conditions"] if one["type"] == "ReadDifferently"]
    assert told == [("kind", "was written as a Job; it runs as a TrainingWorkload")]
    assert api.call("POST", f"{CREATE}?origin=Poem", body | {"name": "poem"}).status == 400
