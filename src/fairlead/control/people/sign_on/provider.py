"""Requests to the identity provider: its metadata, its keys, and tokens.

Called by `sign_on.py`. Requests run in threads. The server starts without any request, so it starts also while the
provider is unavailable. Redirects are not followed: secrets go only to the address that the provider named.
"""

import asyncio
import base64
import http.client
import json
import logging
import ssl
import urllib.error
import urllib.request
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import jwt
import msgspec

from fairlead.control.people.sign_on.settings import SignOnSettings, load_client_secret
from fairlead.model.clock import SECOND, Clock, Millis
from fairlead.model.errors import Refused, Unavailable

log = logging.getLogger("fairlead.sign_on")
T = TypeVar("T")
_TIMEOUT_SECONDS = 5.0
_MAX_ANSWER_BYTES = 1 << 20
#: How long the provider's metadata and keys are kept; and the shortest time between two requests for
#: keys because of a token with an unknown one, so that forged tokens do not become requests to the provider.
METADATA_LIFETIME: Millis = 3600 * SECOND
KEYS_LIFETIME: Millis = 600 * SECOND
UNKNOWN_KEY_PAUSE: Millis = 10 * SECOND
#: How long a provider whose metadata could not be read is not asked again: requests of people who are not signed in
#: must not wait one after another.
FAILURE_PAUSE: Millis = 5 * SECOND


class ProviderUnavailable(Unavailable):
    """The provider cannot be reached, or its answer is not valid."""

    code = "provider-away"


class ProviderFailure(ProviderUnavailable):
    """The provider answered a request for tokens with a failure of its own.

    It may be broken. But Dex also answers so if its directory no longer has the person.
    """


class ProviderRefusal(Exception):
    """The provider answered a request for tokens with an error of OAuth 2."""

    def __init__(self, error: str, description: str = "") -> None:
        super().__init__(f"{error}: {description}" if description else error)
        self.error = error


class Metadata(msgspec.Struct, frozen=True):
    """The provider's metadata (OpenID Connect Discovery), without members that are not used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str = ""
    device_authorization_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class ProviderTokens(msgspec.Struct, frozen=True):
    """The answer to a request for tokens."""

    access_token: str = ""
    id_token: str = ""
    refresh_token: str = ""


class DeviceCode(msgspec.Struct, frozen=True):
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: int = 300
    interval: int = 5


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


class Provider:
    def __init__(self, settings: SignOnSettings, clock: Clock) -> None:
        self._clock = clock
        self._settings = settings
        self._opener: urllib.request.OpenerDirector | None = None
        self._metadata: tuple[Metadata, Millis] | None = None
        #: Why the first metadata could not be read, and when.
        self._failure: tuple[ProviderUnavailable, Millis] | None = None
        self._keys: tuple[list[dict[str, object]], Millis] | None = None
        self._lock = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """The provider's metadata; the previous ones if the provider is unavailable."""
        async with self._lock:
            known = self._metadata
            if known is None or self._clock() - known[1] > METADATA_LIFETIME:
                if self._failure is not None and self._clock() - self._failure[1] < FAILURE_PAUSE:
                    raise ProviderUnavailable(str(self._failure[0]))
                try:
                    known = (await asyncio.to_thread(self._load_metadata), self._clock())
                    self._failure = None
                except ProviderUnavailable as error:
                    if known is None:
                        self._failure = (error, self._clock())
                        raise
                    log.warning("The metadata of the identity provider cannot be updated: %s", error)
                    known = (known[0], self._clock())
                self._metadata = known
            return known[0]

    async def find_keys(self, key_id: str | None) -> list[dict[str, object]]:
        """The keys with that id; without an id, all. They are fetched again if none has it, because keys change."""
        metadata = await self.metadata()
        async with self._lock:
            known = self._keys
            age = self._clock() - known[1] if known else KEYS_LIFETIME
            matching = _with_id(known[0], key_id) if known else []
            if age >= KEYS_LIFETIME or (not matching and age >= UNKNOWN_KEY_PAUSE):
                try:
                    self._keys = (await asyncio.to_thread(self._load_keys, metadata.jwks_uri), self._clock())
                    matching = _with_id(self._keys[0], key_id)
                except ProviderUnavailable:
                    if not matching:
                        raise
            return matching

    async def exchange_code(self, code: str, redirect_uri: str, verifier: str) -> ProviderTokens:
        return await self._ask_for_tokens(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": redirect_uri,
                "code_verifier": verifier,
            }
        )

    async def refresh(self, refresh_token: str) -> ProviderTokens:
        return await self._ask_for_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})

    async def start_device(self) -> DeviceCode:
        endpoint = (await self.metadata()).device_authorization_endpoint
        if not endpoint:
            raise Refused("The provider has no device flow; sign on with a browser on this machine instead")
        # Dex reads the secret from the form only, also if it supports the header elsewhere.
        methods = (await self.metadata()).token_endpoint_auth_methods_supported
        form = {"scope": " ".join(self._settings.scopes)}
        return await self._post(endpoint, form, DeviceCode, is_secret_in_form="client_secret_post" in methods)

    async def poll_device(self, device_code: str) -> ProviderTokens:
        grant = "urn:ietf:params:oauth:grant-type:device_code"
        return await self._ask_for_tokens({"grant_type": grant, "device_code": device_code})

    async def load_userinfo(self, access_token: str) -> dict[str, object]:
        """The claims about the owner of an access token; empty if the provider has no such endpoint."""
        endpoint = (await self.metadata()).userinfo_endpoint
        if not endpoint or not access_token:
            return {}
        request = urllib.request.Request(endpoint, headers={"Authorization": f"Bearer {access_token}"})
        status, body = await asyncio.to_thread(self._send, request)
        if status != 200:
            raise ProviderUnavailable(f"The provider answered {status} at {endpoint}")
        return _read(body, endpoint, dict[str, object])

    async def _ask_for_tokens(self, form: dict[str, str]) -> ProviderTokens:
        return await self._post((await self.metadata()).token_endpoint, form, ProviderTokens)

    async def _post(self, endpoint: str, form: dict[str, str], type: type[T], *, is_secret_in_form: bool = False) -> T:
        methods = (await self.metadata()).token_endpoint_auth_methods_supported
        secret = load_client_secret(self._settings)
        client = self._settings.client_id
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        members = {**form, "client_id": client}
        if secret and "client_secret_basic" in methods and not is_secret_in_form:
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif secret:
            members["client_secret"] = secret
        request = urllib.request.Request(endpoint, urlencode(members).encode(), headers)
        status, body = await asyncio.to_thread(self._send, request)
        if status == 200:
            return _read(body, endpoint, type)
        if status in (400, 401, 403):
            problem = _read(body, endpoint, dict[str, object])
            raise ProviderRefusal(str(problem.get("error", status)), str(problem.get("error_description", ""))[:200])
        is_its_own = status >= 500 and _has_error(body)
        raise (ProviderFailure if is_its_own else ProviderUnavailable)(f"The provider answered {status} at {endpoint}")

    def _load_metadata(self) -> Metadata:
        url = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        status, body = self._send(urllib.request.Request(url))
        if status != 200:
            raise ProviderUnavailable(f"The provider answered {status} at {url}; check --oidc-issuer")
        metadata = _read(body, url, Metadata)
        if metadata.issuer != self._settings.issuer:
            raise ProviderUnavailable(
                f"The provider at {url} calls itself {metadata.issuer[:200]!r}; --oidc-issuer must be exactly that"
            )
        endpoints = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri)
        optional = (metadata.userinfo_endpoint, metadata.device_authorization_endpoint)
        schemes = {"https"} if metadata.issuer.startswith("https:") else {"http", "https"}
        for endpoint in (*endpoints, *filter(None, optional)):
            if urlsplit(endpoint).scheme not in schemes:
                raise ProviderUnavailable(f"The provider names the address {endpoint[:200]!r}, which is not secure")
        return metadata

    def _load_keys(self, url: str) -> list[dict[str, object]]:
        status, body = self._send(urllib.request.Request(url))
        if status != 200:
            raise ProviderUnavailable(f"The provider answered {status} at {url}")
        keys = _read(body, url, dict[str, object]).get("keys")
        if not isinstance(keys, list):
            raise ProviderUnavailable(f"The provider's answer at {url} has no keys")
        return [key for key in keys if isinstance(key, dict) and key.get("use", "sig") == "sig"]

    def _send(self, request: urllib.request.Request) -> tuple[int, bytes]:
        """The status and the body of an answer; raises ProviderUnavailable if there is none."""
        try:
            with self._open().open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return answer.status, answer.read(_MAX_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(_MAX_ANSWER_BYTES)
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ProviderUnavailable(f"The provider at {self._settings.issuer} cannot be reached: {error}") from error

    def _open(self) -> urllib.request.OpenerDirector:
        if self._opener is None:
            context = ssl.create_default_context(cafile=self._settings.ca_file or None)
            secure = urllib.request.HTTPSHandler(context=context)
            self._opener = urllib.request.build_opener(_NoRedirects, secure)
        return self._opener


def _has_error(body: bytes) -> bool:
    """Whether it is an error of OAuth 2, not the page of a proxy in front of the provider."""
    try:
        return "error" in msgspec.json.decode(body, type=dict[str, object])
    except msgspec.DecodeError:
        return False


def _with_id(keys: list[dict[str, object]], key_id: str | None) -> list[dict[str, object]]:
    return keys if key_id is None else [key for key in keys if key.get("kid") == key_id]


def _read(body: bytes, url: str, type: type[T]) -> T:
    try:
        return msgspec.convert(json.loads(body), type)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable(f"The provider's answer at {url} is not valid: {error}") from error


def make_key(key: dict[str, object], algorithm: str) -> jwt.PyJWK | None:
    """The key; None if it is not for that algorithm."""
    if key.get("alg", algorithm) != algorithm:
        return None
    try:
        return jwt.PyJWK(key, algorithm=algorithm)
    except jwt.PyJWTError:
        return None
