"""Logging in by both endpoints, and what a token is worth."""

import base64
import json
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest

from fairlead.control.people.authentication import ADMINISTRATOR, load_user
from fairlead.control.people.secret_hashes import hash_secret, is_secret
from fairlead.store.base import Change, Put
from fairlead.store.collections import USERS
from tests.contract.api.agreement import find_disagreements
from tests.contract.api.api_server import Answer, ApiServer

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def ask(api: ApiServer, body: Any) -> Answer:
    return api.call("POST", "/api/v1/token", body, token="")


def ask_form(api: ApiServer, **members: str) -> Answer:
    return api.call("POST", "/api/v2/token", urlencode(members).encode(), FORM, token="")


def is_accepted(api: ApiServer, token: str) -> bool:
    answer = api.call("GET", "/api/v1/workloads/count", token=token)
    if answer.status == 200:
        return True
    assert answer.status == 401, answer
    assert answer.json["message"] == "Issuer is not familiar."
    assert find_disagreements("get", "/api/v1/workloads/count", 401, answer.json) == []
    return False


@pytest.mark.parametrize(
    ("grant", "id_key", "secret_key"),
    [
        ("client_credentials", "clientID", "clientSecret"),
        ("client_credentials", "clientId", "clientsecret"),
        ("app_token", "AppId", "AppSecret"),
        ("app_token", "appID", "appSecret"),
    ],
)
def test_an_application_logs_in(api: ApiServer, grant: str, id_key: str, secret_key: str) -> None:
    given = {"grantType": grant, id_key: api.credentials.client_id, secret_key: api.credentials.client_secret}
    answer = ask(api, given)
    assert answer.status == 200, answer
    assert answer.json["expiresIn"] == 86_400
    assert answer.headers["cache-control"] == "no-store"
    assert find_disagreements("post", "/api/v1/token", 200, answer.json) == []
    assert is_accepted(api, answer.json["accessToken"])


def test_a_person_logs_in_and_refreshes(api: ApiServer) -> None:
    given = {"grantType": "password", "username": ADMINISTRATOR, "password": api.credentials.password}
    first = ask(api, given).json
    second = ask(api, {"grantType": "refresh_token", "refreshToken": first["refreshToken"]})
    assert second.status == 200, second
    assert is_accepted(api, second.json["accessToken"])
    assert not is_accepted(api, first["refreshToken"]), "a refresh token is no access token"
    assert not is_accepted(api, first["idToken"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"grantType": "password"},
        {"grantType": "password", "username": "nobody", "password": "x"},
        {"grantType": "client_credentials", "clientId": "fairlead", "clientSecret": "wrong"},
        {"grantType": "client_credentials", "clientId": "a\x00b", "clientSecret": "wrong"},
        {"grantType": "refresh_token", "refreshToken": "x.y.z"},
        {"grantType": "exchange_token", "code": "x"},
        {"grantType": 7},
        [],
        b"{",
        b"",
    ],
    ids=str,
)
def test_what_gets_no_token_is_400(api: ApiServer, body: Any) -> None:
    answer = ask(api, body)
    assert answer.status == 400, answer
    assert find_disagreements("post", "/api/v1/token", 400, answer.json) == []


def test_the_form_endpoint_speaks_oauth(api: ApiServer) -> None:
    good = ask_form(
        api,
        grant_type="client_credentials",
        client_id=api.credentials.client_id,
        client_secret=api.credentials.client_secret,
    )
    assert good.status == 200, good
    assert good.json["token_type"] == "Bearer"
    assert find_disagreements("post", "/api/v2/token", 200, good.json) == []
    assert is_accepted(api, good.json["access_token"])
    cases: list[tuple[dict[str, str], int, str]] = [
        ({"grant_type": "password", "username": ADMINISTRATOR, "password": "x"}, 401, "invalid_client"),
        ({"grant_type": "authorization_code", "code": "x"}, 400, "unsupported_grant_type"),
        ({"grant_type": "password"}, 400, "invalid_request"),
        ({}, 400, "invalid_request"),
    ]
    for members, want_status, want_error in cases:
        bad = ask_form(api, **members)
        assert (bad.status, bad.json["error"]) == (want_status, want_error)
        assert find_disagreements("post", "/api/v2/token", want_status, bad.json) == []


def test_tokens_that_are_worth_nothing(api: ApiServer, make_api: Callable[..., ApiServer]) -> None:
    header, payload, signature = api.token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = jwt.encode(claims, "x" * 32, algorithm="HS256")
    unsigned = jwt.encode(claims, "", algorithm="none")
    elsewhere = make_api().token
    worthless = (
        forged,
        unsigned,
        elsewhere,
        "x",
        "a.b.c",
        f"{header}.{payload}.",
        f"{header}.{payload}.{signature[:-2]}",
    )
    for token in worthless:
        assert not is_accepted(api, token)
    for value in ("", "Bearer", f"Basic {api.token}", api.token):
        answer = api.call("GET", "/api/v1/workloads/count", headers={"Authorization": value}, token="")
        assert answer.status == 401, answer
    assert is_accepted(api, api.token)


def test_an_expired_token_is_refused_even_when_it_was_known(make_api: Callable[..., ApiServer]) -> None:
    api = make_api(token_seconds=60)
    assert is_accepted(api, api.token)
    api.clock.now += 61_000
    assert not is_accepted(api, api.token)
    assert is_accepted(api, api.log_in())


def test_a_disabled_account_gets_no_token(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    given = {"grantType": "password", "username": ADMINISTRATOR, "password": api.credentials.password}
    refresh = ask(api, given).json["refreshToken"]
    user = api.do(load_user(api.context.store, "user", ADMINISTRATOR))
    assert user is not None
    disabled = type(user)(
        **{name: getattr(user, name) for name in user.__struct_fields__}
        | {
            "version": user.version + 1,
            "enabled": False,
        }
    )
    api.do(api.context.store.commit(Change(writes=(Put(USERS, disabled),))))
    assert ask(api, given).status == 400
    assert ask(api, {"grantType": "refresh_token", "refreshToken": refresh}).status == 400


@pytest.mark.parametrize("grant", ["password", "client_credentials"])
def test_an_unknown_name_costs_as_much_as_a_wrong_secret(make_api: Callable[..., ApiServer], grant: str) -> None:
    """Measured in CPU time of this process, in which the server runs; before, they were sixteen times apart."""
    api = make_api()
    made = api.call("POST", "/api/v1/users", {"email": "ada@example.com"})
    assert made.status == 201, made
    known = (ADMINISTRATOR, "ada@example.com") if grant == "password" else (api.credentials.client_id,)
    names = ("username", "password") if grant == "password" else ("clientId", "clientSecret")

    def cost(name: str) -> float:
        took = []
        for number in range(7):
            began = time.process_time()
            assert ask(api, {"grantType": grant, names[0]: name, names[1]: f"wrong-{number}"}).status == 400
            took.append(time.process_time() - began)
        return sorted(took)[3]

    unknown = cost("nobody@example.com")
    assert all(0.5 < cost(name) / unknown < 2 for name in known)


def test_secrets_are_kept_hashed_and_files_private(api: ApiServer) -> None:
    user = api.do(load_user(api.context.store, "app", api.credentials.client_id))
    assert user is not None
    assert api.credentials.client_secret not in user.secret_hash
    for name in ("credentials.json", "keys/signing.key"):
        assert stat.S_IMODE((api.folder / name).stat().st_mode) == 0o600
    assert is_secret("geheim", hash_secret("geheim"))
    assert not is_secret("geheim", hash_secret("gehein"))


def test_the_payload_decodes_as_plain_base64(api: ApiServer) -> None:
    """NVIDIA's client reads the expiry so, which fails on the two characters that base64url has of its own."""
    for token in (api.token, api.log_in()):
        assert json.loads(base64.b64decode(token.split(".")[1] + "=="))["exp"] > 0


def test_wrong_passwords_slow_down_the_next_ones(
    make_api: Callable[..., ApiServer], caplog: pytest.LogCaptureFixture
) -> None:
    api = make_api()
    wrong = {"grantType": "password", "username": ADMINISTRATOR, "password": "wrong"}
    right = {**wrong, "password": api.credentials.password}
    answers = [ask(api, wrong) for _ in range(12)]
    assert [answer.status for answer in answers] == [400] * 11 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert "try again in 1 s" in answers[-1].json["details"]
    # Nobody learns in the meantime whether a guess is right.
    assert ask(api, right).status == 429
    assert ask_form(api, grant_type="password", username=ADMINISTRATOR, password="wrong").status == 429
    # Others are not slowed down, nor is who signed in with the same secret a moment ago.
    assert api.log_in()
    api.clock.now += 1000
    assert ask(api, right).status == 200
    failed = [record for record in caplog.records if "Sign-in" in record.message]
    assert len(failed) == 14
    assert f"Sign-in as {ADMINISTRATOR} from 127.0.0.1 failed" in failed[0].message


def test_parallel_guesses_are_slowed_down_too(make_api: Callable[..., ApiServer]) -> None:
    api = make_api()
    wrong = {"grantType": "password", "username": ADMINISTRATOR, "password": "wrong"}
    with ThreadPoolExecutor(20) as threads:
        statuses = list(threads.map(lambda _: ask(api, wrong).status, range(40)))
    assert statuses.count(400) <= 12
    assert statuses.count(429) == 40 - statuses.count(400)
