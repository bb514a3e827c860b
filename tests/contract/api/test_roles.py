"""Custom roles, who may give which role to whom, and workloads that only their owner may change."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.contract.api.api_server import Answer, ApiServer
from tests.contract.api.test_people import TRAININGS, Person, add_projects, give_role

ROLES = "/api/v2/authorization/roles"
RULES = "/api/v1/authorization/access-rules"


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    """Two departments: `default` with the projects 1 and 2, `other` with project 3."""
    return add_projects(make_api())


def role_id(api: ApiServer, name: str) -> int:
    return next(int(role["id"]) for role in api.get("/api/v1/authorization/roles") if role["name"] == name)


def make_role(api: ApiServer, name: str, *sets: str, **members: Any) -> Answer:
    known = {one["name"]: one["id"] for one in api.get("/api/v1/authorization/permission-sets")}
    chosen = [{"id": known.get(one, one)} for one in sets]
    return api.call("POST", ROLES, {"name": name, "description": "", "permissionSets": chosen} | members)


def rule(subject: str, role: int, type: str, id: str) -> dict[str, Any]:
    return {"subjectId": subject, "subjectType": "user", "roleId": role, "scopeType": type, "scopeId": id}


def test_the_life_of_a_custom_role(api: ApiServer) -> None:
    made = make_role(api, "Steward", "Projects: view", "Workloads: view", "Trainings: manage")
    assert made.status == 201, made
    id = made.json["id"]
    assert (id, made.json["custom"], len(made.json["permissionSets"])) == (1001, True, 3)
    ada = Person(api, "ada@example.com")
    given = ada.may(id, "project", "1")
    assert ada.submit("one", "1").status == 202
    assert ada.call("GET", "/api/v1/secrets").status == 403
    body = {"name": "Steward", "description": "", "permissionSets": made.json["permissionSets"], "enabled": False}
    assert api.call("PUT", f"{ROLES}/{id}", body).status == 200
    assert ada.submit("two", "1").status == 403
    in_use = api.call("DELETE", f"{ROLES}/{id}")
    assert (in_use.status, "1 access rules" in in_use.json["details"]) == (400, True)
    assert api.call("DELETE", f"{RULES}/{given}").status == 204
    assert api.call("DELETE", f"{ROLES}/{id}").status == 204
    assert api.call("GET", f"{ROLES}/{id}").status == 404
    assert make_role(api, "Next", "Projects: view").json["id"] == 1002


def test_what_cannot_be_a_role(api: ApiServer) -> None:
    taken = make_role(api, "viewer", "nothing")
    assert taken.status == 400
    assert "a role named viewer already exists" in taken.json["details"]
    assert "there is no permission set 'nothing'" in taken.json["details"]
    assert "predefined role" in api.call("DELETE", f"{ROLES}/8").json["details"]


def test_rights_of_several_rules_add_up(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(role_id(api, "Viewer"), "department", "1")
    assert ada.submit("early", "2").status == 403
    give_role(api, "crew", role_id(api, "L2 researcher"), "project", "2", "group")
    assert api.call("PATCH", f"/api/v1/users/{ada.id}", {"groups": ["crew"]}).status == 200
    assert ada.submit("now", "2").status == 202
    assert ada.submit("there", "1").status == 403
    assert {one["name"] for one in ada.get("/api/v1/org-unit/projects")["projects"]} == {"default", "second"}


def test_a_department_administrator_stays_in_the_department(api: ApiServer) -> None:
    dean, ada = Person(api, "dean@example.com"), Person(api, "ada@example.com")
    dean.may(role_id(api, "Department administrator"), "department", "1")
    body = {"name": "new", "clusterId": api.cluster_id, "resources": []}
    assert dean.call("POST", "/api/v1/org-unit/projects", body | {"parentId": "2"}).status == 403
    made = dean.call("POST", "/api/v1/org-unit/projects", body | {"parentId": "1"})
    assert made.status == 201, made
    assert dean.call("POST", "/api/v1/org-unit/departments", body).status == 403
    researcher, administrator = role_id(api, "L1 researcher"), role_id(api, "System administrator")
    assert dean.call("POST", RULES, rule(ada.name, researcher, "project", made.json["id"])).status == 201
    for role, type, id in (
        (researcher, "project", "3"),
        (researcher, "tenant", ""),
        (administrator, "tenant", ""),
        (role_id(api, "Editor"), "department", "1"),
    ):
        answer = dean.call("POST", RULES, rule(dean.name, role, type, id))
        assert answer.status == 403, (role, type, answer)


def test_a_department_administrator_resets_only_their_own_people(api: ApiServer) -> None:
    dean, ada, bob = (Person(api, f"{name}@example.com") for name in ("dean", "ada", "bob"))
    dean.may(role_id(api, "Department administrator"), "department", "1")
    ada.may(role_id(api, "L1 researcher"), "project", "1")
    bob.may(role_id(api, "L1 researcher"), "project", "1")
    bob.may(role_id(api, "Viewer"), "project", "3")
    boss = next(user["id"] for user in api.get("/api/v1/users") if user["username"] == "admin@fairlead.local")
    assert {user["username"] for user in dean.get("/api/v1/users")} == {dean.name, ada.name}
    assert dean.call("POST", f"/api/v1/users/{ada.id}/password").status == 200
    for user in (bob.id, boss):
        assert dean.call("POST", f"/api/v1/users/{user}/password").status == 404
        assert dean.call("DELETE", f"/api/v1/users/{user}").status == 404
    assert dean.call("PATCH", f"/api/v1/users/{ada.id}", {"groups": ["administrators"]}).status == 403
    assert dean.call("PATCH", f"/api/v1/users/{ada.id}", {"machineUser": "daemon"}).status == 403


def test_only_the_owner_changes_a_protected_workload(api: ApiServer) -> None:
    ada, bob = Person(api, "ada@example.com"), Person(api, "bob@example.com")
    for person in (ada, bob):
        person.may(role_id(api, "L1 researcher"), "project", "1")
    theirs = ada.submit("theirs", "1").json["workloadId"]
    assert bob.call("POST", f"{TRAININGS}/{theirs}/suspend").status == 202
    api.context.settings = msgspec.structs.replace(api.context.settings, protects_ownership=True)
    refused = bob.call("DELETE", f"{TRAININGS}/{theirs}")
    assert (refused.status, "belongs to ada@example.com" in refused.json["details"]) == (403, True)
    assert bob.call("POST", f"/api/v1/workloads/{theirs}/exec?command=ls", b"").status == 403
    assert bob.get(f"{TRAININGS}/{theirs}")["name"] == "theirs"
    assert ada.call("POST", f"{TRAININGS}/{theirs}/resume").status == 202
    assert api.call("DELETE", f"{TRAININGS}/{theirs}").status == 202


def test_the_secret_of_a_departments_credential_is_not_a_researchers(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(role_id(api, "L1 researcher"), "project", "1")
    meta = {"name": "shared", "scope": "department", "departmentId": "1"}
    body = {"meta": meta, "spec": {"user": "robot", "password": "wrong horse"}}
    assert api.call("POST", "/api/v1/asset/credentials/password", body).status == 202
    [secret] = ada.get("/api/v1/secrets")["items"]
    assert ada.call("PUT", f"/api/v1/secrets/{secret['id']}", {"data": {"Password": "mine"}}).status == 403
