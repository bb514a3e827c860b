"""The older routes below `/v1/k8s`, clusters, settings and batches: what they change, and what they refuse and why."""

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer
from tests.contract.api.test_people import Person


def _agrees(method: str, path: str, answer: Answer) -> bool:
    return find_disagreements(method, path, answer.status, answer.json) == []


def test_a_project_lives_in_both_interfaces(api: ApiServer) -> None:
    base = f"/v1/k8s/clusters/{api.cluster_id}/projects"
    body = {
        "name": "vision",
        "departmentId": 1,
        "nodePoolsResources": [
            {
                "nodePool": {"id": 1, "name": "default"},
                "gpu": {"deserved": 2, "maxAllowed": -1, "overQuotaWeight": 1},
                "memory": {"deserved": 1024},
            }
        ],
        "trainingJobTimeLimitSecs": 3600,
        "nodeAffinity": {"train": {"affinityType": "only_selected", "selectedTypes": [{"name": "dgx"}]}},
    }
    made = api.call("POST", base, body)
    assert made.status == 200, made
    assert _agrees("post", "/v1/k8s/clusters/{clusterId}/projects", made)
    id = made.json["id"]
    today = api.get(f"/api/v1/org-unit/projects/{id}")
    assert today["resources"][0]["gpu"] == {"deserved": 2, "limit": None, "overQuotaWeight": 1}
    assert (today["resources"][0]["memory"]["deserved"], today["resources"][0]["memory"]["units"]) == (1024, "Mib")
    assert today["schedulingRules"] == {"trainingJobTimeLimitSeconds": 3600}
    assert today["nodeTypes"] == {"training": ["dgx"]}
    changed = api.call("PUT", f"{base}/{id}", {"deservedGpus": 3})
    assert (changed.status, changed.json["deservedGpus"]) == (200, 3)
    assert changed.json["trainingJobTimeLimitSecs"] == 3600
    assert [each["name"] for each in api.get(base)] == ["default", "vision"]
    in_department = api.get(f"/v1/k8s/clusters/{api.cluster_id}/departments")[0]["projects"]
    assert [each["id"] for each in in_department] == [1, id]
    assert api.call("DELETE", f"{base}/{id}").status == 200
    assert api.call("GET", f"{base}/{id}").status == 404


def test_memory_can_be_read_in_megabytes(api: ApiServer) -> None:
    base = f"/v1/k8s/clusters/{api.cluster_id}/projects"
    made = api.call("POST", base, {"name": "sized", "departmentId": 1, "resources": {"memory": {"deserved": 1000}}})
    assert made.status == 200, made
    shown = {each["name"]: each for each in api.get(f"{base}?memoryUnitMb=true")}["sized"]
    assert shown["nodePoolsResources"][0]["memory"]["deserved"] == pytest.approx(1048.576)


def test_access_is_not_given_with_a_project(api: ApiServer) -> None:
    base = f"/v1/k8s/clusters/{api.cluster_id}"
    body = {"name": "open", "departmentId": 1, "permissions": {"users": ["ann@example.com"]}}
    refused = api.call("POST", f"{base}/projects", body)
    assert refused.status == 400
    assert "access-rules" in refused.json["details"]
    admins = api.call("PUT", f"{base}/departments/1/access-control", {"departmentAdmins": ["ann@example.com"]})
    assert admins.status == 400
    assert "access-rules" in admins.json["details"]
    assert _agrees("put", "/v1/k8s/clusters/{clusterId}/departments/{department-id}/access-control", admins)


def test_a_node_pool_lives_in_both_interfaces(api: ApiServer) -> None:
    base = f"/v1/k8s/clusters/{api.cluster_id}/node-pools"
    body = {"name": "a100", "labelKey": "gpu", "labelValue": "a100", "placementStrategy": {"gpu": "spread"}}
    assert api.call("POST", base, body).status == 201
    id = {pool["name"]: pool["id"] for pool in api.get(base)}["a100"]
    assert api.call("PUT", f"{base}/{id}/labels", {"labelValue": "h100"}).status == 202
    assert api.call("PUT", f"{base}/{id}", {"overProvisioningRatio": 2}).status == 202
    today = api.get(f"/api/v1/node-pools/{id}")
    assert (today["labelValue"], today["overProvisioningRatio"]) == ("h100", 2)
    assert today["placementStrategy"]["gpu"] == "spread"
    assert api.call("DELETE", f"{base}/{id}").status == 202
    assert [pool["name"] for pool in api.get(base)] == ["default"]


@pytest.mark.parametrize("path", ["projects", "departments", "node-pools", "storage-classes", "metrics", "installfile"])
def test_another_cluster_does_not_exist(api: ApiServer, path: str) -> None:
    answer = api.call("GET", f"/v1/k8s/clusters/99999999-9999-4999-8999-999999999999/{path}")
    assert answer.status == 404
    assert answer.json["details"].startswith("There is no cluster")


def test_metrics_count_waiting_workloads(api: ApiServer) -> None:
    before = api.get(f"/v1/k8s/clusters/{api.cluster_id}/projects/1/metrics")
    assert before["current"]["resources"][0]["nodepoolName"] == "default"
    assert before["metadata"]["projectName"] == "default"
    none = api.get(f"/v1/k8s/clusters/{api.cluster_id}/projects/1/metrics?nodepoolName=other")
    assert none["current"]["resources"] == []


def test_an_older_token_request_works(api: ApiServer) -> None:
    body = {"id": "", "name": api.credentials.client_id, "secret": api.credentials.client_secret}
    answer = api.call("POST", "/v1/k8s/auth/oauth/apptoken", body, token="")
    assert _agrees("post", "/v1/k8s/auth/oauth/apptoken", answer)
    assert api.call("GET", "/api/v1/workloads", token=answer.json["access_token"]).status == 200
    wrong = api.call("POST", "/v1/k8s/auth/oauth/apptoken", body | {"secret": "wrong"}, token="")
    assert wrong.status == 400
    assert _agrees("post", "/v1/k8s/auth/oauth/apptoken", wrong)


def test_the_first_cluster_can_be_renamed(api: ApiServer) -> None:
    path = f"/api/v1/clusters/{api.cluster_id}"
    assert api.call("PUT", path, {"name": "lab"}).status == 204
    try:
        assert api.get(path)["name"] == "lab"
        assert api.call("PUT", path, {"name": "Not a name"}).status == 400
    finally:
        api.call("PUT", path, {"name": "default"})


def test_settings_show_what_this_installation_has(api: ApiServer) -> None:
    assert api.get("/v1/k8s/setting/policies") is True
    assert api.get("/v1/k8s/setting/registries") is False
    assert api.get("/v1/k8s/setting/unheard-of") is False
    same = api.call("PUT", "/v1/k8s/setting", {"key": "policies", "value": True})
    assert _agrees("put", "/v1/k8s/setting", same)
    other = api.call("PUT", "/v1/k8s/setting", {"key": "policies", "value": "false"})
    assert (other.status, api.call("PUT", "/v1/k8s/setting", {"key": "x", "value": 1}).status) == (400, 400)
    assert "was not changed" in other.json["details"]
    assert api.call("PUT", "/v1/k8s/setting", {"key": "unheard-of", "value": True}).status == 404


def test_a_batch_says_which_workloads_it_changed(api: ApiServer) -> None:
    first, second = api.submit("batched-1"), api.submit("batched-2")
    unknown = "99999999-9999-4999-8999-999999999999"
    answer = api.call("POST", "/api/v1/workloads/batch", {"action": "suspend", "ids": [first, unknown, second]})
    assert _agrees("post", "/api/v1/workloads/batch", answer)
    assert answer.json["succeeded"] == [first, second]
    assert [(each["id"], each["code"]) for each in answer.json["failed"]] == [(unknown, 404)]
    assert api.get(f"/api/v1/workloads/trainings/{first}")["desiredPhase"] == "Stopped"
    assert api.call("POST", "/api/v1/workloads/batch", {"action": "delete", "ids": [first]}).json["failed"] == []
    assert api.get(f"/api/v1/workloads/trainings/{first}")["desiredPhase"] == "Deleted"


@pytest.mark.parametrize(
    "body", [{"action": "delete", "ids": []}, {"action": "stop", "ids": ["x"]}, {"action": "delete", "ids": ["x"]}]
)
def test_a_batch_that_makes_no_sense_changes_nothing(api: ApiServer, body: dict[str, object]) -> None:
    assert api.call("POST", "/api/v1/workloads/batch", body).status == 400


def test_a_batch_cannot_suspend_a_service(api: ApiServer) -> None:
    body = api.training("service", spec={"image": "server:1", "servingPort": {"container": 80}})
    made = api.call("POST", "/api/v1/workloads/inferences", body)
    assert made.status == 202, made
    answer = api.call("POST", "/api/v1/workloads/batch", {"action": "suspend", "ids": [made.json["workloadId"]]})
    assert [each["code"] for each in answer.json["failed"]] == [400]


def test_a_batch_finds_only_the_callers_workloads(api: ApiServer) -> None:
    id = api.submit("somebody-elses")
    answer = Person(api, "stranger@example.com").call(
        "POST", "/api/v1/workloads/batch", {"action": "delete", "ids": [id]}
    )
    assert (answer.status, answer.json["succeeded"]) == (200, [])
    assert [each["code"] for each in answer.json["failed"]] == [404]
    assert api.get(f"/api/v1/workloads/trainings/{id}")["desiredPhase"] == "Running"
