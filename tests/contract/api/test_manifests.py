"""Templates kept as workload YAML, what they inherit, and workloads written in every dialect."""

import json
from typing import Any

import pytest

from tests.contract.api.room import Answer, Room

STORE = "/api/v1/workload-templates/manifests"
TEMPLATES = "/api/v1/workload-templates"
CREATE = "/api/v1/workloads/trainings"


def document(name: str, spec: dict[str, Any], namespace: str = "runai-default", **more: Any) -> str:
    head = {"apiVersion": "run.ai/v2alpha1", "kind": "TrainingWorkload"}
    metadata = {"name": name, "namespace": namespace}
    return json.dumps({**head, **more, "metadata": metadata, "spec": {"usage": "Template", **spec}})


def store(room: Room, name: str, spec: dict[str, Any], namespace: str = "runai-default", **more: Any) -> Answer:
    return room.call("PUT", STORE, {"manifest": document(name, spec, namespace, **more)})


def variables(**values: str) -> dict[str, Any]:
    return {"environment": {"items": {name: {"value": value} for name, value in values.items()}}}


def submit(room: Room, name: str, template: str, spec: dict[str, Any] | None = None) -> Answer:
    body = {"name": name, "projectId": "1", "clusterId": room.cluster_id, "templateId": template, "spec": spec or {}}
    return room.call("POST", CREATE, body)


def test_a_document_is_kept_changed_and_shown(room: Room) -> None:
    first = store(room, "kept", {"image": {"value": "a"}})
    assert (first.status, first.json["change"]) == (200, "created"), first
    assert store(room, "kept", {"image": {"value": "a"}}).json["change"] == "unchanged"
    again = store(room, "kept", {"image": {"value": "b"}})
    assert again.json == {"id": first.json["id"], "name": "kept", "change": "changed"}
    [row] = room.get(f"{TEMPLATES}?filterBy=name==kept")["entries"]
    assert (row["meta"]["workloadType"], row["meta"]["scopeType"], row["spec"]) == (
        "Training",
        "project",
        {"image": "b"},
    )
    shown = room.get(f"{TEMPLATES}/{first.json['id']}/manifest")
    assert shown["manifest"] == document("kept", {"image": {"value": "b"}})


def test_what_is_inherited_is_merged_item_by_item(room: Room) -> None:
    store(room, "company", {"image": {"value": "i"}, **variables(A="all", B="all", C="all")}, "runai")
    store(room, "team", {"baseWorkload": "company", **variables(B="team", C="team")})
    middle = store(room, "mine", {"baseWorkload": "team", **variables(C="mine")})
    made = submit(room, "inherits", middle.json["id"], {"environmentVariables": [{"name": "D", "value": "own"}]})
    assert made.status == 202, made
    spec = made.json["spec"]
    found = {one["name"]: one["value"] for one in spec["environmentVariables"]}
    assert (spec["image"], found) == ("i", {"A": "all", "B": "team", "C": "mine", "D": "own"})


def test_a_projects_template_comes_before_everybodys(room: Room) -> None:
    store(room, "twice", {"image": {"value": "everybody's"}}, "runai")
    store(room, "twice", {"image": {"value": "own"}})
    near = store(room, "near", {"baseWorkload": "twice"})
    assert submit(room, "near", near.json["id"]).json["spec"]["image"] == "own"
    wide = store(room, "wide", {"baseWorkload": "twice"}, "runai")
    assert submit(room, "wide", wide.json["id"]).json["spec"]["image"] == "everybody's"


def test_a_template_of_rest_can_be_a_base(room: Room) -> None:
    meta = {"name": "plain", "scopeType": "project", "scopeId": "1"}
    spec = {"image": "r", "environmentVariables": [{"name": "A", "value": "rest"}]}
    room.call("POST", f"{TEMPLATES}/trainings", {"meta": meta, "spec": spec})
    above = store(room, "above", {"baseWorkload": "plain", **variables(B="yaml")})
    made = submit(room, "above", above.json["id"])
    assert made.json["spec"]["image"] == "r"
    assert {one["name"] for one in made.json["spec"]["environmentVariables"]} == {"A", "B"}


def test_a_change_over_rest_takes_in_what_was_inherited(room: Room) -> None:
    store(room, "far", {"image": {"value": "i"}})
    id = store(room, "close", {"baseWorkload": "far", "cpu": {"value": 1}}).json["id"]
    patched = room.call("PATCH", f"{TEMPLATES}/trainings/{id}", {"spec": {"command": "c"}})
    assert patched.json["spec"] == {"image": "i", "command": "c", "compute": {"cpuCoreRequest": 1}}
    assert room.get(f"{TEMPLATES}/{id}/manifest")["manifest"] == ""


@pytest.mark.parametrize(
    ("name", "spec", "namespace", "want_field", "want_words"),
    [
        pytest.param("x", {"baseWorkload": "nobody"}, "runai-default", "spec.baseWorkload", "no template", id="base"),
        pytest.param("ring-1", {"baseWorkload": "ring-2"}, "runai-default", "spec.baseWorkload", "circle", id="circle"),
        pytest.param("x", {"imag": {"value": "i"}}, "runai-default", "spec.imag", "image?", id="a mistake"),
        pytest.param("x", {"usage": "Submit"}, "runai-default", "spec.usage", "Template", id="no template"),
        pytest.param("x", {}, "runai-nowhere", "metadata.namespace", "no project", id="no project"),
    ],
)
def test_refusals(
    room: Room, name: str, spec: dict[str, Any], namespace: str, want_field: str, want_words: str
) -> None:
    store(room, "ring-1", {})
    store(room, "ring-2", {"baseWorkload": "ring-1"})
    refused = store(room, name, spec, namespace)
    assert refused.status == 400, refused
    assert want_field in refused.json["details"]
    assert want_words in refused.json["details"]


def test_the_chain_is_shown(room: Room) -> None:
    store(room, "chain-1", {})
    store(room, "chain-2", {"baseWorkload": "chain-1"})
    refused = store(room, "chain-1", {"baseWorkload": "chain-2"})
    assert "runai-default/chain-1 → runai-default/chain-2 → runai-default/chain-1" in refused.json["details"]


def test_a_base_that_is_gone_is_told_at_submission(room: Room) -> None:
    base = store(room, "leaves", {"image": {"value": "i"}}).json["id"]
    orphan = store(room, "orphan", {"baseWorkload": "leaves"}).json["id"]
    assert room.call("DELETE", f"{TEMPLATES}/trainings/{base}").status == 204
    refused = submit(room, "orphan", orphan)
    assert (refused.status, refused.json["complianceIssues"][0]["field"]) == (400, "spec.baseWorkload")


def test_a_workload_in_every_dialect(room: Room) -> None:
    spec = {"image": "python:3", "command": "python", "compute": {"gpuDevicesRequest": 2}, "category": "Train"}
    body = {"name": "written", "projectId": "1", "clusterId": room.cluster_id, "spec": spec}
    id = room.call("POST", CREATE, body).json["workloadId"]
    path = f"/api/v1/workloads/{id}/as/"
    as_yaml = room.call("GET", f"{path}yaml").body.decode()
    assert "kind: TrainingWorkload" in as_yaml
    assert "# not carried: spec.category:" in as_yaml
    assert "# set by the system: spec.userId: " in as_yaml
    command = room.call("GET", f"{path}command").body.decode()
    assert command.startswith("fairlead training submit written -p default")
    assert json.loads(room.call("GET", f"{path}rest").body)["spec"] == spec
    assert room.call("GET", f"{path}latin").status == 400
    assert room.call("GET", "/api/v1/workloads/01a1e214-220a-7df2-99bc-b6d69117a650/as/yaml").status == 404


def test_what_a_workload_was_written_as_is_a_condition(room: Room) -> None:
    body = {"name": "legacy", "projectId": "1", "clusterId": room.cluster_id, "spec": {"image": "i"}}
    made = room.call("POST", f"{CREATE}?origin=Job", body)
    assert made.status == 202, made
    shown = room.get(f"/api/v1/workloads/{made.json['workloadId']}")
    told = [(one["reason"], one["message"]) for one in shown["conditions"] if one["type"] == "ReadDifferently"]
    assert told == [("kind", "was written as a Job; it runs as a TrainingWorkload")]
    assert room.call("POST", f"{CREATE}?origin=Poem", body | {"name": "poem"}).status == 400
