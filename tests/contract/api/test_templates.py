"""Templates as the contract has them, and submissions that name one."""

from collections.abc import Callable
from typing import Any

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer
from tests.contract.api.test_people import RESEARCHER, Person

BASE = "/api/v1/workload-templates/trainings"
CREATE = "/api/v1/workloads/trainings"
SPEC: dict[str, Any] = {
    "image": "python:3",
    "command": "python",
    "environmentVariables": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "compute": {"cpuCoreRequest": 1},
}


def create(api: ApiServer, name: str, spec: Any = None, **meta: Any) -> Answer:
    head = {"name": name, "scopeType": "project", "scopeId": "1"} | meta
    return api.call("POST", BASE, {"meta": head, "spec": SPEC if spec is None else spec})


def test_the_life_of_a_template(api: ApiServer) -> None:
    made = create(api, "life", description="first")
    assert made.status == 202, made
    assert find_disagreements("post", BASE, 202, made.json) == []
    id = made.json["meta"]["id"]
    one = f"{BASE}/{id}"
    assert api.get(one) == made.json == api.get(f"/api/v1/workload-templates/{id}")
    assert find_disagreements("get", "/api/v1/workload-templates/{templateId}", 200, made.json) == []
    assert made.json["runnable"] == {"isRunnable": True}
    assert create(api, "life").status == 400
    for path in (BASE, "/api/v1/workload-templates"):
        listed = api.get(f"{path}?filterBy=name==life")
        assert find_disagreements("get", path, 200, listed) == []
        assert [entry["meta"]["name"] for entry in listed["entries"]] == ["life"]
    assert api.get("/api/v1/workload-templates/count?filterBy=name==life") == {"count": 1}
    free = "/api/v1/workload-templates/name-availability?scopeType=project&scopeId=1&templateName="
    assert api.call("GET", f"{free}life").status == 409
    assert api.call("GET", f"{free}other").status == 204
    patched = api.call("PATCH", one, {"spec": {"compute": {"cpuMemoryRequest": "1G"}}})
    assert patched.status == 200, patched
    assert find_disagreements("patch", f"{BASE}/{{templateId}}", 200, patched.json) == []
    assert patched.json["spec"]["compute"] == {"cpuCoreRequest": 1, "cpuMemoryRequest": "1G"}
    assert patched.json["meta"]["description"] == "first"
    put = api.call("PUT", one, {"meta": {"name": "renamed"}, "spec": {"image": "busybox"}})
    assert put.status == 200, put
    assert find_disagreements("put", f"{BASE}/{{templateId}}", 200, put.json) == []
    assert (put.json["meta"]["name"], put.json["spec"]) == ("renamed", {"image": "busybox"})
    assert api.call("DELETE", one).status == 204
    assert api.call("GET", one).status == 404


def test_the_request_wins_over_the_template(api: ApiServer) -> None:
    id = create(api, "base").json["meta"]["id"]
    spec = {
        "command": "sh",
        "environmentVariables": [
            {"name": "A", "exclude": True},
            {"name": "B", "value": "3"},
            {"name": "C", "value": "4"},
        ],
    }
    body = api.training("combined", spec=spec, templateId=id)
    want = {
        "image": "python:3",
        "command": "sh",
        "environmentVariables": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
        "compute": {"cpuCoreRequest": 1},
    }
    preview = api.call("POST", f"{CREATE}?dryRun=true", body)
    assert preview.status == 200, preview
    assert preview.json["spec"] == want
    assert api.call("GET", f"{CREATE}/{preview.json['workloadId']}").status == 404
    made = api.call("POST", CREATE, body)
    assert made.status == 202, made
    assert made.json["spec"] == want
    taken = api.call("POST", f"{CREATE}?dryRun=true", body)
    assert taken.status == 400, taken


def test_violations_stand_where_the_request_put_the_items(api: ApiServer) -> None:
    id = create(api, "places").json["meta"]["id"]
    variables = [{"name": "B", "value": "3"}, {"name": "C"}, {"name": "D", "podFieldRef": {"path": "spec.no"}}]
    request = {"name": "places", "projectId": "1", "clusterId": api.cluster_id, "templateId": id}
    refused = api.call("POST", CREATE, request | {"spec": {"environmentVariables": variables}})
    assert [issue["field"] for issue in refused.json["complianceIssues"]] == [
        "spec.environmentVariables[1]",
        "spec.environmentVariables[2].podFieldRef.path",
    ]


def test_a_template_without_an_image_needs_one_in_the_request(api: ApiServer) -> None:
    made = create(api, "bare", spec={"command": "true"})
    assert made.json["runnable"]["isRunnable"] is False
    id = made.json["meta"]["id"]
    assert api.call("POST", CREATE, api.training("lacks", spec={}, templateId=id)).status == 400
    assert api.call("POST", CREATE, api.training("has", spec={"image": "x"}, templateId=id)).status == 202


def test_unknown_and_foreign_templates_are_refused(api: ApiServer) -> None:
    body = {"name": "apart", "clusterId": api.cluster_id, "resources": []}
    other = api.call("POST", "/api/v1/org-unit/projects", body).json["id"]
    foreign = create(api, "foreign", scopeId=other).json["meta"]["id"]
    for id in (foreign, "55555555-5555-4555-8555-555555555555"):
        answer = api.call("POST", CREATE, api.training("refused", templateId=id))
        assert answer.status == 400, answer
        assert answer.json["complianceIssues"][0]["field"] == "templateId"
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    assert ada.call("GET", f"{BASE}/{foreign}").status == 404
    assert "foreign" not in {entry["meta"]["name"] for entry in ada.get(BASE)["entries"]}
    wide = {"meta": {"name": "wide", "scopeType": "tenant"}, "spec": SPEC}
    assert ada.call("POST", BASE, wide).status == 403


def make_asset(api: ApiServer, path: str, name: str, spec: dict[str, Any], **meta: Any) -> str:
    head = {"name": name, "scope": "project", "projectId": 1} | meta
    made = api.call("POST", f"/api/v1/asset/{path}", {"meta": head, "spec": spec})
    assert made.status == 202, made
    return str(made.json["meta"]["id"])


def test_a_template_names_assets_whose_members_its_workloads_get(make_api: Callable[..., ApiServer]) -> None:
    """Request over template over assets; credentials become the secrets that they made, tools become URLs."""
    api = make_api()
    password = make_asset(api, "credentials/password", "git", {"user": "ada", "password": "hush"})
    tool = {"toolType": "jupyter-notebook", "connectionType": "ExternalUrl", "containerPort": 8888}
    environment = {
        "image": "python:3",
        "command": "python",
        "runAsNonRoot": False,
        "environmentVariables": [
            {"name": "A", "value": "asset"},
            {"name": "P", "credential": {"assetId": password, "key": "Password"}},
        ],
        "connections": [{"name": "notebook", "internalToolInfo": tool}],
    }
    sources = [
        make_asset(
            api,
            "datasource/git",
            "code",
            {"repository": "https://example.com/a.git", "path": "/code", "passwordAssetId": password},
        ),
        make_asset(api, "datasource/pvc", "shelf", {"path": "/data", "claimInfo": {"size": "1G"}}),
    ]
    assets = {
        "environment": make_asset(api, "environment", "python", environment),
        "compute": make_asset(api, "compute", "small", {"cpuCoreRequest": 0.5, "cpuMemoryRequest": "20M"}),
        "datasources": [{"id": id} for id in sources],
    }
    body: dict[str, Any] = {
        "meta": {"name": "whole", "scopeType": "project", "scopeId": "1"},
        "spec": {"compute": {"cpuCoreRequest": 1}, "environmentVariables": [{"name": "B", "value": "template"}]},
        "assets": assets,
    }
    path = "/api/v1/workload-templates/trainings"
    made = api.call("POST", path, body)
    assert made.status == 202, made
    assert find_disagreements("post", path, 202, made.json) == []
    assert made.json["assets"] == assets
    assert made.json["runnable"]["isRunnable"]
    assert made.json["combinedSpec"]["compute"] == {"cpuCoreRequest": 1, "cpuMemoryRequest": "20M"}

    sent = {
        "templateId": made.json["meta"]["id"],
        "spec": {"environmentVariables": [{"name": "A", "value": "request"}]},
    }
    workload = api.submit("made", **sent)
    spec = api.get(f"/api/v1/workloads/trainings/{workload}")["spec"]
    assert (spec["image"], spec["command"]) == ("python:3", "python")
    assert spec["compute"]["cpuCoreRequest"] == 1
    variables = {each["name"]: each for each in spec["environmentVariables"]}
    assert variables["A"]["value"] == "request"
    assert variables["B"]["value"] == "template"
    assert variables["P"]["secret"] == {"name": "password-git", "key": "Password"}
    assert spec["storage"]["git"][0]["passwordSecret"] == "password-git"
    assert spec["storage"]["pvc"][0]["existingPvc"] is True
    assert spec["exposedUrls"][0]["container"] == 8888
    assert spec["security"]["runAsNonRoot"] is False

    changed = api.call("PATCH", f"{path}/{made.json['meta']['id']}", {"meta": {"description": "other"}})
    assert changed.json["assets"] == assets
    missing = {**body, "meta": {**body["meta"], "name": "other"}, "assets": {"compute": assets["environment"]}}
    refused = api.call("POST", path, missing)
    assert refused.status == 400
    assert "assets.compute" in str(refused.json)


def test_a_project_that_one_cannot_see_is_not_a_project_to_comply_with(api: ApiServer) -> None:
    ann = Person(api, "complying@example.com")
    ann.may(
        next(one["id"] for one in api.get("/api/v1/authorization/roles") if one["name"] == "Viewer"), "project", "1"
    )
    assert ann.call("GET", "/api/v1/workload-templates?complyToProject=1").status == 200
    answer = ann.call("GET", "/api/v1/workload-templates?complyToProject=19009")
    assert (answer.status, "complyToProject: is 19009" in answer.json["details"]) == (400, True)
