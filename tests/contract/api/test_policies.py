"""Policies over REST: written for a scope, merged over scopes, and applied to every submission and change."""

from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

PATH = "/api/v2/policy/trainings"


def write(api: ApiServer, scope: dict[str, Any], policy: dict[str, Any], method: str = "PUT", **more: Any) -> Answer:
    path = more.pop("path", PATH)
    answer = api.call(method, path + more.pop("query", ""), {"meta": {"name": "p", **scope}, "policy": policy, **more})
    if not more and answer.status in (200, 400):
        assert find_disagreements(method.lower(), path, answer.status, answer.json) == []
    return answer


TENANT = {"scope": "tenant"}
PROJECT = {"scope": "project", "projectId": 1}


@pytest.fixture(autouse=True)
def no_policies_after(api: ApiServer) -> Any:
    yield
    for query in ("scope=tenant", "scope=project&projectId=1"):
        api.call("DELETE", f"{PATH}?{query}")


def submit(api: ApiServer, name: str, **spec: Any) -> Answer:
    body = {"name": name, "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x", **spec}}
    return api.call("POST", "/api/v1/workloads/trainings", body)


def test_a_policy_is_written_read_and_deleted(api: ApiServer) -> None:
    written = write(api, PROJECT, {"defaults": {"args": "a"}, "rules": {"image": {"required": True}}})
    assert written.status == 200
    read = api.call("GET", f"{PATH}?scope=project&projectId=1")
    assert read.json == written.json
    assert read.json["policy"] == {
        "defaults": {"args": "a"}, "rules": {"image": {"required": True}}, "imposedAssets": []
    }  # fmt: skip
    assert read.json["effective"]["rules"]["image"]["sourceOfRule"] == {"scope": "project", "projectId": 1}
    listed = api.call("GET", "/api/v2/policy?workloadType=Training&includeFallbackPolicies=true")
    assert [entry["type"] for entry in listed.json["policies"]] == ["training", "fallback"]
    assert find_disagreements("get", "/api/v2/policy", 200, listed.json) == []
    assert api.call("DELETE", f"{PATH}?scope=project&projectId=1").status == 204
    assert api.call("GET", f"{PATH}?scope=project&projectId=1").status == 404


def test_a_change_merges_and_resets(api: ApiServer) -> None:
    write(api, PROJECT, {"rules": {"image": {"required": True}, "backoffLimit": {"max": 3}}})
    changed = write(api, PROJECT, {"rules": {"args": {"required": True}}}, "PATCH", reset=["rules.image"])
    assert changed.json["policy"]["rules"] == {"backoffLimit": {"max": 3}, "args": {"required": True}}
    again = write(api, PROJECT, {}, "PATCH", reset=["rules.nothing"])
    assert again.status == 400


def test_a_policy_that_does_not_fit_is_refused_and_nothing_stays(api: ApiServer) -> None:
    refused = write(api, TENANT, {"rules": {"image": {"min": 1}}, "defaults": {"tty": "yes"}})
    assert refused.status == 400
    assert "policy.rules.image.min" in refused.body.decode()
    assert "policy.defaults.tty" in refused.body.decode()
    assert api.call("GET", f"{PATH}?scope=tenant").status == 404


def test_validate_only_changes_nothing(api: ApiServer) -> None:
    checked = write(api, TENANT, {"rules": {"image": {"required": True}}}, query="?validateOnly=true")
    assert checked.json["effective"]["rules"]["image"] == {"required": True, "sourceOfRule": {"scope": "tenant"}}
    assert api.call("GET", f"{PATH}?scope=tenant").status == 404


def test_a_submission_gets_defaults_and_is_refused_by_rules(api: ApiServer) -> None:
    policy = {"defaults": {"backoffLimit": 2}, "rules": {"compute": {"gpuDevicesRequest": {"min": 3}}}}
    write(api, TENANT, policy)
    refused = submit(api, "policy-a", compute={"gpuDevicesRequest": 1})
    assert refused.status == 400
    assert refused.json["message"] == "The workload request does not comply with the policy set by the administrator"
    [issue] = refused.json["complianceIssues"]
    assert issue == {
        "field": "compute.gpuDevicesRequest",
        "details": "value must be no less than 3 (policy of the whole installation)",
        "rule": "min",
    }
    accepted = submit(api, "policy-b", compute={"gpuDevicesRequest": 3})
    assert accepted.status == 202
    assert accepted.json["spec"]["backoffLimit"] == 2


def test_the_system_policy_holds_until_another_scope_says_otherwise(api: ApiServer) -> None:
    assert submit(api, "grace-a", terminationGracePeriodSeconds=301).json["complianceIssues"][0]["rule"] == "max"
    write(api, PROJECT, {"rules": {"terminationGracePeriodSeconds": {"max": 900}}})
    assert submit(api, "grace-b", terminationGracePeriodSeconds=301).status == 202


def test_what_was_accepted_is_checked_again_when_it_resumes(api: ApiServer) -> None:
    id = submit(api, "resumed").json["workloadId"]
    path = f"/api/v1/workloads/trainings/{id}"
    assert api.call("POST", f"{path}/suspend").status == 202
    write(api, PROJECT, {"rules": {"args": {"required": True}}})
    refused = api.call("POST", f"{path}/resume")
    assert refused.status == 403
    assert "args: must be given" in refused.body.decode()
    api.call("DELETE", f"{PATH}?scope=project&projectId=1")
    assert api.call("POST", f"{path}/resume").status == 202


def test_what_holds_in_a_project(api: ApiServer) -> None:
    write(api, TENANT, {"rules": {"nodeType": {"blocked": True}}})
    got = api.call("GET", f"{PATH}/effective?projectId=1").json["effective"]["rules"]
    assert got["nodeType"] == {"blocked": True, "sourceOfRule": {"scope": "tenant"}}
    assert got["terminationGracePeriodSeconds"]["sourceOfRule"] == {"scope": "system", "isFallback": True}


def test_policies_of_kinds_with_roles(api: ApiServer) -> None:
    path = "/api/v2/policy/distributed"
    assert write(api, TENANT, {"rules": {"worker": {"image": {"options": [{"value": "y"}]}}}}, path=path).status == 200
    body = {"name": "roles", "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x", "numWorkers": 1}}
    refused = api.call("POST", "/api/v1/workloads/distributed", body)
    assert refused.json["complianceIssues"][0]["field"] == "image"
    assert api.call("DELETE", f"{path}?scope=tenant").status == 204


def test_an_unknown_scope_is_refused(api: ApiServer) -> None:
    assert write(api, {"scope": "project", "projectId": 999}, {}).status == 400
    assert api.call("GET", PATH).status == 400
    built_in = write(api, {"scope": "system"}, {})
    assert (built_in.status, "is built in; write one for the tenant" in built_in.json["details"]) == (400, True)


def test_a_list_is_limited_by_an_id_alone_and_says_what_has_no_effect(api: ApiServer) -> None:
    path = "/api/v2/policy/nim-services"
    written = write(api, TENANT, {"rules": {"image": {"required": True}}}, path=path)
    remark = {"errorMessage": "This policy has no effect: NimService workloads do not exist here"}
    assert written.json["policy"]["status"] == {"validation": remark}
    write(api, PROJECT, {})
    [entry] = api.call("GET", "/api/v2/policy?projectId=1").json["policies"]
    assert entry["meta"]["scope"] == "project"
    assert api.call("GET", "/api/v2/policy?departmentId=1").json["policies"] == []
    [entry] = api.call("GET", "/api/v2/policy?scope=tenant").json["policies"]
    assert entry["status"]["validation"] == remark
    assert api.call("DELETE", f"{path}?scope=tenant").status == 204


def test_an_update_is_stored_with_the_policys_defaults(api: ApiServer) -> None:
    """As a submission is: the record's priority follows from the same spec."""
    inferences, path = "/api/v1/workloads/inferences", "/api/v2/policy/inferences"
    body = {"name": "serves", "projectId": "1", "clusterId": api.cluster_id}
    spec = {"image": "x", "servingPort": {"container": 8080}}
    made = api.call("POST", inferences, {**body, "spec": spec})
    assert made.status == 202, made
    one = f"{inferences}/{made.json['workloadId']}"
    defaults = {"priorityClass": "low", "environmentVariables": {"instances": [{"name": "A", "value": "1"}]}}
    assert write(api, PROJECT, {"defaults": defaults}, path=path).status == 200
    try:
        changed = api.call("PATCH", one, {"spec": {"image": "y"}})
        assert changed.status == 202, changed
        stored = api.get(one)["spec"]
        assert (stored["image"], stored.get("priorityClass")) == ("y", "low")
        assert [each["name"] for each in stored["environmentVariables"]] == ["A"]
        assert api.get(f"/api/v1/workloads/{made.json['workloadId']}")["priorityClassName"] == "low"
    finally:
        api.call("DELETE", f"{path}?scope=project&projectId=1")
