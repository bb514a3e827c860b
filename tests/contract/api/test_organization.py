"""Departments, projects and node pools over HTTP: made, changed, deleted, refused; answers as the contract has them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fairlead.control.context import EngineView
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import AUDIT, COLLECTIONS, EVENTS
from tests import builders
from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import START, Answer, ApiServer

DEPARTMENTS = "/api/v1/org-unit/departments"
PROJECTS = "/api/v1/org-unit/projects"
POOLS = "/api/v1/node-pools"


def quota(gpu: float = 4, pool: str = "1", **members: Any) -> dict[str, Any]:
    return {"nodePool": {"id": pool}, "gpu": {"deserved": gpu}, **members}


def create(api: ApiServer, path: str, name: str, **members: Any) -> dict[str, Any]:
    body = {"name": name, "clusterId": api.cluster_id} | members
    if path != POOLS:
        body.setdefault("resources", [quota()])
    answer = api.call("POST", path, body)
    assert answer.status == 201, answer
    assert find_disagreements("post", path, 201, answer.json) == []
    made: dict[str, Any] = answer.json
    return made


def issues(answer: Answer) -> str:
    assert answer.status == 400, answer
    return str(answer.json["details"])


def test_a_department_and_a_project_in_it(api: ApiServer) -> None:
    department = create(api, DEPARTMENTS, "research", description="All of it")
    assert department["resources"][0]["gpu"] == {"deserved": 4, "limit": None, "overQuotaWeight": 2}
    assert department["totalResources"]["gpuQuota"] == 4
    project = create(
        api,
        PROJECTS,
        "vision",
        parentId=department["id"],
        resources=[
            quota(
                2.5,
                cpu={"deserved": 8000, "limit": 16000},
                memory={"deserved": 16, "limit": None, "units": "GB", "overQuotaWeight": 3},
                priority="High",
            )
        ],
    )
    assert project["parentId"] == department["id"]
    assert project["status"]["phase"] == "Ready"
    assert project["status"]["namespace"] == "runai-vision"
    shown = project["resources"][0]
    assert shown["gpu"] == {"deserved": 2.5, "limit": None, "overQuotaWeight": 2}
    assert shown["cpu"] == {"deserved": 8000, "limit": 16000, "overQuotaWeight": 2}
    assert shown["memory"] == {"deserved": 16, "limit": None, "overQuotaWeight": 3, "units": "GB"}
    assert shown["priority"] == "High"
    assert api.get(f"{PROJECTS}/{project['id']}")["name"] == "vision"
    assert api.get(f"{PROJECTS}/count")["count"] == 2
    assert api.get(f"{PROJECTS}?filterBy=parentName==research")["projects"][0]["id"] == project["id"]


def test_a_project_whose_namespace_is_somebody_elses_is_not_ready(make_api: Any) -> None:
    api = make_api()
    project = create(api, PROJECTS, "vision")
    message = "Namespace runai-vision belongs to another Fairlead installation, c-2"
    api.context.engine = EngineView(
        find_namespace_problem=lambda namespace: message if namespace == "runai-vision" else ""
    )
    status = api.get(f"{PROJECTS}/{project['id']}")["status"]
    assert (status["phase"], status["phaseMessage"]) == ("NotReady", message)
    others = [one["status"] for one in api.get(PROJECTS)["projects"] if one["name"] != "vision"]
    assert {(one["phase"], one["phaseMessage"]) for one in others} == {("Ready", None)}


def test_ids_are_never_given_again(make_api: Any) -> None:
    api = make_api()
    first = create(api, PROJECTS, "once")
    assert api.call("DELETE", f"{PROJECTS}/{first['id']}").status == 204
    assert api.call("GET", f"{PROJECTS}/{first['id']}").status == 404
    second = create(api, PROJECTS, "once")
    assert int(second["id"]) == int(first["id"]) + 1


@pytest.mark.parametrize("path", [DEPARTMENTS, PROJECTS])
def test_a_taken_name_is_409(api: ApiServer, path: str) -> None:
    create(api, path, "taken")
    answer = api.call("POST", path, {"name": "taken", "clusterId": api.cluster_id, "resources": [quota()]})
    assert answer.status == 409, answer
    assert answer.json["message"] == "Resource with this name already exists"
    assert find_disagreements("post", path, 409, answer.json) == []


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({"name": "Upper"}, "lower-case"),
        ({"name": "1st"}, "start with a letter"),
        ({"name": "a" * 58}, "at most 57"),
        ({"clusterId": "55555555-5555-4555-8555-555555555555"}, "clusterId: there is no cluster"),
        ({"parentId": "99"}, "parentId: there is no department 99; known are 1 (default)"),
        ({"resources": [quota(-2)]}, "resources[0].gpu.deserved"),
        ({"resources": [quota(4, "77")]}, "there is no node pool 77; known are 1 (default)"),
        ({"resources": [quota(), quota()]}, "twice"),
        ({"resources": [quota(memory={"deserved": 1})]}, "resources[0].memory.units: is missing"),
        ({"resources": [quota(memory={"deserved": 1, "units": "TB"})]}, "allowed are GB, MB, Mib"),
        ({"resources": [quota(cpu={"deserved": 2, "limit": 1})]}, "resources[0].cpu.limit: is 1, below the quota of 2"),
        ({"resources": [quota(priority="Top")]}, "allowed are VeryLow"),
        ({"resources": None}, "resources: is null"),
        ({"resourcs": []}, "did you mean resources?"),
        ({"defaultNodePools": ["default", "gold"]}, "defaultNodePools[1]: there is no node pool gold"),
        ({"schedulingRules": {"trainingJobTimeLimitSeconds": 0}}, "at least 1"),
        (
            {"schedulingRules": {"trainingJobTimeLimitSeconds": 60, "trainingJobMaxIdleDurationSeconds": 60}},
            "must be less than trainingJobTimeLimitSeconds",
        ),
        ({"requestedNamespace": "runai-default"}, "is the namespace of project default"),
    ],
)
def test_a_project_that_breaks_rules_is_400_with_every_reason(
    api: ApiServer, members: dict[str, Any], want: str
) -> None:
    body = {"name": "new", "clusterId": api.cluster_id, "resources": [quota()]} | members
    answer = api.call("POST", PROJECTS, body)
    assert want in issues(answer)
    assert find_disagreements("post", PROJECTS, 400, answer.json) == []


def test_resources_are_set_or_changed(make_api: Any) -> None:
    api = make_api()
    gold = create(api, POOLS, "gold", labelKey="tier", labelValue="gold")
    project = create(api, PROJECTS, "vision", resources=[quota(4), quota(2, gold["id"], priority="Low")])
    path = f"{PROJECTS}/{project['id']}/resources"
    changed = api.call("PATCH", path, [quota(3, gold["id"])])
    assert changed.status == 200, changed
    assert find_disagreements("patch", f"{PROJECTS}/{{projectId}}/resources", 200, changed.json) == []
    assert [pool["gpu"]["deserved"] for pool in changed.json] == [4, 3]
    assert changed.json[1]["priority"] == "Low"
    put = api.call("PUT", path, [quota(3, gold["id"])])
    assert put.status == 200, put
    assert [pool["gpu"]["deserved"] for pool in put.json] == [0, 3]
    assert put.json[1]["priority"] == "MediumLow"
    department = api.call("PATCH", f"{DEPARTMENTS}/1/resources", [quota(8)])
    assert department.json[0]["gpu"]["deserved"] == 8
    assert api.call("PUT", f"{PROJECTS}/99/resources", []).status == 404


def test_an_update_leaves_what_it_does_not_name(make_api: Any) -> None:
    api = make_api()
    project = create(
        api,
        PROJECTS,
        "vision",
        description="kept",
        schedulingRules={"trainingJobTimeLimitSeconds": 600},
        nodeTypes={"training": ["a100"]},
    )
    path = f"{PROJECTS}/{project['id']}"
    changed = api.call("PUT", path, {"resources": [quota(1)], "enforceRunaiScheduler": False})
    assert changed.status == 200, changed
    assert find_disagreements("put", f"{PROJECTS}/{{projectId}}", 200, changed.json) == []
    assert changed.json["description"] == "kept"
    assert changed.json["schedulingRules"] == {"trainingJobTimeLimitSeconds": 600}
    assert changed.json["enforceRunaiScheduler"] is False
    cleared = api.call("PUT", path, {"resources": [quota(1)], "schedulingRules": None, "nodeTypes": None})
    assert cleared.json["schedulingRules"] is None
    assert cleared.json["nodeTypes"] is None
    assert api.call("PUT", path, {"description": "no resources"}).status == 400


def test_rules_are_inherited_and_only_narrowed(make_api: Any) -> None:
    api = make_api()
    rules = {"trainingJobTimeLimitSeconds": 600}
    department = create(api, DEPARTMENTS, "research", schedulingRules=rules, defaultNodePools=["default"])
    inherits = create(api, PROJECTS, "inherits", parentId=department["id"])
    assert inherits["effective"]["schedulingRules"] == rules
    assert inherits["effective"]["defaultNodePools"] == ["default"]
    assert inherits["schedulingRules"] is None
    stricter = create(
        api, PROJECTS, "stricter", parentId=department["id"], schedulingRules={"trainingJobTimeLimitSeconds": 60}
    )
    assert stricter["effective"]["schedulingRules"] == {"trainingJobTimeLimitSeconds": 60}
    looser = {"resources": [quota()], "schedulingRules": {"trainingJobTimeLimitSeconds": 601}}
    answer = api.call("PUT", f"{PROJECTS}/{inherits['id']}", looser)
    assert "the department allows at most" in issues(answer)


def test_a_new_pool_is_open_to_everybody(make_api: Any) -> None:
    api = make_api()
    pool = create(
        api,
        POOLS,
        "gold",
        labelKey="tier",
        labelValue="gold",
        schedulingConfiguration={"placementStrategy": {"gpu": "spread"}, "minGuaranteedRuntime": "5d8h40m"},
    )
    assert pool["schedulingConfiguration"]["minGuaranteedRuntime"] == "5d8h40m"
    assert pool["schedulingConfiguration"]["placementStrategy"] == {"gpu": "spread", "cpu": "binpack"}
    assert pool["phase"] == "Empty"
    for path in (f"{PROJECTS}/1", f"{DEPARTMENTS}/1"):
        granted = api.get(path)["resources"][1]
        assert granted["nodePool"] == {"id": pool["id"], "name": "gold"}
        assert granted["gpu"] == {"deserved": 0, "limit": None, "overQuotaWeight": 2}
        assert granted["cpu"]["deserved"] is None
    create(api, PROJECTS, "vision", defaultNodePools=["gold", "default"])
    assert api.call("DELETE", f"{POOLS}/{pool['id']}").status == 204
    assert len(api.get(f"{PROJECTS}/1")["resources"]) == 1
    assert api.get(f"{PROJECTS}?filterBy=name==vision")["projects"][0]["defaultNodePools"] == ["default"]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_pool_is_changed(make_api: Any, method: str) -> None:
    api = make_api()
    pool = create(api, POOLS, "gold", labelKey="tier", labelValue="gold", overProvisioningRatio=2)
    body = {"labelValue": "golden", "placementStrategy": {"cpu": "spread"}, "gpuNetworkAccelerationDetection": "Use"}
    changed = api.call(method, f"{POOLS}/{pool['id']}", body)
    assert changed.status == 200, changed
    assert find_disagreements(method.lower(), f"{POOLS}/{{nodepoolId}}", 200, changed.json) == []
    assert (changed.json["labelKey"], changed.json["labelValue"]) == ("tier", "golden")
    assert changed.json["placementStrategy"] == {"cpu": "spread", "gpu": "binpack"}
    assert changed.json["gpuNetworkAccelerationDetection"] == "Use"
    assert changed.json["overProvisioningRatio"] == 2


@pytest.mark.parametrize(
    ("members", "want"),
    [
        ({"name": "default"}, "a node pool named default already exists"),
        ({"labelValue": "silver"}, "tier=silver is the label of node pool silver"),
        ({"labelKey": ""}, "labelKey: is empty"),
        ({"schedulingConfiguration": {"minGuaranteedRuntime": "soon"}}, "such as 90s or 5d8h"),
        ({"networkTopologyId": "55555555-5555-4555-8555-555555555555"}, "there is no network topology"),
    ],
)
def test_a_pool_that_breaks_rules_is_400(api: ApiServer, members: dict[str, Any], want: str) -> None:
    if not any(pool["name"] == "silver" for pool in api.get(POOLS)["nodepools"]):
        create(api, POOLS, "silver", labelKey="tier", labelValue="silver")
    body = {"name": "new", "clusterId": api.cluster_id, "labelKey": "tier", "labelValue": "new"} | members
    assert want in issues(api.call("POST", POOLS, body))


def test_the_default_pool_stays(api: ApiServer) -> None:
    answer = api.call("DELETE", f"{POOLS}/1")
    assert "cannot be deleted" in issues(answer)
    assert "has no label" in issues(api.call("PUT", f"{POOLS}/1", {"labelKey": "a", "labelValue": "b"}))
    assert api.call("DELETE", f"{POOLS}/99").status == 404


def test_a_quota_below_what_cannot_be_preempted_is_refused(make_api: Any) -> None:
    api = make_api()
    fixed = builders.workload(
        "fixed", id="11111111-1111-4111-8111-111111111111", phase=Phase.RUNNING, preemptible=False, created_at=START
    )
    pod = builders.pod(
        "fixed-0-0",
        id="44444444-4444-4444-8444-444444444444",
        workload_id=fixed.id,
        phase=PodPhase.RUNNING,
        node_pool="default",
        cpu_milli=500,
        gpu_devices=(0, 1),
        gpu_thousandths=1000,
    )
    api.put(fixed, pod)
    for path in (f"{PROJECTS}/1", f"{DEPARTMENTS}/1"):
        assert "below the 2 that non-preemptible workloads hold" in issues(
            api.call("PUT", path, {"resources": [quota(1.5)]})
        )
        answer = api.call("PUT", path, {"resources": [quota(2)]})
        assert answer.status == 200, answer
    status = api.get(f"{PROJECTS}/1")["status"]
    assert status["quotaStatus"]["allocatedNonPreemptible"]["gpu"] == 2
    assert status["nodePoolQuotaStatuses"][0]["allocated"]["cpu"] == 500


def test_requested_counts_what_waits_too(make_api: Any) -> None:
    api = make_api()
    compute = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5}
    api.submit("waits", spec={"image": "python:3", "parallelism": 2, "completions": 4, "compute": compute})
    status = api.get(f"{PROJECTS}/1")["status"]["quotaStatus"]
    assert status["requested"]["gpu"] == 1
    assert status["allocated"]["gpu"] == 0


def test_deleting_a_project_deletes_its_workloads_first(make_api: Any) -> None:
    api = make_api()
    project = create(api, PROJECTS, "vision")
    workload_id = api.submit("train", projectId=project["id"])
    answer = api.call("DELETE", f"{PROJECTS}/{project['id']}")
    assert answer.status == 202, answer
    assert answer.json == {"code": 202, "message": "Request has been accepted."}
    assert api.get(f"{PROJECTS}/{project['id']}")["status"]["phase"] == "Deleting"
    assert api.get(f"/api/v1/workloads/trainings/{workload_id}")["desiredPhase"] == "Deleted"
    refused = api.call("POST", "/api/v1/workloads/trainings", api.training("late", projectId=project["id"]))
    assert "is being deleted" in issues(refused)
    assert api.call("PUT", f"{PROJECTS}/{project['id']}", {"resources": []}).status == 404
    assert api.call("DELETE", f"{PROJECTS}/99").status == 404


def test_what_only_a_removed_project_could_use_goes_with_it(make_api: Any) -> None:
    api = make_api()
    id = create(api, PROJECTS, "vision")["id"]
    subject = {"subjectId": "crew", "subjectType": "group", "roleId": 2, "scopeType": "project", "scopeId": id}
    assert api.call("POST", "/api/v1/authorization/access-rules", subject).status == 201
    meta = {"name": "theirs", "scope": "project", "projectId": int(id)}
    assert api.call("PUT", "/api/v2/policy/trainings", {"meta": meta, "policy": {}}).status == 200
    for path, spec in (
        ("asset/compute", {"cpuCoreRequest": 1}),
        ("asset/credentials/generic-secret", {"keyValuePairs": [{"key": "k", "value": "v"}]}),
    ):
        assert api.call("POST", f"/api/v1/{path}", {"meta": meta, "spec": spec}).status == 202
    template = {"meta": {"name": "theirs", "scopeType": "project", "scopeId": id}, "spec": {"image": "x"}}
    assert api.call("POST", "/api/v1/workload-templates/trainings", template).status == 202
    rule = {"projectId": id, "on": ["failed"], "channel": "webhook", "target": "https://example.com/hook"}
    assert api.call("POST", "/api/v1/notification-rules", rule).status == 201

    def count(name: str) -> int:
        [collection] = [one for one in COLLECTIONS if one.name == name]
        return int(api.do(api.context.store.count(Query(collection=collection))))

    names = ("access_rules", "policies", "assets", "secrets", "templates", "notification_rules")
    before = {name: count(name) for name in names}
    assert api.call("DELETE", f"{PROJECTS}/{id}").status == 204
    assert {name: before[name] - count(name) for name in names} == dict.fromkeys(names, 1) | {"assets": 2}


def test_deleting_a_department_deletes_its_projects(make_api: Any) -> None:
    api = make_api()
    department = create(api, DEPARTMENTS, "research")
    empty = create(api, PROJECTS, "empty", parentId=department["id"])
    busy = create(api, PROJECTS, "busy", parentId=department["id"])
    api.submit("train", projectId=busy["id"])
    assert api.call("DELETE", f"{DEPARTMENTS}/{department['id']}").status == 204
    assert api.call("GET", f"{PROJECTS}/{empty['id']}").status == 404
    assert api.get(f"{PROJECTS}/{busy['id']}")["status"]["phase"] == "Deleting"


def test_terms_of_the_project_reach_a_workload(make_api: Any) -> None:
    api = make_api()
    create(api, POOLS, "gold", labelKey="tier", labelValue="gold")
    project = create(
        api,
        PROJECTS,
        "vision",
        defaultNodePools=["gold", "default"],
        nodeTypes={"training": ["a100", "h100"]},
        schedulingRules={"trainingJobTimeLimitSeconds": 600, "trainingJobMaxIdleDurationSeconds": 60},
    )
    spec = {"image": "python:3", "compute": {"gpuDevicesRequest": 1}}
    first = api.get(f"/api/v1/workloads/{api.submit('first', projectId=project['id'], spec=spec)}")
    assert first["requestedNodePools"] == ["gold", "default"]
    assert "is not measured" in first["conditions"][0]["message"]
    named = api.submit("named", projectId=project["id"], spec=spec | {"nodePools": ["default"], "nodeType": "h100"})
    assert api.get(f"/api/v1/workloads/{named}")["requestedNodePools"] == ["default"]
    body = api.training("wrong", projectId=project["id"], spec=spec | {"nodeType": "t4"})
    answer = api.call("POST", "/api/v1/workloads/trainings", body)
    assert "spec.nodeType: is 't4'; project vision allows a100, h100" in issues(answer)


def test_every_change_leaves_an_event_and_an_audit_line(make_api: Any) -> None:
    api = make_api()
    project = create(api, PROJECTS, "vision")
    api.call("PATCH", f"{PROJECTS}/{project['id']}/resources", [quota(1)])
    api.call("DELETE", f"{PROJECTS}/{project['id']}")

    async def load() -> tuple[list[str], list[str]]:
        from_events = await api.context.store.find(_query("events", project["id"]))
        from_audit = await api.context.store.find(_query("audit", project["id"]))
        return [event.reason for event in from_events], [line.operation for line in from_audit]

    events, audit = api.do(load())
    assert events == ["Created", "Updated", "Deleting", "Deleted"]
    assert audit == ["create", "update", "delete", "delete"]


def _query(collection: str, subject_id: str) -> Any:
    chosen = EVENTS if collection == "events" else AUDIT
    where = (Where("subject", Comparison.EQUAL, "projects"), Where("subject_id", Comparison.EQUAL, subject_id))
    return Query(collection=chosen, where=where)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b'{"name": 1}', b"\xff", b"[" * 2000])
def test_invalid_bodies_are_400(api: ApiServer, body: bytes) -> None:
    for method, path in (("POST", PROJECTS), ("PUT", f"{PROJECTS}/1"), ("PATCH", f"{PROJECTS}/1/resources")):
        if body == b"[]" and method == "PATCH":
            continue
        answer = api.call(method, path, body)
        assert answer.status == 400, (method, path, answer)


@pytest.mark.parametrize("id", ["%00", "no-id", "55555555-5555-4555-8555-555555555555", "1e3", "%D9%A3", "9" * 40])
def test_ids_that_name_nothing_are_404(api: ApiServer, id: str) -> None:
    for path in (DEPARTMENTS, PROJECTS, POOLS):
        for method, body in (("PUT", {"resources": []} if path != POOLS else {}), ("DELETE", None)):
            answer = api.call(method, f"{path}/{id}", body)
            assert answer.status == 404, (method, path, answer)
            assert answer.json["message"] == "Resource id not found."


@pytest.mark.parametrize(
    "members",
    [
        {"description": "a\x00b"},
        {"description": "x" * 251},
        {"nodeTypes": {"names": {"a": "\x00"}}},
        {"name": "a\x00"},
        {"resources": [{"gpu": {"deserved": 1e300}}]},
        {"resources": [{"gpu": {"deserved": "4"}}]},
        {"resources": {}},
        {"schedulingRules": {"trainingJobTimeLimitSeconds": 1.5}},
        {"enforceRunaiScheduler": "yes"},
    ],
    ids=str,
)
def test_values_that_cannot_be_are_400(api: ApiServer, members: dict[str, Any]) -> None:
    body = {"name": "new", "clusterId": api.cluster_id, "resources": [quota()]} | members
    answer = api.call("POST", PROJECTS, body)
    assert answer.status == 400, answer
    assert answer.json["details"]


def test_a_race_for_one_name_has_one_winner(make_api: Any) -> None:
    api = make_api()
    body = {"name": "wanted", "clusterId": api.cluster_id, "resources": [quota()]}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: api.call("POST", PROJECTS, body).status, range(8)))
    assert sorted(answers) == [201] + [409] * 7
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: create(api, PROJECTS, f"team-{n}")["id"], range(8)))
    assert len(set(made)) == 8
