"""Attempts to keep access longer than one has it: by an access key, a one-time link, or a reference; and to read a spec
that a list does not show."""

from collections.abc import Callable
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from fairlead.control.people.sign_on.provider_sessions import CONFIRMATION_LIFETIME
from fairlead.model.clock import iso
from fairlead.model.errors import Unauthenticated
from tests.contract.api.api_server import Answer, ApiServer
from tests.contract.api.browser import SignOnBrowser
from tests.contract.api.test_people import ADMINISTRATOR, RESEARCHER, TRAININGS, Person, add_projects
from tests.contract.api.test_roles import role_id
from tests.contract.api.test_sign_on import exchange, settings_for
from tests.identity_provider import IdentityProvider

KEYS, SESSIONS, LINKS = "/api/v1/access-keys", "/api/v1/me/sessions", "/api/v1/session/links"
INFERENCES = "/api/v1/workloads/inferences"


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    return add_projects(make_api())


def token_of(api: ApiServer, key: Answer) -> str:
    login = {"grantType": "client_credentials"} | {name: key.json[name] for name in ("clientId", "clientSecret")}
    return str(api.call("POST", "/api/v1/token", login, token="").json["accessToken"])


def cookies_of(answer: Answer) -> dict[str, str]:
    jar = SimpleCookie(answer.headers.get("set-cookie", ""))
    return {"Cookie": "; ".join(f"{one.key}={one.value}" for one in jar.values())}


def test_an_access_key_gets_nothing_that_outlives_it(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(ADMINISTRATOR, "tenant", "")
    short = ada.call("POST", KEYS, {"name": "short", "expiresAt": iso(api.clock() + 60_000)})
    other = ada.call("POST", KEYS, {"name": "other"}).json["id"]
    token = token_of(api, short)
    session = ada.get(SESSIONS)["sessions"][0]["id"]
    for method, path, body in (
        ("POST", KEYS, {"name": "forever"}),
        ("POST", f"{KEYS}/{other}/secret", {}),
        ("DELETE", f"{KEYS}/{other}", None),
        ("POST", LINKS, None),
        ("DELETE", SESSIONS, None),
        ("DELETE", f"{SESSIONS}/{session}", None),
        ("POST", f"/api/v1/users/{ada.id}/logout", None),
        ("POST", f"/api/v1/users/{ada.id}/password", None),
        ("DELETE", f"/api/v1/administration/access-keys/{other}", None),
    ):
        refused = api.call(method, path, body, token=token)
        assert refused.status == 403, (method, path, refused)
    assert {one["name"] for one in ada.get(KEYS)["accessKeys"]} == {"short", "other"}
    own = f"{KEYS}/{short.json['id']}"
    assert api.call("POST", f"{own}/secret", {}, token=token).status == 200, "a program can rotate its own secret"
    assert ada.call("DELETE", own).status == 204


def test_a_cookie_for_a_url_ends_with_the_key_that_made_the_link(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    key = ada.call("POST", KEYS, {"name": "short", "expiresAt": iso(api.clock() + 60_000)})
    caller = api.authenticator.caller_of(token_of(api, key))

    async def sign() -> str:
        return api.authenticator.sign_like(caller, "url one", 3600)

    cookie = api.do(sign())
    assert api.authenticator.caller_of(cookie, "url one").name == ada.name
    api.clock.now += 61_000
    with pytest.raises(Unauthenticated, match="expired"):
        api.authenticator.caller_of(cookie, "url one")


def test_a_cookie_for_a_url_ends_with_the_session_that_made_the_link(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    caller = api.authenticator.caller_of(ada.token)

    async def sign() -> str:
        return api.authenticator.sign_like(caller, "url one", 3600)

    cookie = api.do(sign())
    (session,) = ada.get(SESSIONS)["sessions"]
    assert ada.call("DELETE", f"{SESSIONS}/{session['id']}").status == 204
    api.clock.now += 60_000
    with pytest.raises(Unauthenticated, match="was ended"):
        api.authenticator.caller_of(cookie, "url one")


def test_a_link_of_somebody_disabled_at_the_provider_ends_with_their_session(tmp_path: Path) -> None:
    with IdentityProvider() as provider, ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        person = provider.add("ann@example.com")
        browser = SignOnBrowser(api, provider)
        browser.sign_on()
        csrf = browser.get("/api/v1/session").json["csrfToken"]
        headers = browser.cookies() | {"X-Fairlead-CSRF": csrf}
        link = api.call("POST", LINKS, headers=headers, token="").json["path"]
        second = cookies_of(api.call("GET", link, token=""))
        assert api.call("GET", SESSIONS, headers=second, token="").status == 200
        person.is_enabled = False
        api.clock.now += CONFIRMATION_LIFETIME
        assert api.call("GET", SESSIONS, headers=second, token="").status == 401


def test_an_exchanged_token_makes_no_session(tmp_path: Path) -> None:
    with IdentityProvider() as provider, ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        person = provider.add("ann@example.com")
        token = exchange(api, provider.sign(provider.claims_of(person))).json["accessToken"]
        refused = api.call("POST", LINKS, token=token)
        assert (refused.status, refused.json["details"].partition(";")[0]) == (
            403,
            "An exchanged token cannot sign a browser in",
        )


def test_an_environment_names_only_credentials_that_its_editor_sees(api: ApiServer) -> None:
    ada, bob = Person(api, "ada@example.com"), Person(api, "bob@example.com")
    ada.may(RESEARCHER, "project", "1")
    bob.may(RESEARCHER, "project", "3")
    secret = {"keyValuePairs": [{"key": "k", "value": "v"}]}
    meta = {"name": "bobs", "scope": "project", "projectId": 3}
    made = bob.call("POST", "/api/v1/asset/credentials/generic-secret", {"meta": meta, "spec": secret})
    credential = made.json["meta"]["id"]
    variable = {"name": "X", "credential": {"assetId": credential, "key": "k"}}
    body: dict[str, Any] = {"spec": {"image": "i", "environmentVariables": [variable]}}
    refused = ada.call(
        "POST", "/api/v1/asset/environment", body | {"meta": {"name": "e", "scope": "project", "projectId": 1}}
    )
    assert refused.status == 400
    assert "spec.environmentVariables[0].credential.assetId: there is no credential" in refused.json["details"]
    own = bob.call(
        "POST", "/api/v1/asset/environment", body | {"meta": {"name": "e", "scope": "project", "projectId": 3}}
    )
    assert own.status == 202, own


def test_a_role_that_lists_inferences_but_may_not_view_them_gets_no_spec(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    ada.may(role_id(api, "L2 researcher"), "project", "1")
    spec: dict[str, Any] = {"image": "i", "command": "sleep CANARY", "servingPort": {"container": 8080}}
    spec["environmentVariables"] = [{"name": "P", "value": "CANARY"}]
    body = {"name": "served", "projectId": "1", "clusterId": api.cluster_id, "spec": spec}
    id = api.call("POST", INFERENCES, body).json["workloadId"]
    own = api.training("own", projectId="1")
    own["spec"]["environmentVariables"] = [{"name": "Q", "value": "mine"}]
    assert ada.call("POST", TRAININGS, own).status == 202
    refused = {
        path: ada.call("GET", f"/api/v1/workloads/{path}").status
        for path in (f"inferences/{id}", f"{id}/as/yaml", f"{id}/as/kubernetes", f"{id}/explanation", f"{id}/logs")
    }
    assert set(refused.values()) == {403}, refused
    listed = {one["name"]: one for one in ada.get("/api/v1/workloads")["workloads"]}
    assert (listed["own"]["environmentVariables"], "environmentVariables" in listed["served"]) == ({"Q": "mine"}, False)
    for path in ("/api/v1/workloads", f"/api/v1/workloads/{id}", f"/api/v1/workloads/{id}/events"):
        assert b"CANARY" not in ada.call("GET", path).body, path
    assert b"CANARY" in api.call("GET", f"/api/v1/workloads/{id}").body


def test_a_workload_of_another_project_answers_as_one_that_does_not_exist(api: ApiServer) -> None:
    """On every operation that names one, in the same words: an id that somebody saw elsewhere tells nothing."""
    ada = Person(api, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    foreign, unknown = api.submit("secret", projectId="3"), "99999999-9999-4999-8999-999999999999"
    compared, differing = 0, []
    for path, item in api.get("/api/openapi.json")["paths"].items():
        name = "{WorkloadV2Id}" if "{WorkloadV2Id}" in path else "{workloadId}"
        if path.count("{") == path.count(name) == 1:
            for method in item:
                body: dict[str, Any] | None = None if method in ("get", "delete") else {}
                one, other = (ada.call(method.upper(), path.replace(name, id), body) for id in (foreign, unknown))
                compared += 1
                if (one.status, one.body.replace(foreign.encode(), unknown.encode())) != (other.status, other.body):
                    differing.append((method, path, one, other))
    assert differing == []
    assert compared > 40
