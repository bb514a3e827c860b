"""Users, service accounts, access keys and access rules: who gets in, who may do what where, and when no longer."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

RESEARCHER, ADMINISTRATOR = 2, 1
TRAININGS = "/api/v1/workloads/trainings"


class Person:
    """A user of the API, logged in."""

    def __init__(self, api: ApiServer, mail: str) -> None:
        self.api = api
        made = api.call("POST", "/api/v1/users", {"email": mail})
        assert made.status == 201, made
        assert find_disagreements("post", "/api/v1/users", 201, made.json) == []
        self.id = made.json["id"]
        self.name = mail
        self.password = made.json["tempPassword"]
        self.token = self.log_in()

    def log_in(self) -> str:
        body = {"grantType": "password", "username": self.name, "password": self.password}
        return str(self.api.call("POST", "/api/v1/token", body, token="").json.get("accessToken", ""))

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        return self.api.call(method, path, body, token=self.token)

    def get(self, path: str) -> Any:
        answer = self.call("GET", path)
        assert answer.status == 200, answer
        return answer.json

    def may(self, role: int, scope_type: str, scope_id: str) -> int:
        return give_role(self.api, self.name, role, scope_type, scope_id)

    def submit(self, name: str, project: str) -> Answer:
        return self.call("POST", TRAININGS, self.api.training(name, projectId=project))


def give_role(
    api: ApiServer, subject: str, role: int, scope_type: str, scope_id: str, subject_type: str = "user"
) -> int:
    rule = {
        "subjectId": subject,
        "subjectType": subject_type,
        "roleId": role,
        "scopeType": scope_type,
        "scopeId": scope_id,
    }
    answer = api.call("POST", "/api/v1/authorization/access-rules", rule)
    assert answer.status == 201, answer
    assert find_disagreements("post", "/api/v1/authorization/access-rules", 201, answer.json) == []
    return int(answer.json["id"])


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    """Two departments: `default` with the projects 1 and 2, `other` with project 3."""
    return add_projects(make_api())


def add_projects(api: ApiServer) -> ApiServer:
    cluster = api.cluster_id
    made = api.call("POST", "/api/v1/org-unit/departments", {"name": "other", "clusterId": cluster, "resources": []})
    assert made.status == 201, made
    for name, parent in (("second", "1"), ("third", made.json["id"])):
        body: dict[str, Any] = {"name": name, "clusterId": cluster, "resources": [], "parentId": parent}
        assert api.call("POST", "/api/v1/org-unit/projects", body).status == 201
    return api


def test_a_researcher_sees_and_touches_only_their_project(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    theirs = api.submit("theirs", projectId="2")
    assert ada.call("GET", "/api/v1/workloads").status == 403
    assert ada.submit("early", "1").status == 403
    ada.may(RESEARCHER, "project", "1")
    mine = ada.submit("mine", "1")
    assert mine.status == 202, mine
    assert mine.json["createdBy"] == "ada@example.com"
    assert [one["name"] for one in ada.get("/api/v1/workloads")["workloads"]] == ["mine"]
    assert ada.get("/api/v1/workloads/count") == {"count": 1}
    assert [one["name"] for one in ada.get("/api/v1/org-unit/projects")["projects"]] == ["default"]
    assert [one["name"] for one in ada.get("/api/v1/org-unit/departments")["departments"]] == ["default"]
    assert ada.submit("foreign", "2").status == 403
    assert ada.submit("nowhere", "99").status == 403
    for method, path in (
        ("GET", f"{TRAININGS}/{theirs}"),
        ("GET", f"/api/v1/workloads/{theirs}"),
        ("GET", f"/api/v1/workloads/{theirs}/pods"),
        ("GET", f"/api/v1/workloads/{theirs}/events"),
        ("GET", f"/api/v1/workloads/{theirs}/history"),
        ("GET", f"/api/v1/workloads/{theirs}/explanation"),
        ("GET", f"/api/v1/workloads/{theirs}/logs"),
        ("POST", f"{TRAININGS}/{theirs}/suspend"),
        ("DELETE", f"{TRAININGS}/{theirs}"),
        ("GET", "/api/v1/org-unit/projects/2"),
        ("GET", "/api/v1/org-unit/departments/2"),
    ):
        assert ada.call(method, path).status == 404, (method, path)
    assert ada.call("DELETE", f"{TRAININGS}/{mine.json['workloadId']}").status == 202


def test_what_a_researcher_may_not_do_anywhere_is_forbidden(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    for method, path, body in (
        ("GET", "/api/v1/users", None),
        ("POST", "/api/v1/users", {"email": "eve@example.com"}),
        ("DELETE", f"/api/v1/users/{ada.id}", None),
        ("GET", "/api/v1/service-accounts", None),
        ("POST", "/api/v1/service-accounts", {"name": "bot"}),
        ("GET", "/api/v1/authorization/access-rules", None),
        ("GET", "/api/v1/administration/access-keys", None),
        ("GET", "/api/v1/nodes", None),
        (
            "POST",
            "/api/v1/org-unit/projects",
            {"name": "own", "clusterId": api.cluster_id, "resources": []},
        ),
        ("DELETE", "/api/v1/org-unit/projects/1", None),
    ):
        answer = ada.call(method, path, body)
        assert answer.status == 403, (method, path, answer)
        assert answer.json["message"] == "You do not have sufficient permissions."
    assert ada.get("/api/v1/node-pools")
    assert [rule["scopeId"] for rule in ada.get("/api/v1/authorization/me/access-rules")["accessRules"]["accessRules"]]


def test_a_role_in_a_department_covers_its_projects_also_later_ones(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "department", "1")
    assert {one["name"] for one in ada.get("/api/v1/org-unit/projects")["projects"]} == {"default", "second"}
    body = {"name": "later", "clusterId": api.cluster_id, "resources": [], "parentId": "1"}
    later = api.call("POST", "/api/v1/org-unit/projects", body).json["id"]
    assert ada.submit("there", later).status == 202
    assert ada.submit("elsewhere", "3").status == 403


def test_a_group_gives_its_members_a_role(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    give_role(api, "vision", RESEARCHER, "project", "2", "group")
    assert ada.submit("early", "2").status == 403
    assert api.call("PATCH", f"/api/v1/users/{ada.id}", {"groups": ["vision"]}).status == 200
    assert ada.submit("now", "2").status == 202


def test_a_rule_ends_at_once(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    rule = ada.may(RESEARCHER, "project", "1")
    assert ada.submit("before", "1").status == 202
    assert api.call("DELETE", f"/api/v1/authorization/access-rules/{rule}").status == 204
    assert ada.submit("after", "1").status == 403
    assert ada.call("GET", "/api/v1/workloads").status == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "want_status"),
    [
        ("DELETE", "", None, 204),
        ("PATCH", "", {"enabled": False}, 200),
        ("POST", "/password", None, 200),
        ("POST", "/logout", None, 200),
    ],
    ids=["deleted", "disabled", "password reset", "logged out"],
)
def test_tokens_of_a_changed_account_are_worth_nothing(
    api: ApiServer, method: str, path: str, body: Any, want_status: int
) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    login = {"grantType": "password", "username": ada.name, "password": ada.password}
    refresh = api.call("POST", "/api/v1/token", login, token="").json["refreshToken"]
    assert ada.call("GET", "/api/v1/workloads").status == 200
    assert api.call(method, f"/api/v1/users/{ada.id}{path}", body).status == want_status
    answer = ada.call("GET", "/api/v1/workloads")
    assert answer.status == 401, answer
    again = {"grantType": "refresh_token", "refreshToken": refresh}
    assert api.call("POST", "/api/v1/token", again, token="").status == 400
    if path != "/logout":
        assert ada.log_in() == ""


def test_users_change_their_own_password(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    wrong = {"currentPassword": "wrong", "newPassword": "rivers climb slowly"}
    assert ada.call("POST", "/api/v1/me/password", wrong).status == 400
    weak = {"currentPassword": ada.password, "newPassword": "password1234"}
    assert "tried first" in ada.call("POST", "/api/v1/me/password", weak).json["details"]
    right = {"currentPassword": ada.password, "newPassword": "rivers climb slowly"}
    answer = ada.call("POST", "/api/v1/me/password", right)
    assert answer.status == 200, answer
    assert find_disagreements("post", "/api/v1/me/password", 200, answer.json) == []
    assert ada.log_in() == ""
    ada.password = "rivers climb slowly"
    ada.token = ada.log_in()
    assert ada.get("/api/v1/authorization/me/access-rules/count") == {"count": 0}


def test_an_access_key_acts_as_its_user_and_ends_with_them(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    made = ada.call("POST", "/api/v1/access-keys", {"name": "laptop"})
    assert made.status == 201, made
    assert find_disagreements("post", "/api/v1/access-keys", 201, made.json) == []
    assert ada.call("POST", "/api/v1/access-keys", {"name": "laptop"}).status == 409
    one = ada.call("GET", f"/api/v1/access-keys/{made.json['id']}")
    assert find_disagreements("get", "/api/v1/access-keys/{accessKeyId}", one.status, one.json) == []
    login = {"grantType": "client_credentials"} | {name: made.json[name] for name in ("clientId", "clientSecret")}
    token = api.call("POST", "/api/v1/token", login, token="").json["accessToken"]
    sent = api.call("POST", TRAININGS, api.training("keyed"), token=token)
    assert sent.status == 202, sent
    assert sent.json["createdBy"] == "ada@example.com"
    assert api.get("/api/v1/administration/access-keys")["accessKeys"][0]["createdBy"] == "ada@example.com"
    assert api.call("GET", f"/api/v1/access-keys/{made.json['id']}").status == 404
    assert ada.call("DELETE", f"/api/v1/access-keys/{made.json['id']}").status == 204
    assert api.call("GET", "/api/v1/workloads", token=token).status == 401
    assert api.call("POST", "/api/v1/token", login, token="").status == 400


def test_a_service_account_has_rules_of_its_own(api: ApiServer) -> None:
    made = api.call("POST", "/api/v1/service-accounts", {"name": "robot"})
    assert made.status == 201, made
    assert find_disagreements("post", "/api/v1/service-accounts", 201, made.json) == []
    assert api.call("POST", "/api/v1/apps", {"name": "robot"}).status == 409
    login = {"grantType": "client_credentials"} | {name: made.json[name] for name in ("clientId", "clientSecret")}
    token = api.call("POST", "/api/v1/token", login, token="").json["accessToken"]
    assert api.call("POST", TRAININGS, api.training("early"), token=token).status == 403
    give_role(api, "robot", RESEARCHER, "project", "1", "service-account")
    assert api.call("POST", TRAININGS, api.training("works"), token=token).json["createdBy"] == "robot"
    path = f"/api/v1/service-accounts/{made.json['id']}"
    renewed = api.call("POST", f"{path}/secret")
    assert find_disagreements("post", "/api/v1/service-accounts/{serviceAccountId}/secret", 200, renewed.json) == []
    assert api.call("GET", "/api/v1/workloads", token=token).status == 401
    assert api.call("PATCH", path, {"enabled": False}).status == 200
    login["clientSecret"] = renewed.json["clientSecret"]
    assert api.call("POST", "/api/v1/token", login, token="").status == 400


def test_the_last_administrator_stays(api: ApiServer) -> None:
    rules = api.get("/api/v1/authorization/access-rules")["accessRules"]
    first, second = (rule["id"] for rule in rules)
    assert api.call("DELETE", f"/api/v1/authorization/access-rules/{first}").status == 204
    refused = api.call("DELETE", f"/api/v1/authorization/access-rules/{second}")
    assert refused.status == 400, refused
    assert "make somebody else administrator first" in refused.json["details"]


def test_nothing_that_is_kept_of_an_account_is_its_secret(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    for path in ("/api/v1/users", f"/api/v1/users/{ada.id}"):
        body = api.call("GET", path).body
        assert ada.password.encode() not in body
        assert b"scrypt" not in body
    database = b"".join(path.read_bytes() for path in api.folder.glob("fairlead.db*"))
    assert ada.password.encode() not in database


def test_secrets_are_their_projects_and_credentials_their_users(api: ApiServer) -> None:
    ada, bob = Person(api, "ada@example.com"), Person(api, "bob@example.com")
    ada.may(RESEARCHER, "project", "1")
    bob.may(RESEARCHER, "project", "2")
    secret = ada.call("POST", "/api/v1/secrets", {"name": "s", "projectId": "1", "data": {"k": "v"}})
    assert secret.status == 201, secret
    assert bob.call("GET", f"/api/v1/secrets/{secret.json['id']}").status == 404
    assert bob.call("DELETE", f"/api/v1/secrets/{secret.json['id']}").status == 404
    assert bob.get("/api/v1/secrets")["items"] == []
    assert [one["name"] for one in ada.get("/api/v1/secrets")["items"]] == ["s"]
    assert bob.call("POST", "/api/v1/secrets", {"name": "s", "projectId": "1", "data": {}}).status == 403
    own = ada.call("POST", "/api/v1/user-credentials", {"name": "mine", "data": {"k": "v"}})
    assert own.status == 201, own
    bob.may(RESEARCHER, "project", "1")
    for who in (bob, api):
        assert who.call("GET", f"/api/v1/user-credentials/{own.json['id']}").status == 404
        assert who.call("GET", f"/api/v1/secrets/{own.json['id']}").status == 404
    variables = [{"name": "A", "userCredential": {"name": "mine", "key": "k"}}]
    spec = {"image": "python:3", "environmentVariables": variables}
    assert ada.call("POST", TRAININGS, api.training("uses", spec=spec)).status == 202
    refused = bob.call("POST", TRAININGS, api.training("tries", spec=spec))
    assert refused.status == 400, refused
    assert "there is no user credential 'mine'" in refused.json["details"]


BATCH = "/api/v1/authorization/access-rules/batch"


def test_rules_are_given_and_taken_many_at_a_time(api: ApiServer) -> None:
    ada, grace = Person(api, "ada-many@example.com"), Person(api, "grace-many@example.com")
    payload = {
        "subjects": [{"subjectId": name, "subjectType": "user"} for name in (ada.name, grace.name, "nobody")],
        "roleId": RESEARCHER,
        "scopes": [{"scopeId": "1", "scopeType": "project"}],
    }
    made = api.call("POST", f"{BATCH}-create", {"payload": payload})
    assert made.status == 200, made
    assert find_disagreements("post", f"{BATCH}-create", 200, made.json) == []
    assert [rule["subjectId"] for rule in made.json["succeeded"]] == [ada.name, grace.name]
    (failed,) = made.json["failed"]
    assert (failed["code"], failed["payload"]["subjectId"]) == (400, "nobody")
    assert "there is no user 'nobody'" in failed["message"]
    again = api.call("POST", f"{BATCH}-create", {"payload": payload}).json
    assert [each["code"] for each in again["failed"]] == [409, 409, 400]

    first, second = (rule["id"] for rule in made.json["succeeded"])
    ids = [str(first), str(uuid.UUID(int=second)), str(uuid.UUID(int=987_654))]
    looked = api.call("POST", BATCH, {"action": "validate_delete", "ids": ids})
    assert find_disagreements("post", BATCH, 200, looked.json | {"succeeded": [ids[1]]}) == []
    assert looked.json["succeeded"] == ids[:2]
    assert ada.submit("still-may", "1").status == 202
    gone = api.call("POST", BATCH, {"action": "delete", "ids": ids}).json
    assert gone["succeeded"] == ids[:2]
    assert [(each["id"], each["code"]) for each in gone["failed"]] == [(ids[2], 404)]
    assert ada.submit("no-longer", "1").status in (400, 403, 404)
    assert grace.call("POST", BATCH, {"action": "delete", "ids": ["1"]}).status == 403
    assert grace.call("POST", f"{BATCH}-create", {"payload": payload}).status == 403


def test_where_somebody_may_do_what(api: ApiServer) -> None:
    ada = Person(api, "ada-where@example.com")
    ada.may(RESEARCHER, "project", "1")
    path = "/api/v1/authorization/permitted-scopes"
    own = ada.call("POST", path, {"resourceType": "trainings"})
    assert find_disagreements("post", path, 200, own.json) == []
    assert own.json["create"]["projects"] == ["1"]
    assert ada.call("POST", path, {"resourceType": "users"}).json["create"]["projects"] == []
    only = ada.call("POST", path, {"resourceType": "projects", "action": "read"}).json
    assert only["delete"]["projects"] == []
    everywhere = api.call("POST", path, {"resourceType": "users"}).json
    assert everywhere["delete"]["tenants"] or everywhere["delete"]["clusters"]
