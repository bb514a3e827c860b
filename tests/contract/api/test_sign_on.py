"""Sign-on with an identity provider: browsers, terminals, scripts, groups, and how sessions follow the provider."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fairlead.control.people.sign_on.pkce import challenge_of
from fairlead.control.people.sign_on.provider_sessions import CONFIRMATION_LIFETIME, GRACE, RETRY
from fairlead.control.people.sign_on.settings import SignOnSettings
from tests.contract.api.api_server import Answer, ApiServer
from tests.contract.api.browser import SignOnBrowser
from tests.identity_provider import CLIENT, SECRET, IdentityProvider

#: Everybody may read this.
OWN = "/api/v1/me/sessions"


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


def settings_for(provider: IdentityProvider, folder: Path, **members: Any) -> SignOnSettings:
    secret = folder / "client-secret"
    secret.write_text(f"{SECRET}\n")
    base = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret_file": str(secret), "name": "Test"}
    return SignOnSettings(**{**base, **members})


@pytest.fixture
def api(provider: IdentityProvider, tmp_path: Path) -> Iterator[ApiServer]:
    with ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        yield api


def grant(api: ApiServer, subject: str, type: str, role: str = "Viewer") -> str:
    """An access rule for the first project; returns its id."""
    roles = {one["name"]: one["id"] for one in api.get("/api/v1/authorization/roles")}
    body = {
        "subjectId": subject,
        "subjectType": type,
        "roleId": roles[role],
        "scopeId": "1",
        "scopeType": "project",
        "clusterId": api.cluster_id,
    }
    made = api.call("POST", "/api/v1/authorization/access-rules", body)
    assert made.status == 201, made
    return str(made.json["id"])


def exchange(api: ApiServer, token: str) -> Answer:
    body = {"grantType": "external_token_exchange", "externalToken": token}
    return api.call("POST", "/api/v1/token", body, token="")


def find_user(api: ApiServer, name: str) -> dict[str, Any]:
    return next(user for user in api.get("/api/v1/users") if user["username"] == name)


def projects_of(api: ApiServer, **access: Any) -> list[str]:
    """The projects that a caller sees; without any right the list is refused."""
    answer = api.call("GET", "/api/v1/org-unit/projects", **access)
    assert answer.status in (200, 403), answer
    if answer.status == 403:
        return []
    return [one["name"] for one in answer.json["projects"]]


def test_the_server_says_how_people_sign_on(api: ApiServer) -> None:
    want = {"enabled": True, "name": "Test", "startPath": "/sign-on/start", "hasDeviceFlow": True}
    assert api.call("GET", "/api/v1/sign-on", token="").json == want


def test_a_browser_signs_on_and_the_user_is_made(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("Ann@Example.com", ("lab",))
    browser = SignOnBrowser(api, provider)
    answer = browser.sign_on()
    assert answer.status == 303, answer
    assert answer.headers["location"] == "/ui/"
    assert browser.session() == "ann@example.com"
    user = find_user(api, "ann@example.com")
    assert (user["groups"], user["isLocal"], user["createdBy"]) == (["lab"], False, "sign-on")
    assert projects_of(api, headers=browser.cookies(), token="") == []


def test_both_cookies_are_out_of_reach_of_scripts(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    state, session = browser.set_cookies["fairlead-sign-on"], browser.set_cookies["fairlead-session"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/sign-on"} <= set(state.split("; "))
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(session.split("; "))
    assert browser.jar["fairlead-sign-on"] == "", "the state is removed when it was used"


def test_groups_of_the_provider_have_the_rights_of_access_rules(api: ApiServer, provider: IdentityProvider) -> None:
    grant(api, "lab", "group")
    provider.add("ann@example.com", ("lab",))
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    assert projects_of(api, headers=browser.cookies(), token="") == ["default"]


def test_a_second_sign_on_finds_the_same_user_under_a_new_address(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add("ann@example.com")
    SignOnBrowser(api, provider).sign_on()
    person.email = "ann.smith@example.com"
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    assert browser.session() == "ann@example.com"
    assert len(api.get("/api/v1/users")) == 2


def test_rights_removed_here_take_effect_at_once(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    rule = grant(api, "ann@example.com", "user")
    assert projects_of(api, headers=browser.cookies(), token="") == ["default"]
    assert api.call("DELETE", f"/api/v1/authorization/access-rules/{rule}").status in (200, 204)
    assert projects_of(api, headers=browser.cookies(), token="") == []


def test_groups_changed_at_the_provider_take_effect_within_a_minute(api: ApiServer, provider: IdentityProvider) -> None:
    grant(api, "lab", "group")
    person = provider.add("ann@example.com", ("lab",))
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    for groups, want in (((), []), (("lab", "other"), ["default"]), (("other",), [])):
        person.groups = groups
        api.clock.now += CONFIRMATION_LIFETIME
        assert projects_of(api, headers=browser.cookies(), token="") == want
    assert CONFIRMATION_LIFETIME < 60_000
    assert find_user(api, "ann@example.com")["groups"] == ["other"]


def test_a_session_ends_when_the_provider_refuses_its_person(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    person.is_enabled = False
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200
    api.clock.now += CONFIRMATION_LIFETIME
    for _ in range(2):
        assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 401
    assert browser.session() == ""


def test_a_session_outlives_a_provider_that_is_away_for_an_hour(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    provider.is_away = True
    api.clock.now += CONFIRMATION_LIFETIME
    asked = len(provider.asked)
    for _ in range(3):
        assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200
    assert len(provider.asked) == asked + 1, "it is not asked at every request"
    api.clock.now += GRACE + RETRY
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 401
    provider.is_away = False
    api.clock.now += CONFIRMATION_LIFETIME
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200


def test_a_session_ends_if_the_provider_fails_to_confirm_it_twice(api: ApiServer, provider: IdentityProvider) -> None:
    """Dex answers so if a person was removed; once, it may have been a failure."""
    provider.is_like_dex = True
    person = provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()

    def status() -> int:
        return api.call("GET", OWN, headers=browser.cookies(), token="").status

    for is_there in (False, True, False):
        person.is_enabled = is_there
        api.clock.now += CONFIRMATION_LIFETIME
        assert status() == 200
    api.clock.now += RETRY
    assert status() == 401


def test_a_provider_that_is_back_is_asked_again_soon(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com", ("lab",))
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    provider.is_away = True
    api.clock.now += CONFIRMATION_LIFETIME
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200
    provider.is_away = False
    provider.people["ann@example.com"].groups = ("lab", "night-shift")
    api.clock.now += RETRY
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200
    assert find_user(api, "ann@example.com")["groups"] == ["lab", "night-shift"]


def test_no_user_can_sign_on_while_the_provider_is_unavailable(api: ApiServer, provider: IdentityProvider) -> None:
    provider.is_away = True
    answer = api.call("GET", "/sign-on/start", token="")
    assert answer.status == 503, answer
    assert exchange(api, provider.sign(provider.claims_of(provider.add("ann@example.com")))).status == 503
    assert api.call("GET", "/api/v1/sign-on", token="").json["hasDeviceFlow"] is False


def test_a_disabled_user_does_not_sign_on(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add("ann@example.com")
    browser = SignOnBrowser(api, provider)
    browser.sign_on()
    user = find_user(api, "ann@example.com")
    assert api.call("PATCH", f"/api/v1/users/{user['id']}", {"enabled": False}).status == 200
    assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 401
    answer = SignOnBrowser(api, provider).sign_on()
    assert answer.status == 400
    assert b"disabled" in answer.body
    assert exchange(api, provider.sign(provider.claims_of(person))).status == 400


def test_a_user_of_the_provider_has_no_password(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com")
    SignOnBrowser(api, provider).sign_on()
    for password in ("x", ""):
        body = {"grantType": "password", "username": "ann@example.com", "password": password}
        assert api.call("POST", "/api/v1/token", body, token="").status == 400
    id = find_user(api, "ann@example.com")["id"]
    for path in ("password", "reset-code"):
        refused = api.call("POST", f"/api/v1/users/{id}/{path}")
        assert refused.status == 400, refused
    refused = api.call("PATCH", f"/api/v1/users/{id}", {"groups": ["lab"]})
    assert refused.status == 400, refused


def test_a_local_account_is_taken_over_only_after_an_administrator_hands_it_over(
    api: ApiServer, provider: IdentityProvider
) -> None:
    made = api.call("POST", "/api/v1/users", {"email": "ann@example.com", "resetPassword": True})
    assert made.status == 201, made
    provider.add("ann@example.com")
    answer = SignOnBrowser(api, provider).sign_on()
    assert answer.status == 400
    assert b"local account" in answer.body
    assert api.call("PATCH", f"/api/v1/users/{made.json['id']}", {"signOn": True}).status == 200
    body = {"grantType": "password", "username": "ann@example.com", "password": made.json["tempPassword"]}
    assert api.call("POST", "/api/v1/token", body, token="").status == 400
    browser = SignOnBrowser(api, provider)
    assert browser.sign_on().status == 303
    assert find_user(api, "ann@example.com")["id"] == made.json["id"]


def test_the_administrator_of_the_first_start_cannot_be_taken_over(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add(api.credentials.username)
    assert SignOnBrowser(api, provider).sign_on().status == 400
    assert exchange(api, provider.sign(provider.claims_of(person))).status == 400


def test_an_address_given_to_somebody_else_does_not_give_the_account(
    api: ApiServer, provider: IdentityProvider
) -> None:
    provider.add("ann@example.com")
    SignOnBrowser(api, provider).sign_on()
    provider.add("ann@example.com").subject = "another-ann"
    answer = SignOnBrowser(api, provider).sign_on()
    assert answer.status == 400
    assert b"another person" in answer.body


def test_a_device_sends_the_secret_in_the_form(api: ApiServer, provider: IdentityProvider) -> None:
    """Dex does not read it from the header there."""
    provider.is_like_dex = True
    assert api.call("POST", "/api/v1/sign-on/device", token="").json["userCode"] == "WDJB-MJHT"


def test_a_terminal_signs_on_with_a_code(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add("ann@example.com")
    began = api.call("POST", "/api/v1/sign-on/device", token="").json
    assert began["userCode"] == "WDJB-MJHT"
    body = {"handle": began["handle"]}
    assert api.call("POST", "/api/v1/sign-on/device/token", body, token="").status == 202
    provider.approve_devices(person)
    tokens = api.call("POST", "/api/v1/sign-on/device/token", body, token="")
    assert tokens.status == 200, tokens
    assert api.call("GET", OWN, token=tokens.json["accessToken"]).status == 200
    renewed = api.call(
        "POST", "/api/v1/token", {"grantType": "refresh_token", "refreshToken": tokens.json["refreshToken"]}, token=""
    )
    assert renewed.status == 200, renewed
    person.is_enabled = False
    api.clock.now += CONFIRMATION_LIFETIME
    assert api.call("GET", OWN, token=renewed.json["accessToken"]).status == 401
    again = {"grantType": "refresh_token", "refreshToken": renewed.json["refreshToken"]}
    assert api.call("POST", "/api/v1/token", again, token="").status == 400


def test_a_program_signs_on_through_the_browser_of_its_machine(api: ApiServer, provider: IdentityProvider) -> None:
    provider.add("ann@example.com")
    verifier = "v" * 50
    browser = SignOnBrowser(api, provider)
    page = browser.sign_on(f"?port=5000&challenge={challenge_of(verifier)}")
    assert page.status == 200, page
    assert "fairlead-session" not in browser.jar, "the browser itself is not signed in"
    left = browser.approve(page)
    assert left.status == 303
    target = urlsplit(left.headers["location"])
    assert (target.hostname, target.port) == ("127.0.0.1", 5000)
    code = parse_qs(target.query)["code"][0]
    body = {"grantType": "exchange_token", "code": code}
    wrong = api.call("POST", "/api/v1/token", {**body, "codeVerifier": "w" * 50}, token="")
    assert wrong.status == 400, wrong
    tokens = api.call("POST", "/api/v1/token", {**body, "codeVerifier": verifier}, token="")
    assert tokens.status == 200, tokens
    assert api.call("GET", OWN, token=tokens.json["accessToken"]).status == 200
    assert api.call("POST", "/api/v1/token", {**body, "codeVerifier": verifier}, token="").status == 400
    assert browser.approve(page).status == 400


def test_a_script_exchanges_a_token_of_the_provider(api: ApiServer, provider: IdentityProvider) -> None:
    api.clock.now = int(time.time() * 1000)
    api.token = api.log_in()
    grant(api, "lab", "group")
    person = provider.add("ann@example.com", ("lab",))
    answer = exchange(api, provider.sign(provider.claims_of(person)))
    assert answer.status == 200, answer
    assert answer.json["refreshToken"] == ""
    assert 500 < answer.json["expiresIn"] <= 600, "it ends with the provider's token"
    assert projects_of(api, token=answer.json["accessToken"]) == ["default"]


def test_an_older_token_does_not_bring_groups_back(api: ApiServer, provider: IdentityProvider) -> None:
    grant(api, "lab", "group")
    person = provider.add("ann@example.com", ("lab",))
    now = int(time.time())
    old = provider.sign(provider.claims_of(person, iat=now - 30))
    person.groups = ()
    assert exchange(api, provider.sign(provider.claims_of(person))).status == 200
    answer = exchange(api, old)
    assert answer.status == 200
    assert projects_of(api, token=answer.json["accessToken"]) == []


def test_an_unseen_older_token_does_not_bring_groups_back(api: ApiServer, provider: IdentityProvider) -> None:
    """Also if the groups of the account are the same before and after it."""
    grant(api, "lab", "group")
    person = provider.add("ann@example.com")
    now = int(time.time())
    assert exchange(api, provider.sign(provider.claims_of(person, iat=now - 60))).status == 200
    person.groups = ("lab",)
    kept = provider.sign(provider.claims_of(person, iat=now - 30))
    person.groups = ()
    assert exchange(api, provider.sign(provider.claims_of(person))).status == 200
    assert projects_of(api, token=exchange(api, kept).json["accessToken"]) == []


def test_a_session_that_is_only_refreshed_ends_with_the_provider(api: ApiServer, provider: IdentityProvider) -> None:
    person = provider.add("ann@example.com")
    started = api.call("POST", "/api/v1/sign-on/device", {}, token="").json
    provider.approve_devices(person)
    tokens = api.call("POST", "/api/v1/sign-on/device/token", {"handle": started["handle"]}, token="").json
    body = {"grantType": "refresh_token", "refreshToken": tokens["refreshToken"]}
    assert api.call("POST", "/api/v1/token", body, token="").status == 200
    person.is_enabled = False
    api.clock.now += CONFIRMATION_LIFETIME
    assert api.call("POST", "/api/v1/token", body, token="").status == 400
    assert find_user(api, "ann@example.com")["enabled"] is True


def test_without_refresh_tokens_a_session_is_short(tmp_path: Path) -> None:
    with (
        IdentityProvider(gives_refresh_tokens=False) as provider,
        ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api,
    ):
        provider.add("ann@example.com")
        browser = SignOnBrowser(api, provider)
        browser.sign_on()
        api.clock.now += 3_590_000
        assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 200
        api.clock.now += 20_000
        assert api.call("GET", OWN, headers=browser.cookies(), token="").status == 401


def test_claims_can_be_named_and_missing_ones_come_from_userinfo(tmp_path: Path) -> None:
    with IdentityProvider() as provider:
        settings = settings_for(provider, tmp_path, username_claim="upn", domains=("corp.example",))
        with ApiServer(tmp_path, sign_on=settings) as api:
            person = provider.add("ann@example.com", ("lab",), upn="Ann@corp.example")
            provider.forge = lambda claims: {name: value for name, value in claims.items() if name != "groups"}
            assert SignOnBrowser(api, provider).sign_on().status == 303
            assert find_user(api, "ann@corp.example")["groups"] == ["lab"]
            person.claims["upn"] = "ann@elsewhere.example"
            assert b"may not sign on" in SignOnBrowser(api, provider).sign_on().body


def test_sign_on_is_absent_without_a_provider(make_api: Any) -> None:
    api = make_api()
    assert api.call("GET", "/api/v1/sign-on", token="").json["enabled"] is False
    assert api.call("GET", "/sign-on/start", token="").status == 400
    assert api.call("POST", "/api/v1/sign-on/device", token="").status == 400
    answer = exchange(api, "x")
    assert answer.status == 400
    assert "not set up" in answer.json["details"]
