"""Attacks on the sign-on: forged and borrowed tokens, replays, answers of other providers, and redirects elsewhere."""

import base64
import contextlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fairlead.control.people.sign_on.pkce import challenge_of
from fairlead.control.people.sign_on.provider import KEYS_LIFETIME, UNKNOWN_KEY_PAUSE
from fairlead.control.people.sign_on.provider_sessions import CONFIRMATION_LIFETIME
from fairlead.control.people.sign_on.settings import SignOnSettings, check_sign_on
from fairlead.control.people.sign_on.sign_on import POLL_BURST, SIGN_ON_BURST, SIGN_ON_INTERVAL
from fairlead.model.errors import Refused
from tests.contract.api.api_server import ApiServer
from tests.contract.api.browser import SignOnBrowser, path_of
from tests.contract.api.test_people import RESEARCHER, Person, give_role
from tests.contract.api.test_roles import role_id
from tests.contract.api.test_sign_on import exchange, find_user, settings_for
from tests.identity_provider import CLIENT, IdentityProvider, SigningKey

Claims = dict[str, Any]


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def api(provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    folder = tmp_path_factory.mktemp("api")
    with ApiServer(folder, sign_on=settings_for(provider, folder, audiences=("scripts",))) as api:
        yield api


@pytest.fixture(autouse=True)
def _anew(provider: IdentityProvider) -> None:
    provider.forge = lambda claims: claims
    provider.adds_issuer = False
    provider.keys = provider.keys[:1]
    provider.add("ann@example.com")


def forged(**members: Any) -> Callable[[Claims], Claims]:
    """Changes claims; None removes one."""
    return lambda claims: {name: value for name, value in {**claims, **members}.items() if value is not None}


_NOW = int(time.time())
_BAD_CLAIMS = {
    "another audience": forged(aud="other-client"),
    "no audience": forged(aud=None),
    "another issuer": forged(iss="https://evil.example"),
    "an issuer with a slash more": lambda claims: {**claims, "iss": f"{claims['iss']}/"},
    "no issuer": forged(iss=None),
    "expired": forged(exp=_NOW - 120, iat=_NOW - 600),
    "no expiry": forged(exp=None),
    "not valid yet": forged(nbf=_NOW + 3600),
    "issued in the future": forged(iat=_NOW + 3600, exp=_NOW + 7200),
    "no subject": forged(sub=None),
    "issued to another client": forged(azp="other-client"),
    "several audiences and no party": forged(aud=[CLIENT, "other-client"]),
    "an unverified address": forged(email_verified=False),
    "an unverified address as text": forged(email_verified="false"),
    "an empty name": forged(email=""),
    "a name that is not text": forged(email=["ann@example.com"]),
    "a name with a line break": forged(email="ann@example.com\nx"),
    "a logout": forged(events={"http://schemas.openid.net/event/backchannel-logout": {}}),
}


@pytest.mark.parametrize("forge", _BAD_CLAIMS.values(), ids=_BAD_CLAIMS.keys())
def test_a_token_with_wrong_claims_is_refused(
    api: ApiServer, provider: IdentityProvider, forge: Callable[[Claims], Claims]
) -> None:
    provider.forge = forge
    assert provider.signs_on is not None
    answer = exchange(api, provider.sign(provider.claims_of(provider.signs_on)))
    assert answer.status == 400, answer
    browser = SignOnBrowser(api, provider)
    refused = browser.sign_on()
    assert refused.status == 400, refused
    assert browser.session() == ""


def _parts(claims: Claims, header: Claims) -> list[str]:
    return [base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in (header, claims)]


def _unsigned(claims: Claims, header: Claims) -> str:
    return ".".join([*_parts(claims, header), ""])


def _public_key_as_secret(provider: IdentityProvider, claims: Claims) -> str:
    """The confusion of algorithms: an HMAC whose key is the public key."""
    public = provider.keys[0].private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = ".".join(_parts(claims, {"alg": "HS256", "kid": "first"}))
    digest = hmac.digest(public, signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


_FORGERIES: dict[str, Callable[[IdentityProvider, Claims], str]] = {
    "alg none": lambda provider, claims: _unsigned(claims, {"alg": "none", "kid": "first"}),
    "alg None": lambda provider, claims: _unsigned(claims, {"alg": "None", "kid": "first"}),
    "no alg": lambda provider, claims: _unsigned(claims, {"kid": "first"}),
    "the public key as a secret": _public_key_as_secret,
    "a key of somebody else": lambda provider, claims: jwt.encode(
        claims, SigningKey("first").private, "RS256", {"kid": "first"}
    ),
    "an unknown key": lambda provider, claims: jwt.encode(claims, SigningKey("x").private, "RS256", {"kid": "x"}),
    "a key in the token": lambda provider, claims: jwt.encode(
        claims, (key := SigningKey("y")).private, "RS256", {"kid": "y", "jwk": key.public}
    ),
    "another algorithm of the same key": lambda provider, claims: jwt.encode(
        claims, provider.keys[0].private, "PS256", {"kid": "first"}
    ),
    "changed after signing": lambda provider, claims: provider.sign(claims)[:-8] + "AAAAAAAA",
    "no token": lambda provider, claims: "not-a-token",
}


@pytest.mark.parametrize("forge", _FORGERIES.values(), ids=_FORGERIES.keys())
def test_a_token_that_the_provider_did_not_sign_is_refused(
    api: ApiServer, provider: IdentityProvider, forge: Callable[[IdentityProvider, Claims], str]
) -> None:
    assert provider.signs_on is not None
    answer = exchange(api, forge(provider, provider.claims_of(provider.signs_on)))
    assert answer.status == 400, answer


def test_scripts_may_use_tokens_of_the_clients_that_the_operator_named(
    api: ApiServer, provider: IdentityProvider
) -> None:
    assert provider.signs_on is not None
    claims = provider.claims_of(provider.signs_on, aud="scripts")
    assert exchange(api, provider.sign(claims)).status == 200
    provider.forge = forged(aud="scripts")
    assert SignOnBrowser(api, provider).sign_on().status == 400, "not in a browser"


def test_an_own_token_is_not_a_token_of_the_provider(api: ApiServer) -> None:
    assert exchange(api, api.token).status == 400


def test_a_state_counts_only_in_the_browser_that_started(api: ApiServer, provider: IdentityProvider) -> None:
    """Otherwise somebody could sign a victim's browser on as themselves, or use a code that they stole."""
    attacker, victim = SignOnBrowser(api, provider), SignOnBrowser(api, provider)
    link = path_of(provider.follow(attacker.start()))
    assert victim.get(link).status == 400, "without a cookie"
    victim.start()
    assert victim.get(link).status == 400, "with the cookie of another sign-on"
    assert victim.session() == ""


def test_a_sign_on_cannot_be_replayed(api: ApiServer, provider: IdentityProvider) -> None:
    browser = SignOnBrowser(api, provider)
    link = path_of(provider.follow(browser.start()))
    state = dict(browser.jar)
    assert browser.get(link).status == 303
    browser.jar = state
    asked = len(provider.asked)
    again = browser.get(link)
    assert again.status == 400, again
    assert len(provider.asked) == asked, "the code is not sent to the provider again"


def test_a_code_of_another_sign_on_is_refused(api: ApiServer, provider: IdentityProvider) -> None:
    """Code injection: PKCE binds the code to the browser's verifier, and the nonce binds the token."""
    attacker, victim = SignOnBrowser(api, provider), SignOnBrowser(api, provider)
    stolen = parse_qs(urlsplit(provider.follow(victim.start())).query)["code"][0]
    state = parse_qs(urlsplit(attacker.start()).query)["state"][0]
    answer = attacker.get(f"/sign-on/callback?code={stolen}&state={state}")
    assert answer.status == 400, answer
    assert attacker.session() == ""


@pytest.mark.parametrize("nonce", ["", "another", None])
def test_a_token_with_another_nonce_is_refused(api: ApiServer, provider: IdentityProvider, nonce: str | None) -> None:
    provider.forge = forged(nonce=nonce)
    answer = SignOnBrowser(api, provider).sign_on()
    assert answer.status == 400
    assert b"another sign-on" in answer.body


def test_an_answer_of_another_provider_is_refused(api: ApiServer, provider: IdentityProvider) -> None:
    """Mix-up: the code of this provider must not be redeemed when another one answered."""
    provider.adds_issuer = True
    assert SignOnBrowser(api, provider).sign_on().status == 303
    browser = SignOnBrowser(api, provider)
    link = path_of(provider.follow(browser.start())).replace(
        quote(provider.issuer, safe=""), "https%3A%2F%2Fevil.example"
    )
    answer = browser.get(link)
    assert answer.status == 400
    assert b"another provider" in answer.body


def test_an_expected_issuer_must_be_there(tmp_path: Path) -> None:
    with IdentityProvider() as provider:
        provider.description["authorization_response_iss_parameter_supported"] = True
        with ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
            provider.add("ann@example.com")
            assert SignOnBrowser(api, provider).sign_on().status == 400
            provider.adds_issuer = True
            assert SignOnBrowser(api, provider).sign_on().status == 303


def test_a_sign_on_that_takes_too_long_is_refused(api: ApiServer, provider: IdentityProvider) -> None:
    browser = SignOnBrowser(api, provider)
    link = path_of(provider.follow(browser.start()))
    api.clock.now += 601_000
    assert browser.get(link).status == 400


@pytest.mark.parametrize(
    ("page", "want"),
    [
        ("/ui/workloads?tab=1", "/ui/workloads?tab=1"),
        ("https://evil.example/", "/ui/"),
        ("//evil.example/", "/ui/"),
        ("/ui//../\\evil.example", "/ui/"),
        ("/\\evil.example", "/ui/"),
        ("/uievil", "/ui/"),
        ("javascript:alert(1)", "/ui/"),
        ("/ui/\r\nset-cookie: a=b", "/ui/"),
    ],
)
def test_a_sign_on_leads_to_the_page_and_nowhere_else(
    api: ApiServer, provider: IdentityProvider, page: str, want: str
) -> None:
    answer = SignOnBrowser(api, provider).sign_on(f"?page={quote(page, safe='')}")
    assert answer.status == 303, answer
    assert answer.headers["location"] == want
    assert "a" not in answer.headers


@pytest.mark.parametrize("port", ["0", "80", "99999", "5000@evil.example", "5000/../", "-1", "x"])
def test_a_code_for_a_program_goes_to_a_port_of_the_browsers_machine(api: ApiServer, port: str) -> None:
    challenge = challenge_of("v" * 43)
    answer = api.call("GET", f"/sign-on/start?port={quote(port)}&challenge={challenge}", token="")
    assert answer.status == 400, answer
    assert "set-cookie" not in answer.headers


def test_a_program_needs_its_secret(api: ApiServer) -> None:
    assert api.call("GET", "/sign-on/start?port=5000&challenge=short", token="").status == 400


def test_the_provider_refuses_or_the_person_says_no(api: ApiServer, provider: IdentityProvider) -> None:
    provider.signs_on = None
    answer = SignOnBrowser(api, provider).sign_on()
    assert answer.status == 400
    assert b"access_denied" in answer.body


def test_text_of_strangers_is_not_part_of_a_page(api: ApiServer, provider: IdentityProvider) -> None:
    browser = SignOnBrowser(api, provider)
    state = parse_qs(urlsplit(browser.start()).query)["state"][0]
    answer = browser.get(f"/sign-on/callback?state={state}&error={quote('<script>alert(1)</script>')}")
    assert answer.status == 400
    assert b"<script>" not in answer.body
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_script_needs_a_token_with_a_name(api: ApiServer, provider: IdentityProvider) -> None:
    assert provider.signs_on is not None
    assert exchange(api, provider.sign(provider.claims_of(provider.signs_on, email=None))).status == 400


def test_keys_of_the_provider_change(tmp_path: Path) -> None:
    with IdentityProvider() as provider, ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        person = provider.add("ann@example.com")
        old = provider.sign(provider.claims_of(person))
        assert exchange(api, old).status == 200
        provider.keys = [SigningKey("second")]
        api.clock.now += UNKNOWN_KEY_PAUSE
        assert exchange(api, provider.sign(provider.claims_of(person))).status == 200
        assert exchange(api, old).status == 400, "the provider has withdrawn the first key"
        asked = provider.asked.count("/keys")
        forgery = jwt.encode(provider.claims_of(person), SigningKey("x").private, "RS256", {"kid": "x"})
        assert [exchange(api, forgery).status for _ in range(5)] == [400] * 5
        assert provider.asked.count("/keys") == asked, "forged tokens do not become requests to the provider"
        # Known keys serve while the provider is away.
        provider.is_away = True
        api.clock.now += KEYS_LIFETIME
        assert exchange(api, provider.sign(provider.claims_of(person))).status == 200


def test_a_confirmation_about_somebody_else_ends_the_session(tmp_path: Path) -> None:
    with IdentityProvider() as provider, ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        provider.add("ann@example.com", ("lab",))
        browser = SignOnBrowser(api, provider)
        browser.sign_on()
        provider.forge = forged(sub="id-of-bob@example.com", email="bob@example.com", groups=["admins"])
        api.clock.now += CONFIRMATION_LIFETIME
        assert api.call("GET", "/api/v1/me/sessions", headers=browser.cookies(), token="").status == 401
        assert find_user(api, "ann@example.com")["groups"] == ["lab"]


@pytest.mark.parametrize(
    "description",
    [{"issuer": "https://evil.example"}, {"token_endpoint": "file:///etc/passwd"}, {"jwks_uri": ""}],
    ids=["another issuer", "a file", "no keys"],
)
def test_a_description_that_does_not_fit_is_not_used(tmp_path: Path, description: dict[str, str]) -> None:
    with IdentityProvider() as provider:
        provider.description = description
        with ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
            assert api.call("GET", "/sign-on/start", token="").status == 503


def test_a_chosen_name_does_not_give_another_account(tmp_path: Path) -> None:
    """Where people choose their name at the provider, they could choose an id or a name that access rules know."""
    with (
        IdentityProvider() as provider,
        ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path, username_claim="nick")) as api,
    ):
        admin = find_user(api, "admin@fairlead.local")["id"]
        for nick in (admin, admin.upper(), "fairlead", "sign-on", "bootstrap", "kubernetes", "system"):
            person = provider.add("eve@example.com", nick=nick)
            answer = exchange(api, provider.sign(provider.claims_of(person)))
            assert (answer.status, b"another account" in answer.body) == (400, True), nick
        person = provider.add("ann@example.com", nick="ann")
        assert exchange(api, provider.sign(provider.claims_of(person))).status == 200
        assert api.call("POST", "/api/v1/service-accounts", {"name": "ann"}).status == 409


def test_a_provider_that_talks_nonsense_is_unavailable_and_asked_once(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        asked = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    asked.append(connection.recv(4096))
                    connection.sendall(b"nonsense\r\n\r\n")
                    connection.close()

        threading.Thread(target=answer, daemon=True).start()
        settings = SignOnSettings(issuer=f"http://127.0.0.1:{server.getsockname()[1]}", client_id="fairlead")
        with ApiServer(tmp_path, sign_on=settings) as api:
            assert [api.call("GET", "/sign-on/start", token="").status for _ in range(3)] == [503] * 3
            assert api.call("GET", "/api/v1/sign-on", token="").json["hasDeviceFlow"] is False
            assert len(asked) == 1
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("domains", [(), ("a.example", "b.example")])
def test_accounts_of_the_machine_are_bound_by_name_only_within_one_domain(domains: tuple[str, ...]) -> None:
    settings = SignOnSettings(issuer="https://login.example.com", client_id="fairlead", domains=domains)
    with pytest.raises(Refused, match="equal-names"):
        check_sign_on(settings, binds_equal_names=True)
    check_sign_on(settings)
    check_sign_on(msgspec.structs.replace(settings, domains=("a.example",)), binds_equal_names=True)


def test_strangers_cannot_hammer_the_provider_through_this_server(tmp_path: Path) -> None:
    device, poll = "/api/v1/sign-on/device", "/api/v1/sign-on/device/token"
    with IdentityProvider() as provider, ApiServer(tmp_path, sign_on=settings_for(provider, tmp_path)) as api:
        person = provider.add("ann@example.com")
        answers = [api.call("POST", device, token="") for _ in range(SIGN_ON_BURST + 5)]
        assert [one.status for one in answers] == [200] * SIGN_ON_BURST + [429] * 5
        assert (answers[-1].headers["retry-after"], provider.asked.count("/device")) == ("2", SIGN_ON_BURST)
        assert SignOnBrowser(api, provider).sign_on().status == 429
        assert "/token" not in provider.asked, "nor by redeeming codes"
        body = {"handle": answers[0].json["handle"]}
        assert {api.call("POST", poll, body, token="").status for _ in range(POLL_BURST + 5)} == {202}
        assert provider.asked.count("/token") == POLL_BURST
        provider.approve_devices(person)
        api.clock.now += SIGN_ON_INTERVAL
        assert api.call("POST", poll, body, token="").status == 200, "who waits gets through"
        assert api.call("POST", device, token="").status == 200
        assert api.call("POST", device, token="").status == 429


def test_no_department_administrator_can_take_an_address_from_its_owner(tmp_path: Path) -> None:
    users = "/api/v1/users"
    with IdentityProvider() as provider:
        settings = settings_for(provider, tmp_path, domains=("example.com",))
        with ApiServer(tmp_path, sign_on=settings) as api:
            dean = Person(api, "dean@elsewhere.example")
            dean.may(role_id(api, "Department administrator"), "department", "1")
            local = dean.call("POST", users, {"email": "guest@elsewhere.example"})
            assert (local.status, bool(local.json["tempPassword"])) == (201, True), "who cannot sign on has a password"
            made = dean.call("POST", users, {"email": "Ann@example.com"})
            assert (made.status, made.json["tempPassword"]) == (201, "")
            one = f"{users}/{made.json['id']}"
            give_role(api, "ann@example.com", RESEARCHER, "department", "1")
            for method, path, body in (
                ("POST", f"{one}/password", None),
                ("POST", f"{one}/reset-code", None),
                ("PATCH", one, {"enabled": False}),
            ):
                assert dean.call(method, path, body).status == 403, path
            person = provider.add("ann@example.com")
            assert exchange(api, provider.sign(provider.claims_of(person))).status == 200
            assert find_user(api, "ann@example.com")["id"] == made.json["id"]
            refused = dean.call("DELETE", one)
            assert refused.status == 403
            assert "signs on with the identity provider" in refused.json["details"]
            early = dean.call("POST", users, {"email": "bob@example.com"}).json["id"]
            assert dean.call("DELETE", f"{users}/{early}").status == 204, "nobody has got it yet"
            assert api.call("PATCH", one, {"enabled": False}).status == 200, "an administrator of everything may"
