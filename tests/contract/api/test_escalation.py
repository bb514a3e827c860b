"""Attempts to get rights that nobody gave: by somebody else's account, by groups, by roles, by names.

`docs/designs/0014-attempted-bypasses.md` lists these and further attempts.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.api.api_server import ApiServer
from tests.contract.api.test_people import Person, add_projects, give_role

ROLES = "/api/v2/authorization/roles"
RULES = "/api/v1/authorization/access-rules"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer(tmp_path_factory.mktemp("api")) as api:
        yield add_projects(api)


def _role(api: ApiServer, name: str) -> int:
    return next(role["id"] for role in api.get("/api/v1/authorization/roles") if role["name"] == name)


def _sets(api: ApiServer, *names: str) -> list[dict[str, str]]:
    """Permission sets by name; all without a name."""
    known = {one["name"]: one["id"] for one in api.get("/api/v1/authorization/permission-sets")}
    return [{"id": known[name]} for name in names or known]


def _custom(api: ApiServer, name: str, *sets: str) -> int:
    made = api.call("POST", ROLES, {"name": name, "description": "", "permissionSets": _sets(api, *sets)})
    assert made.status == 201, made
    return int(made.json["id"])


def _person(api: ApiServer, name: str, role: int) -> Person:
    """Somebody with a role for the whole installation."""
    person = Person(api, f"{name}@example.com")
    person.may(role, "tenant", "")
    return person


@pytest.fixture(scope="module")
def dean(api: ApiServer) -> Person:
    """May change all users and service accounts, and is no administrator."""
    return _person(api, "dean", _role(api, "Department administrator"))


@pytest.fixture(scope="module")
def ids(api: ApiServer) -> dict[str, str]:
    """What belongs to administrators."""
    boss = Person(api, "boss@example.com")
    rule = boss.may(1, "tenant", "")
    key = boss.call("POST", "/api/v1/access-keys", {"name": "boss-key"}).json["id"]
    app = next(one["id"] for one in api.get("/api/v1/service-accounts") if one["name"] == "fairlead")
    return {"user": boss.id, "app": app, "key": key, "rule": str(rule)}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/users/{user}/password", None),
        ("POST", "/api/v1/users/{user}/reset-code", None),
        ("PATCH", "/api/v1/users/{user}", {"enabled": False}),
        ("PATCH", "/api/v1/users/{user}", {"signOn": True}),
        ("DELETE", "/api/v1/users/{user}", None),
        ("POST", "/api/v1/service-accounts/{app}/secret", None),
        ("POST", "/api/v1/apps/{app}/secret", None),
        ("PATCH", "/api/v1/service-accounts/{app}", {"enabled": False}),
        ("DELETE", "/api/v1/service-accounts/{app}", None),
        ("DELETE", "/api/v1/administration/access-keys/{key}", None),
        ("DELETE", f"{RULES}/{{rule}}", None),
    ],
)
def test_an_account_of_an_administrator_is_out_of_reach(
    dean: Person, ids: dict[str, str], method: str, path: str, body: Any
) -> None:
    answer = dean.call(method, path.format(**ids), body)
    assert answer.status == 403, answer


def test_groups_do_not_give_more_than_their_giver_has(api: ApiServer) -> None:
    keeper = _person(api, "keeper", _custom(api, "Keeper of users", "Users: manage"))
    give_role(api, "administrators", 1, "tenant", "", "group")
    give_role(api, "editors", _role(api, "Editor"), "project", "3", "group")
    give_role(api, "readers", _role(api, "Viewer"), "project", "3", "group")
    path = f"/api/v1/users/{keeper.id}"
    for group in ("administrators", "editors"):
        assert keeper.call("PATCH", path, {"groups": [group]}).status == 403
    assert keeper.call("PATCH", path, {"groups": ["readers"]}).status == 200


def test_a_role_cannot_be_widened_beyond_its_editor(api: ApiServer) -> None:
    role = _custom(api, "Keeper of roles", "Roles: manage")
    keeper = _person(api, "roles", role)
    body = {"name": "Keeper of roles", "description": ""}
    for sets in (_sets(api), _sets(api, "Roles: manage", "Credentials: manage"), _sets(api, "Audit log: view")):
        assert keeper.call("PUT", f"{ROLES}/{role}", body | {"permissionSets": sets}).status == 403
        assert keeper.call("POST", ROLES, {"name": "x", "description": "", "permissionSets": sets}).status == 403
    held = {**body, "permissionSets": _sets(api, "Roles: view", "Roles: manage")}
    assert keeper.call("PUT", f"{ROLES}/{role}", held).status in (200, 204)
    off = {"permissionSets": _sets(api, "Users: manage"), "enabled": False, "name": "Off", "description": ""}
    assert keeper.call("POST", ROLES, off).status == 403


def test_a_manager_does_not_give_away_the_audit(api: ApiServer) -> None:
    manager = _person(api, "manager", _role(api, "Research manager"))
    auditor = _custom(api, "Auditor", "Audit log: view")
    rule = {"subjectId": manager.name, "subjectType": "user", "scopeType": "tenant", "scopeId": ""}
    assert manager.call("POST", RULES, rule | {"roleId": auditor}).status == 403
    researcher = rule | {"roleId": _role(api, "L2 researcher"), "scopeType": "project", "scopeId": "1"}
    assert manager.call("POST", RULES, researcher).status == 201


def test_the_audit_has_no_hash_of_a_reset_code(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    assert api.call("POST", f"/api/v1/users/{ada.id}/reset-code").status in (200, 201)
    found = api.get("/api/v1/audit/log?start=2023-01-01T00:00:00Z&end=2030-01-01T00:00:00Z&numberOfSamples=100")
    text = str(found)
    assert ada.name in text
    assert "reset_hash" not in text
    assert "login_sessions" not in text


def test_a_role_in_a_department_does_not_hand_over_an_account(api: ApiServer) -> None:
    """Whoever knows its password would have the rights that it gets elsewhere later."""
    chief, deputy = (Person(api, f"{name}@example.com") for name in ("chief", "deputy"))
    for one in (chief, deputy):
        one.may(_role(api, "Department administrator"), "department", "1")
    victim, researcher = Person(api, "victim@example.com"), _role(api, "L1 researcher")
    body = {"subjectId": victim.name, "subjectType": "user", "roleId": researcher, "scopeType": "project"}
    rule = {**body, "scopeId": "1", "clusterId": api.cluster_id}
    assert chief.call("POST", RULES, rule).status == 201
    for one in (chief, deputy):
        for path in ("password", "reset-code"):
            refused = one.call("POST", f"/api/v1/users/{victim.id}/{path}")
            assert refused.status == 403, refused
            assert "ask a system administrator" in refused.json["details"]
        assert one.call("DELETE", f"/api/v1/users/{victim.id}").status == 403
    # A system administrator entrusts the account to the department by a role of theirs.
    victim.may(researcher, "project", "2")
    assert deputy.call("POST", f"/api/v1/users/{victim.id}/reset-code").status == 201


def test_an_account_that_a_department_created_is_administered_by_its_administrators(api: ApiServer) -> None:
    first, second = (Person(api, f"{name}@example.com") for name in ("first", "second"))
    for one in (first, second):
        one.may(_role(api, "Department administrator"), "department", "1")
    made = first.call("POST", "/api/v1/users", {"email": "new@example.com"}).json["id"]
    role = {"roleId": _role(api, "L1 researcher"), "scopeType": "project", "scopeId": "1"}
    rule = {"subjectId": "new@example.com", "subjectType": "user", **role, "clusterId": api.cluster_id}
    assert second.call("POST", f"/api/v1/users/{made}/reset-code").status == 404
    assert first.call("POST", RULES, rule).status == 201
    assert second.call("POST", f"/api/v1/users/{made}/reset-code").status == 201


def test_a_manifest_in_another_namespace_does_not_reveal_a_hidden_project(api: ApiServer) -> None:
    stranger = Person(api, "stranger@example.com")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "kube-system"}}
    manifest = {**pod, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    body = {"metadata": {"name": "probe", "projectId": "1"}, "manifest": manifest}
    assert "default" in str(api.call("POST", "/api/v2/workloads", body).json)
    refused = stranger.call("POST", "/api/v2/workloads", body)
    assert refused.status == 403
    assert "default" not in str(refused.json)


@pytest.mark.parametrize("name", ["system", "kubernetes", "bootstrap", "sign-on"])
def test_nobody_has_a_name_under_which_the_server_acts(api: ApiServer, dean: Person, name: str) -> None:
    """Workloads that were applied with kubectl belong to `kubernetes`, also if owners are protected from others."""
    refused = dean.call("POST", "/api/v1/service-accounts", {"name": name})
    assert (refused.status, "under which the server itself acts" in refused.json["details"]) == (400, True)
