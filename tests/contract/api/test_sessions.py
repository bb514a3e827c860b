"""Sessions of users, codes to set a new password, and accounts of programs that expire."""

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.control.people.login_sessions import MAX_SESSIONS
from fairlead.model.clock import DAY, SECOND, iso
from tests.contract.api.api_server import START, Answer, ApiServer
from tests.contract.api.test_browser_sessions import cookie_of
from tests.contract.api.test_people import Person

SESSIONS = "/api/v1/me/sessions"


@pytest.fixture
def api(make_api: Callable[..., ApiServer]) -> ApiServer:
    return make_api()


def sign_in(api: ApiServer, person: Person) -> dict[str, Any]:
    body = {"grantType": "password", "username": person.name, "password": person.password}
    answer = api.call("POST", "/api/v1/token", body, {"User-Agent": "pocket"}, token="")
    assert answer.status == 200, answer
    content: dict[str, Any] = answer.json
    return content


def refresh(api: ApiServer, tokens: dict[str, Any]) -> Answer:
    body = {"grantType": "refresh_token", "refreshToken": tokens["refreshToken"]}
    return api.call("POST", "/api/v1/token", body, token="")


def as_application(api: ApiServer, id: str, secret: str) -> Answer:
    body = {"grantType": "client_credentials", "clientId": id, "clientSecret": secret}
    return api.call("POST", "/api/v1/token", body, token="")


def test_sessions_are_listed_and_ended(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    other = sign_in(api, ada)
    # Another server may need a moment to learn of a new session, so nothing is refused in the first seconds.
    api.clock.now += 20 * SECOND
    newest, first = ada.get(SESSIONS)["sessions"]
    assert (newest["client"], newest["address"], newest["current"]) == ("pocket", "127.0.0.1", False)
    assert first["current"]
    assert api.call("GET", SESSIONS, token=other["accessToken"]).status == 200
    assert ada.call("DELETE", f"{SESSIONS}/{newest['id']}").status == 204
    assert api.call("GET", SESSIONS, token=other["accessToken"]).status == 401
    assert refresh(api, other).status == 400
    assert [one["id"] for one in ada.get(SESSIONS)["sessions"]] == [first["id"]]
    assert ada.call("DELETE", f"{SESSIONS}/{newest['id']}").status == 404


def test_a_browser_is_a_session_too(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    body = {"username": ada.name, "password": ada.password}
    browser = cookie_of(api.call("POST", "/api/v1/session", body, {"User-Agent": "browser"}, token=""))
    api.clock.now += 20 * SECOND
    [session] = [one for one in ada.get(SESSIONS)["sessions"] if one["client"] == "browser"]
    shown = api.call("GET", SESSIONS, headers=browser, token="")
    assert [one["id"] for one in shown.json["sessions"] if one["current"]] == [session["id"]]
    assert session["expiresAt"] == iso(START + 12 * 3600 * SECOND), "as long as its cookie"
    assert ada.call("DELETE", f"{SESSIONS}/{session['id']}").status == 204
    assert api.call("GET", SESSIONS, headers=browser, token="").status == 401


def test_a_browser_that_signs_out_at_once_is_signed_out(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    body = {"username": ada.name, "password": ada.password}
    session = api.call("POST", "/api/v1/session", body, token="")
    browser = cookie_of(session)
    assert api.call("GET", SESSIONS, headers=browser, token="").status == 200
    headers = browser | {"X-Fairlead-CSRF": session.json["csrfToken"]}
    assert api.call("DELETE", "/api/v1/session", headers=headers, token="").status == 204
    assert api.call("GET", SESSIONS, headers=browser, token="").status == 401


def test_signing_out_of_a_session_that_has_just_ended_elsewhere_succeeds(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    other = sign_in(api, ada)
    newest = ada.get(SESSIONS)["sessions"][0]
    assert ada.call("DELETE", f"{SESSIONS}/{newest['id']}").status == 204
    assert api.call("DELETE", "/api/v1/session", token=other["accessToken"]).status == 204


def test_a_refreshed_token_belongs_to_the_same_session(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    api.clock.now += 20 * SECOND
    tokens = sign_in(api, ada)
    for _ in range(2):
        api.clock.now += 29 * DAY
        tokens = refresh(api, tokens).json
    ada.token = tokens["accessToken"]
    [session] = ada.get(SESSIONS)["sessions"]
    assert (session["current"], session["createdAt"]) == (True, iso(START + 20 * SECOND))


def test_signing_out_everywhere_ends_all_sessions(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    other = sign_in(api, ada)["accessToken"]
    assert ada.call("DELETE", SESSIONS).status == 204
    assert [api.call("GET", SESSIONS, token=token).status for token in (other, ada.token)] == [401, 401]
    ada.token = ada.log_in()
    assert len(ada.get(SESSIONS)["sessions"]) == 1


def test_a_user_has_a_bounded_number_of_sessions(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    for _ in range(MAX_SESSIONS):
        newest = sign_in(api, ada)["accessToken"]
    api.clock.now += 20 * SECOND
    assert ada.call("GET", SESSIONS).status == 401
    assert len(api.call("GET", SESSIONS, token=newest).json["sessions"]) == MAX_SESSIONS


def test_a_reset_code_sets_a_password_once(api: ApiServer) -> None:
    ada, bob = Person(api, "ada@example.com"), Person(api, "bob@example.com")
    path = f"/api/v1/users/{ada.id}/reset-code"
    assert bob.call("POST", path).status == 403
    code = api.call("POST", path).json["code"]
    assert ada.log_in(), "the old password is valid until the code is used"
    weak = {"code": code, "newPassword": "password1234"}
    assert "tried first" in api.call("POST", "/api/v1/password-reset", weak, token="").json["details"]
    good = {"code": code, "newPassword": "rivers climb slowly"}
    assert api.call("POST", "/api/v1/password-reset", good, token="").status == 204
    assert ada.log_in() == ""
    assert ada.call("GET", SESSIONS).status == 401
    ada.password = "rivers climb slowly"
    assert ada.log_in()
    assert api.call("POST", "/api/v1/password-reset", good, token="").status == 400
    for wrong in ("", f"{ada.id}.guess", f"{bob.id}.", "nobody.x"):
        answer = api.call("POST", "/api/v1/password-reset", good | {"code": wrong}, token="")
        assert answer.status == 400, (wrong, answer)


def test_a_reset_code_is_valid_for_a_day(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    code = api.call("POST", f"/api/v1/users/{ada.id}/reset-code").json["code"]
    api.clock.now += DAY
    body = {"code": code, "newPassword": "rivers climb slowly"}
    assert api.call("POST", "/api/v1/password-reset", body, token="").status == 400


def test_a_service_account_expires_and_says_when_it_was_used(api: ApiServer) -> None:
    body = {"name": "robot", "expiresAt": iso(START + 1000 * SECOND)}
    made = api.call("POST", "/api/v1/service-accounts", body).json
    path = f"/api/v1/service-accounts/{made['id']}"
    before = api.get(path)
    assert (before["expiresAt"], before["lastLogin"], "clientSecret" in before) == (body["expiresAt"], None, False)
    tokens = as_application(api, "robot", made["clientSecret"]).json
    assert tokens["expiresIn"] == 1000
    assert api.get(path)["lastLogin"] == iso(START)
    api.clock.now += 1000 * SECOND
    refused = as_application(api, "robot", made["clientSecret"])
    assert (refused.status, "has expired" in refused.json["details"]) == (400, True)
    assert api.call("GET", "/api/v1/workloads", token=tokens["accessToken"]).status == 401
    assert refresh(api, tokens).status == 400
    past = {"name": "late", "expiresAt": iso(START)}
    assert api.call("POST", "/api/v1/service-accounts", past).status == 400


def test_an_access_key_expires_and_says_when_it_was_used(api: ApiServer) -> None:
    ada = Person(api, "ada@example.com")
    body = {"name": "laptop", "expiresAt": iso(START + 60 * SECOND)}
    key = ada.call("POST", "/api/v1/access-keys", body).json
    assert as_application(api, key["clientId"], key["clientSecret"]).status == 200
    [shown] = ada.get("/api/v1/access-keys")["accessKeys"]
    assert (shown["lastLogin"], shown["expiresAt"]) == (iso(START), body["expiresAt"])
    api.clock.now += 60 * SECOND
    assert as_application(api, key["clientId"], key["clientSecret"]).status == 400
