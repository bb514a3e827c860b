"""Policies where workloads change or are made from something else: edits, templates, assets, plans."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import ApiServer

PROJECT = {"scope": "project", "projectId": 1}
TYPES = ("trainings", "inferences", "distributed-inferences")
MAXIMUM = {"compute": {"cpuCoreRequest": {"max": 1}}}


def write(api: ApiServer, type: str, **policy: Any) -> None:
    answer = api.call("PUT", f"/api/v2/policy/{type}", {"meta": {"name": "p", **PROJECT}, "policy": policy})
    assert answer.status == 200, answer.body


@pytest.fixture(autouse=True)
def no_policies_after(api: ApiServer) -> Iterator[None]:
    yield
    for type in TYPES:
        api.call("DELETE", f"/api/v2/policy/{type}?scope=project&projectId=1")


def submit(api: ApiServer, kind: str, name: str, spec: dict[str, Any], **more: Any) -> Any:
    body = {"name": name, "projectId": "1", "clusterId": api.cluster_id, "spec": spec, **more}
    return api.call("POST", f"/api/v1/workloads/{kind}", body)


SERVICE = {"image": "x", "servingPort": {"container": 8000}}


def test_an_edit_gets_defaults_and_is_refused_by_rules(api: ApiServer) -> None:
    made = submit(api, "inferences", "edited", SERVICE)
    path = f"/api/v1/workloads/inferences/{made.json['workloadId']}"
    write(
        api,
        "inferences",
        defaults={"priorityClass": "low", "environmentVariables": {"instances": [{"name": "TEAM", "value": "a"}]}},
        rules={"image": {"options": [{"value": "x"}, {"value": "y"}]}},
    )
    refused = api.call("PATCH", path, {"spec": {"image": "z"}})
    assert refused.status == 400
    assert "image: z is not allowed; allowed are x, y (policy of project 1)" in refused.json["details"]
    before = api.call("GET", f"/api/v1/workloads/{made.json['workloadId']}").json["priorityClassName"]
    changed = api.call("PATCH", path, {"spec": {"image": "y"}})
    assert changed.status == 202
    stored = api.call("GET", path).json["spec"]
    assert stored["environmentVariables"] == [{"name": "TEAM", "value": "a"}]
    row = api.call("GET", f"/api/v1/workloads/{made.json['workloadId']}").json
    # What is stored and what follows from it agree.
    assert row["priorityClassName"] == stored.get("priorityClass", before)


def test_an_edit_touches_nothing_that_cannot_change(api: ApiServer) -> None:
    leader = {"image": "x"}
    made = submit(api, "distributed-inferences", "kept", {"leader": leader, "workers": 0, "replicas": 1})
    assert made.status == 202, made.body
    write(api, "distributed-inferences", defaults={"leader": {"workingDir": "/w"}, "priorityClass": "low"})
    path = f"/api/v1/workloads/distributed-inferences/{made.json['workloadId']}"
    assert api.call("PATCH", path, {"spec": {"replicas": 2}}).status == 202
    stored = api.call("GET", path).json["spec"]
    assert (stored["replicas"], stored["leader"], stored.get("priorityClass")) == (2, leader, None)
    assert api.call("GET", f"/api/v1/workloads/{made.json['workloadId']}").json["priorityClassName"] == "very-high"


def test_templates_say_whether_they_comply(api: ApiServer) -> None:
    write(api, "trainings", rules={**MAXIMUM, "args": {"required": True}})
    base = "/api/v1/workload-templates"
    for name, cpus in (("fits", 1), ("too-big", 2)):
        meta = {"name": name, "scopeType": "tenant"}
        spec = {"image": "x", "compute": {"cpuCoreRequest": cpus}}
        assert api.call("POST", f"{base}/trainings", {"meta": meta, "spec": spec}).status == 202
    for path in (base, f"{base}/trainings"):
        listed = api.call("GET", f"{path}?complyToProject=1")
        assert find_disagreements("get", path, 200, listed.json) == []
        found = {one["meta"]["name"]: one["complianceIssues"] for one in listed.json["entries"]}
        assert found["fits"] == []
        assert [(issue["field"], issue["rule"]) for issue in found["too-big"]] == [("compute.cpuCoreRequest", "max")]
    elsewhere = {one["meta"]["name"]: one["complianceIssues"] for one in api.call("GET", base).json["entries"]}
    assert elsewhere["too-big"] == [], "the policy of a project is not that of the whole installation"


def test_assets_say_whether_they_comply(api: ApiServer) -> None:
    write(api, "trainings", rules=MAXIMUM)
    path = "/api/v1/asset/compute"
    body = {"meta": {"name": "two", "scope": "tenant"}, "spec": {"cpuCoreRequest": 2}}
    assert api.call("POST", path, body).status == 202
    query = f"{path}?complyToProject=1&complyToWorkloadType="
    training = api.call("GET", f"{query}Training")
    assert find_disagreements("get", path, 200, training.json) == []
    [two] = [one for one in training.json["entries"] if one["meta"]["name"] == "two"]
    assert (two["compliance"]["compliance"], two["compliance"]["imposed"]) == (False, False)
    assert two["compliance"]["reason"][0]["rule"] == "max"
    [two] = [one for one in api.call("GET", f"{query}Workspace").json["entries"] if one["meta"]["name"] == "two"]
    assert two["compliance"] == {"compliance": True, "imposed": False, "reason": []}


def test_what_a_template_brings_is_checked(api: ApiServer) -> None:
    meta, spec = {"name": "checked", "scopeType": "tenant"}, {"image": "x", "compute": {"cpuCoreRequest": 2}}
    api.call("POST", "/api/v1/workload-templates/trainings", {"meta": meta, "spec": spec})
    entries = api.call("GET", "/api/v1/workload-templates").json["entries"]
    [id] = [one["meta"]["id"] for one in entries if one["meta"]["name"] == "checked"]
    write(api, "trainings", rules=MAXIMUM)
    refused = submit(api, "trainings", "by-template", {}, templateId=id)
    assert [issue["rule"] for issue in refused.json["complianceIssues"]] == ["max"]


def test_a_plan_says_what_the_policy_sets(api: ApiServer) -> None:
    write(api, "trainings", defaults={"backoffLimit": 2})
    body = {"name": "planned", "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x"}}
    plan = api.call("POST", "/api/v1/workloads/trainings?dryRun=plan", body)
    assert "Set by policy: backoffLimit = 2" in plan.json["remarks"]
