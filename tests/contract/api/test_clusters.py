"""Clusters over REST: added, connected, renamed and removed; and what belongs to which of them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import Person
from tests.contract.api.test_runapy_operations import nothing_measured

PATH = "/api/v1/clusters"
KUBECONFIG = """
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: secret-token}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    api = make_api()
    api.context.usage_samples = api.do(nothing_measured(api))
    return api


def add(api: ApiServer, name: str = "lab", **more: Any) -> str:
    made = api.call("POST", PATH, {"name": name, **more})
    assert made.status == 201, made.body
    assert find_disagreements("post", PATH, 201, made.json) == []
    return str(made.json["uuid"])


def make_project(api: ApiServer, name: str, cluster_id: str) -> str:
    pools = api.get("/api/v1/node-pools")["nodepools"]
    [pool] = [one["id"] for one in pools if one["clusterId"] == cluster_id]
    quota = {"deserved": 1, "limit": None, "overQuotaWeight": 1}
    resources = [{"nodePool": {"id": pool}, "gpu": quota, "cpu": quota, "memory": quota | {"units": "Mib"}}]
    body = {"name": name, "clusterId": cluster_id, "resources": resources}
    made = api.call("POST", "/api/v1/org-unit/projects", body)
    assert made.status == 201, made.body
    return str(made.json["id"])


def test_a_cluster_waits_is_connected_and_removed(api: ApiServer) -> None:
    id = add(api, domain="lab.example.com", version="2.24")
    listed = api.call("GET", PATH)
    assert find_disagreements("get", PATH, 200, listed.json) == []
    assert [(one["name"], one["status"]["state"]) for one in listed.json] == [
        ("default", "Connected"),
        ("lab", "WaitingToConnect"),
    ]
    install = api.get(f"{PATH}/{id}/cluster-install-info")["installationStr"]
    assert install == "fairlead cluster connect lab --kubeconfig FILE"
    assert api.call("PUT", f"{PATH}/{id}", {"name": "hall", "kubeconfig": KUBECONFIG}).status == 204
    [_, hall] = api.get(PATH)
    assert (hall["name"], hall["engine"]) == ("hall", "kubernetes")
    assert b"secret-token" not in api.call("GET", f"{PATH}/{id}").body
    assert b"secret-token" not in api.call("GET", "/api/v1/audit/log").body
    assert api.call("DELETE", f"{PATH}/{id}").status == 204
    assert [one["name"] for one in api.get(PATH)] == ["default"]


MISTAKES = [
    ({"name": "default"}, "already exists"),
    ({"name": "Not a name"}, "name"),
    ({"name": "lab", "kubeconfig": "a: b"}, "has no current context"),
    ({"name": "lab", "kubeconfig": ":\n\t-"}, "is not valid YAML"),
    ({"name": "lab", "kubeconfig": KUBECONFIG.replace("token: secret", "exec: secret")}, "is a command"),
    ({"name": "lab", "kubeconfig": KUBECONFIG.replace("token: secret", "tokenFile: secret")}, "names a file"),
    ({"name": "lab", "engine": "local"}, "is this machine, which is a cluster already"),
]


@pytest.mark.parametrize(("body", "want"), MISTAKES, ids=[want for _, want in MISTAKES])
def test_a_cluster_that_cannot_be_added(api: ApiServer, body: dict[str, Any], want: str) -> None:
    refused = api.call("POST", PATH, body)
    assert refused.status == 400
    assert want in refused.body.decode()
    assert len(api.get(PATH)) == 1


def test_the_first_cluster_stays(api: ApiServer) -> None:
    refused = api.call("DELETE", f"{PATH}/{api.cluster_id}")
    assert (refused.status, "came with the installation" in refused.json["details"]) == (403, True)
    assert find_disagreements("delete", f"{PATH}/{{clusterUuid}}", 403, refused.json) == []
    connected = api.call("PUT", f"{PATH}/{api.cluster_id}", {"name": "default", "kubeconfig": KUBECONFIG})
    assert connected.status == 403


def test_one_list_over_all_and_filters_by_cluster(api: ApiServer) -> None:
    lab = add(api)
    project = make_project(api, "vision", lab)
    for name, project_id, cluster_id in (("here", "1", api.cluster_id), ("there", project, lab)):
        body = {"name": name, "projectId": project_id, "clusterId": cluster_id, "spec": {"image": "x"}}
        made = api.call("POST", "/api/v1/workloads/trainings", body)
        assert (made.status, made.json.get("clusterId")) == (202, cluster_id)
    wrong = {"name": "x", "projectId": project, "clusterId": api.cluster_id, "spec": {"image": "x"}}
    assert "belongs to cluster" in api.call("POST", "/api/v1/workloads/trainings", wrong).body.decode()
    rows = api.get("/api/v1/workloads?sortBy=name")["workloads"]
    assert [(row["name"], row["clusterId"]) for row in rows] == [("here", api.cluster_id), ("there", lab)]
    filtered = api.get(f"/api/v1/workloads?filterBy=clusterId=={lab}")["workloads"]
    assert [row["name"] for row in filtered] == ["there"]
    projects = api.get(f"/v1/k8s/clusters/{lab}/projects")
    assert [one["name"] for one in projects] == ["vision"]
    assert api.call("DELETE", f"{PATH}/{lab}").status == 403


def test_policies_and_roles_of_one_cluster_hold_there_only(api: ApiServer) -> None:
    lab = add(api)
    project = make_project(api, "vision", lab)
    meta = {"name": "p", "scope": "cluster", "clusterId": lab}
    policy = {"rules": {"compute": {"cpuCoreRequest": {"max": 1}}}}
    unnamed = {"meta": {"name": "p", "scope": "cluster"}, "policy": policy}
    refused = api.call("PUT", "/api/v2/policy/trainings", unnamed)
    assert (refused.status, "there are several clusters" in refused.json["details"]) == (400, True)
    assert api.call("PUT", "/api/v2/policy/trainings", {"meta": meta, "policy": policy}).status == 200
    for project_id, cluster_id, want in (("1", api.cluster_id, 202), (project, lab, 400)):
        spec = {"image": "x", "compute": {"cpuCoreRequest": 2}}
        body = {"name": f"w{want}", "projectId": project_id, "clusterId": cluster_id, "spec": spec}
        assert api.call("POST", "/api/v1/workloads/trainings", body).status == want
    made = api.call("POST", "/api/v1/users", {"email": "ann@example.com", "resetPassword": False})
    assert made.status in (201, 202), made.body
    rule = {"subjectId": "ann@example.com", "subjectType": "user", "roleId": 1, "scopeType": "cluster", "scopeId": lab}
    assert api.call("POST", "/api/v1/authorization/access-rules", rule).status in (201, 202)
    grant = {"grantType": "password", "username": "ann@example.com", "password": made.json["tempPassword"]}
    ann = api.call("POST", "/api/v1/token", grant, token="").json["accessToken"]
    listed = api.call("GET", "/api/v1/org-unit/projects", token=ann).json["projects"]
    assert [one["name"] for one in listed] == ["vision"]
    assert api.call("POST", PATH, {"name": "third"}, token=ann).status == 403
    body = {"name": "a", "projectId": "1", "clusterId": api.cluster_id, "spec": {"image": "x"}}
    assert api.call("POST", "/api/v1/workloads/trainings", body, token=ann).status == 403


def test_a_role_for_a_removed_cluster_is_not_one_for_the_remaining(api: ApiServer) -> None:
    """With a single cluster, a rule for it is one for the whole installation."""
    lab = add(api)
    ann = Person(api, "ann@example.com")
    ann.may(1, "cluster", lab)
    meta = {"name": "p", "scope": "cluster", "clusterId": lab}
    assert api.call("PUT", "/api/v2/policy/trainings", {"meta": meta, "policy": {}}).status == 200
    assert ann.call("GET", "/api/v1/audit/log?start=2020-01-01T00:00:00Z&end=2030-01-01T00:00:00Z").status == 403
    assert api.call("DELETE", f"{PATH}/{lab}").status == 204
    assert ann.call("GET", "/api/v1/audit/log?start=2020-01-01T00:00:00Z&end=2030-01-01T00:00:00Z").status == 403
    assert ann.call("POST", "/api/v1/users", {"email": "eve@example.com"}).status == 403
    rules = api.get("/api/v1/authorization/access-rules")["accessRules"]
    assert lab not in {rule["scopeId"] for rule in rules}
    assert api.context.directory.policies == {}


def test_the_audit_distinguishes_clusters(api: ApiServer) -> None:
    lab = add(api)
    here, there = api.cluster_id, make_project(api, "vision", lab)
    meta = {"name": "p", "scope": "project", "projectId": int(there)}
    assert api.call("PUT", "/api/v2/policy/trainings", {"meta": meta, "policy": {}}).status == 200
    body = {"name": "near", "projectId": "1", "clusterId": here, "spec": {"image": "x"}}
    assert api.call("POST", "/api/v1/workloads/trainings", body).status == 202
    assert api.call("POST", "/api/v1/users", {"email": "ann@example.com"}).status == 201
    told = {cluster: audited(api, f"cluster_id=={cluster}") for cluster in (here, lab)}
    assert told == {here: {("near", here)}, lab: {("lab", lab), ("vision", lab), ("p", lab)}}
    # An account is of no cluster; the contract wants one nevertheless.
    assert ("ann@example.com", here) in audited(api, "entity_type==users")


def audited(api: ApiServer, filters: str) -> set[tuple[str, str]]:
    period = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
    lines = api.get(f"/api/v1/audit/log?{period}&numberOfSamples=100&filterBy={filters}")["audit_logs"]
    return {(line["entity_name"], line["cluster_id"]) for line in lines}


def test_people_of_one_cluster_see_no_nodes_of_another(api: ApiServer) -> None:
    lab = add(api)
    project = make_project(api, "vision", lab)
    far, near = Person(api, "far@example.com"), Person(api, "near@example.com")
    viewer = next(role["id"] for role in api.get("/api/v1/authorization/roles") if role["name"] == "Viewer")
    far.may(viewer, "project", project)
    near.may(viewer, "project", "1")
    node = api.get("/api/v1/nodes")["nodes"][0]["id"]
    pool = next(one for one in api.get("/api/v1/node-pools")["nodepools"] if one["clusterId"] == api.cluster_id)["id"]
    span = "start=2023-11-14T22:00:00Z&end=2023-11-14T22:13:20Z"
    paths = (
        f"/api/v1/nodes/{node}",
        f"/api/v1/nodes/{node}/metrics?{span}&metricType=CPU_USAGE_CORES",
        f"/api/v1/node-pools/{pool}",
        f"{PATH}/{api.cluster_id}/metrics?{span}&metricType=TOTAL_GPU",
    )
    assert [near.call("GET", path).status for path in paths] == [200] * 4
    assert [far.call("GET", path).status for path in paths] == [404] * 4
    assert far.get("/api/v1/nodes")["nodes"] == []
    assert far.get(f"{PATH}/{api.cluster_id}/nodes")["nodes"] == []
    assert {one["clusterId"] for one in far.get("/api/v1/node-pools")["nodepools"]} == {lab}


def test_metrics_of_a_cluster_name_only_projects_that_the_reader_may_see(api: ApiServer) -> None:
    body = {"name": "skunkworks", "clusterId": api.cluster_id, "resources": []}
    assert api.call("POST", "/api/v1/org-unit/departments", body).status == 201
    assert api.call("POST", "/api/v1/org-unit/projects", body | {"parentId": "2"}).status == 201
    ada = Person(api, "ada@example.com")
    viewer = next(role["id"] for role in api.get("/api/v1/authorization/roles") if role["name"] == "Viewer")
    ada.may(viewer, "project", "1")
    span = "start=2023-11-14T22:00:00Z&end=2023-11-14T22:13:20Z"
    for group in ("Project", "Department"):
        path = f"{PATH}/{api.cluster_id}/metrics?{span}&metricType=GPU_QUOTA&groupBy={group}"
        told = ada.call("GET", path)
        assert (told.status, b"default" in told.body, b"skunkworks" in told.body) == (200, True, False), told
        assert b"skunkworks" in api.call("GET", path).body
