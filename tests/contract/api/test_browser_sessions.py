"""Sessions of browsers: signing in, what the cookie is good for, and what it is not."""

from collections.abc import Callable
from http.cookies import SimpleCookie

import pytest

from fairlead.control.people.authentication import ADMINISTRATOR
from tests.contract.api.api_server import Answer, ApiServer

SESSION = "/api/v1/session"


def sign_in(api: ApiServer) -> Answer:
    body = {"username": ADMINISTRATOR, "password": api.credentials.password}
    return api.call("POST", SESSION, body, token="")


def cookie_of(answer: Answer) -> dict[str, str]:
    """The cookie that an answer sets, as a browser sends it back."""
    (morsel,) = SimpleCookie(answer.headers["set-cookie"]).values()
    return {"Cookie": f"{morsel.key}={morsel.value}"}


def test_a_password_starts_a_session_that_reads_and_writes(api: ApiServer) -> None:
    answer = sign_in(api)
    assert answer.status == 200, answer
    assert answer.json["username"] == ADMINISTRATOR
    assert answer.headers["cache-control"] == "no-store"
    cookie = cookie_of(answer)
    assert api.call("GET", "/api/v1/workloads/count", headers=cookie, token="").status == 200
    assert api.call("GET", SESSION, headers=cookie, token="").json == answer.json
    headers = cookie | {"X-Fairlead-CSRF": answer.json["csrfToken"]}
    made = api.call("POST", "/api/v1/workloads/trainings", api.training("by-browser"), headers, token="")
    assert made.status == 202, made


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(api: ApiServer) -> None:
    parts = {part.strip() for part in sign_in(api).headers["set-cookie"].split(";")}
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= parts
    assert not any(part.startswith("Domain") for part in parts)


@pytest.mark.parametrize("given", [{}, {"X-Fairlead-CSRF": ""}, {"X-Fairlead-CSRF": "0" * 40}])
def test_a_write_without_the_token_of_the_session_is_refused(api: ApiServer, given: dict[str, str]) -> None:
    headers = cookie_of(sign_in(api)) | given
    refused = api.call("POST", "/api/v1/workloads/trainings", api.training("forged"), headers, token="")
    assert refused.status == 401, refused
    assert "x-fairlead-csrf" in refused.json["details"]
    listed = api.get("/api/v1/workloads?filterBy=name==forged")
    assert listed["workloads"] == []


def test_a_wrong_password_starts_no_session(api: ApiServer) -> None:
    answer = api.call("POST", SESSION, {"username": ADMINISTRATOR, "password": "wrong"}, token="")
    assert answer.status == 400, answer
    assert "set-cookie" not in answer.headers


def test_an_access_token_is_not_a_session_nor_the_other_way_round(api: ApiServer) -> None:
    borrowed = {"Cookie": f"fairlead-session={api.token}"}
    assert api.call("GET", "/api/v1/workloads/count", headers=borrowed, token="").status == 401
    session = cookie_of(sign_in(api))["Cookie"].partition("=")[2]
    assert api.call("GET", "/api/v1/workloads/count", token=session).status == 401


def test_without_a_session_no_user_is_signed_in(api: ApiServer) -> None:
    want = {"username": "", "subjectType": "", "isAdministrator": False, "csrfToken": "", "permissions": []}
    assert api.call("GET", SESSION, token="").json == want
    assert api.call("GET", SESSION, headers={"Cookie": "fairlead-session=made-up"}, token="").json == want


def test_signing_out_removes_the_cookie(api: ApiServer) -> None:
    answer = sign_in(api)
    headers = cookie_of(answer) | {"X-Fairlead-CSRF": answer.json["csrfToken"]}
    done = api.call("DELETE", SESSION, headers=headers, token="")
    assert done.status == 204, done
    assert "fairlead-session=;" in done.headers["set-cookie"]
    assert "Max-Age=0" in done.headers["set-cookie"]


def test_a_link_signs_in_once(api: ApiServer) -> None:
    link = api.call("POST", f"{SESSION}/links").json["path"]
    first = api.call("GET", link, token="")
    assert (first.status, first.headers["location"]) == (303, "/ui/")
    caller = api.call("GET", SESSION, headers=cookie_of(first), token="").json
    assert caller["username"] == api.credentials.client_id
    again = api.call("GET", link, token="")
    assert (again.status, again.headers["location"]) == (303, "/ui/?link=expired")
    assert "set-cookie" not in again.headers


def test_a_link_and_a_session_expire(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    link = api.call("POST", f"{SESSION}/links").json["path"]
    cookie = cookie_of(sign_in(api))
    api.clock.now += 121_000
    assert api.call("GET", link, token="").headers["location"] == "/ui/?link=expired"
    assert api.call("GET", "/api/v1/workloads/count", headers=cookie, token="").status == 200
    api.clock.now += 12 * 3600 * 1000
    assert api.call("GET", "/api/v1/workloads/count", headers=cookie, token="").status == 401


def test_a_link_is_for_those_with_an_account(api: ApiServer) -> None:
    assert api.call("POST", f"{SESSION}/links", token="").status == 401
