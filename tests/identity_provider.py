"""A small identity provider on loopback, for tests: OpenID Connect with code flow, PKCE, refresh and device flow.

A person signs on by being chosen (`signs_on`), without a page. What a test changes takes effect at the next request,
and `forge` lets a test put anything into a token.
"""

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

CLIENT, SECRET = "fairlead", "client-secret: 100%"


class Person:
    def __init__(self, email: str, groups: tuple[str, ...] = (), **claims: Any) -> None:
        self.subject = f"id-of-{email}"
        self.email = email
        self.groups = groups
        #: Further claims.
        self.claims = claims
        self.is_enabled = True


class SigningKey:
    def __init__(self, id: str) -> None:
        self.id = id
        self.private = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @property
    def public(self) -> dict[str, Any]:
        decoded: dict[str, Any] = json.loads(RSAAlgorithm.to_jwk(self.private.public_key()))
        return {**decoded, "kid": self.id, "use": "sig", "alg": "RS256"}


class IdentityProvider:
    """Use it as a context manager. `issuer` is its address."""

    def __init__(self, *, has_device_flow: bool = True, gives_refresh_tokens: bool = True) -> None:
        self.has_device_flow = has_device_flow
        self.gives_refresh_tokens = gives_refresh_tokens
        self.keys = [SigningKey("first")]
        self.people: dict[str, Person] = {}
        #: Who signs on in the browser.
        self.signs_on: Person | None = None
        #: Changes claims just before they are signed.
        self.forge: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        #: Members of its description that a test changes.
        self.description: dict[str, Any] = {}
        #: What it was asked, by path.
        self.asked: list[str] = []
        self.is_away = False
        #: As Dex: a person who was removed is a failure, and devices must send the client's secret in the form.
        self.is_like_dex = False
        self.adds_issuer = False
        self._codes: dict[str, dict[str, Any]] = {}
        self._refresh_tokens: dict[str, Person] = {}
        self._devices: dict[str, Person | None] = {}
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "IdentityProvider":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def add(self, email: str, groups: tuple[str, ...] = (), **claims: Any) -> Person:
        self.signs_on = self.people[email] = Person(email, groups, **claims)
        return self.signs_on

    def claims_of(self, person: Person, **more: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": person.subject,
            "email": person.email,
            "email_verified": True,
            "iat": now,
            "exp": now + 600,
            **person.claims,
            **more,
        }
        # As Dex does.
        return {**claims, "groups": list(person.groups)} if person.groups else claims

    def sign(self, claims: dict[str, Any]) -> str:
        key = self.keys[-1]
        return jwt.encode(self.forge(claims), key.private, "RS256", {"kid": key.id})

    def approve_devices(self, person: Person) -> None:
        self._devices = dict.fromkeys(self._devices, person)

    def follow(self, url: str) -> str:
        """What a browser does at the authorization endpoint: the address that it is sent back to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        person = self.signs_on
        answer = {"state": query["state"]}
        if self.adds_issuer:
            answer["iss"] = self.issuer
        if person is None:
            return f"{query['redirect_uri']}?{urlencode({**answer, 'error': 'access_denied'})}"
        code = secrets.token_urlsafe(8)
        self._codes[code] = {**query, "person": person}
        return f"{query['redirect_uri']}?{urlencode({**answer, 'code': code})}"

    # --- Answers

    def _describe(self) -> dict[str, Any]:
        described = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        if self.has_device_flow:
            described["device_authorization_endpoint"] = f"{self.issuer}/device"
        return {**described, **self.description}

    def _answer(self, path: str, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            return 200, self._describe()
        if path == "/keys":
            return 200, {"keys": [key.public for key in self.keys]}
        if path == "/userinfo":
            person = self._refresh_tokens[authorization.removeprefix("Bearer access-")]
            return 200, {"sub": person.subject, "email": person.email, "groups": list(person.groups)}
        is_client = self._is_client(authorization) if authorization else form.get("client_secret") == SECRET
        if not is_client or (self.is_like_dex and path == "/device" and "client_secret" not in form):
            return 401, {"error": "invalid_client"}
        if path == "/device":
            code = secrets.token_urlsafe(8)
            self._devices[code] = None
            told = {"user_code": "WDJB-MJHT", "verification_uri": f"{self.issuer}/device", "interval": 1}
            return 200, {"device_code": code, "expires_in": 300, **told}
        return self._grant(form)

    def _is_client(self, authorization: str) -> bool:
        pair = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        return tuple(map(unquote, pair.split(":"))) == (CLIENT, SECRET)

    def _grant(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if form["grant_type"] == "authorization_code":
            asked = self._codes.pop(form["code"], None)
            if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
                return 400, {"error": "invalid_grant"}
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
                return 400, {"error": "invalid_grant"}
            return self._tokens(asked["person"], nonce=asked["nonce"])
        if form["grant_type"] == "refresh_token":
            person = self._refresh_tokens.get(form["refresh_token"])
            if self.is_like_dex and person is not None and not person.is_enabled:
                return 500, {"error": "invalid_request"}
            self._refresh_tokens.pop(form["refresh_token"], None)
            if person is None or not person.is_enabled:
                return 400, {"error": "invalid_grant"}
            return self._tokens(person)
        if form["device_code"] not in self._devices:
            return 400, {"error": "expired_token"}
        person = self._devices[form["device_code"]]
        return (400, {"error": "authorization_pending"}) if person is None else self._tokens(person)

    def _tokens(self, person: Person, **more: Any) -> tuple[int, dict[str, Any]]:
        """Refresh tokens are used once, as with providers that rotate them."""
        refresh = secrets.token_urlsafe(8)
        self._refresh_tokens[refresh] = person
        tokens = {"access_token": f"access-{refresh}", "id_token": self.sign(self.claims_of(person, **more))}
        return 200, {**tokens, "refresh_token": refresh} if self.gives_refresh_tokens else tokens

    def _handler(provider) -> type[http.server.BaseHTTPRequestHandler]:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
                path = urlsplit(self.path).path
                provider.asked.append(path)
                if path == "/authorize":
                    self.send_response(302)
                    self.send_header("location", provider.follow(self.path))
                    self.end_headers()
                    return
                given = self.headers.get("authorization", "")
                status, body = (502, {}) if provider.is_away else provider._answer(path, form, given)
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                """Tests print nothing."""

        return Handler
