"""Authentication: the bearer token or the session of a request, and the two endpoints that issue tokens."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from fairlead.api.http.body import read_body
from fairlead.api.http.errors import Error, OAuthError, render_oauth_error
from fairlead.api.http.operation import NO_CACHE, Call, Operation, RequestBody, as_json
from fairlead.api.http.session_cookie import CSRF_HEADER, SESSION_USE, may_write, read_cookie
from fairlead.control.people.authentication import Authenticator
from fairlead.control.people.tokens import BadCredentials, Grant, Tokens
from fairlead.model.errors import Invalid, TooMuch, Unauthenticated
from fairlead.model.records.people import Caller

logger = logging.getLogger("fairlead.api")
#: How much of a name is logged.
_LOGGED = 200


def authenticate(authenticator: Authenticator, request: Request) -> Caller:
    """The caller of a request; raises `Unauthenticated` if the token is missing, forged, foreign or expired.

    Browsers send the cookie of their session instead of a header.
    """
    for name, value in request.scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() != "bearer" or not token:
                raise Unauthenticated("The Authorization header must be `Bearer TOKEN`, with an access token")
            return authenticator.caller_of(token.strip())
    session = read_cookie(request)
    if not session:
        raise Unauthenticated("The request has no Authorization header; get a token at /api/v1/token")
    if not may_write(request, session):
        raise Unauthenticated(f"The request has a session, but not its token in the header {CSRF_HEADER}")
    return authenticator.caller_of(session, SESSION_USE)


class TokenRequest(msgspec.Struct, rename={"client_id": "clientID"}):
    """A request for tokens. The case of field names is ignored."""

    grantType: str
    client_id: str = ""
    clientSecret: str = ""
    appID: str = ""
    appSecret: str = ""
    username: str = ""
    password: str = ""
    refreshToken: str = ""
    externalToken: str = ""
    code: str = ""
    redirectUri: str = ""
    #: An addition: the secret that belongs to a one-time code of a sign-on.
    codeVerifier: str = ""


class TokenAnswer(msgspec.Struct, rename="camel"):
    """An access token for the Authorization header, its lifetime in seconds, and a refresh token."""

    access_token: str
    id_token: str
    refresh_token: str
    expires_in: int


class OAuthTokenAnswer(msgspec.Struct):
    """The tokens in OAuth 2 format."""

    access_token: str
    token_type: str
    expires_in: int
    refresh_token: str
    id_token: str
    scope: str = "openid"


_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["grant_type"],
    "properties": {
        "grant_type": {"type": "string", "enum": ["client_credentials", "password", "refresh_token"]},
        "client_id": {"type": "string"},
        "client_secret": {"type": "string", "format": "password"},
        "username": {"type": "string"},
        "password": {"type": "string", "format": "password"},
        "refresh_token": {"type": "string"},
    },
}


def read_grant(body: bytes) -> Grant:
    """The grant in a JSON body; the case of field names is ignored."""
    try:
        members = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The body is not valid JSON: {error}") from error
    if not isinstance(members, dict):
        raise Invalid("The body must be a JSON object with grantType and the fields that it needs")
    given: dict[str, str] = {}
    for name, value in members.items():
        if value is None:
            continue
        if not isinstance(value, str):
            raise Invalid(f"{name[:60]} must be text")
        given[name.lower()] = value
    return _grant(
        given,
        {
            "grant_type": ("granttype",),
            "client_id": ("clientid", "appid"),
            "client_secret": ("clientsecret", "appsecret"),
            "username": ("username",),
            "password": ("password",),
            "refresh_token": ("refreshtoken",),
            "external_token": ("externaltoken",),
            "code": ("code",),
            "code_verifier": ("codeverifier",),
        },
    )


def read_form_grant(body: bytes) -> Grant:
    """The grant in a form body."""
    return _grant(parse_form(body), {name: (name,) for name in Grant.__struct_fields__ if name in _FORM["properties"]})


def parse_form(body: bytes) -> dict[str, str]:
    """The members of a form."""
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=50, errors="strict"))
    except ValueError as error:
        raise Invalid("The body is not a valid form of name=value pairs") from error


def _grant(given: dict[str, str], names: dict[str, tuple[str, ...]]) -> Grant:
    values = {
        member: next((given[spelling] for spelling in spellings if given.get(spelling)), "")
        for member, spellings in names.items()
    }
    if not values["grant_type"]:
        raise Invalid("The grant type is missing; use client_credentials, app_token, password or refresh_token")
    return Grant(**values)


async def issue(call: Call, authenticator: Authenticator, grant: Grant) -> Tokens:
    """Tokens for a grant. A failed sign-in is logged with the account and the client's address."""
    address, client = client_of(call)
    other = "a token of the provider" if grant.external_token or grant.code else "a refresh token"
    with log_failed_sign_in(call, grant.username or grant.client_id or other):
        return await authenticator.issue(msgspec.structs.replace(grant, client=client), address)


def client_of(call: Call) -> tuple[str, str]:
    """The client's address and program."""
    client = call.request.client
    return client.host if client else "", call.request.headers.get("user-agent", "")


@contextmanager
def log_failed_sign_in(call: Call, account: str) -> Iterator[None]:
    account = account[:_LOGGED]
    call.request.scope["fairlead.account"] = account
    try:
        yield
    except (BadCredentials, TooMuch) as error:
        address, _ = client_of(call)
        fields = {"request_id": call.request_id, "account": account, "address": address}
        logger.warning("Sign-in as %s from %s failed: %s", account, address, error, extra={"fields": fields})
        raise


def token_operations(authenticator: Authenticator) -> tuple[Operation, ...]:
    async def grant_token(call: Call) -> Response:
        tokens = await issue(call, authenticator, read_grant(await read_body(call.request, "application/json")))
        answer = TokenAnswer(tokens.access_token, tokens.id_token, tokens.refresh_token, tokens.expires_in)
        return as_json(answer, headers=NO_CACHE)

    async def grant_token_form(call: Call) -> Response:
        body = await read_body(call.request, "application/x-www-form-urlencoded")
        try:
            tokens = await issue(call, authenticator, read_form_grant(body))
        except Invalid as error:
            return render_oauth_error(error)
        answer = OAuthTokenAnswer(
            tokens.access_token, "Bearer", tokens.expires_in, tokens.refresh_token, tokens.id_token
        )
        return as_json(answer, headers=NO_CACHE)

    return (
        Operation(
            method="POST",
            path="/api/v1/token",
            id="grant_token",
            tag="Tokens",
            summary="Get tokens for a service account, a user, or a refresh token",
            run=grant_token,
            body=RequestBody(schema=TokenRequest),
            answers={200: TokenAnswer, 400: Error, 500: Error, 503: Error},
            is_public=True,
            is_sign_in=True,
        ),
        Operation(
            method="POST",
            path="/api/v2/token",
            id="grant_token_v2",
            tag="Tokens",
            summary="Get tokens with an OAuth 2 form",
            run=grant_token_form,
            body=RequestBody(schema=_FORM, content_type="application/x-www-form-urlencoded"),
            answers={200: OAuthTokenAnswer, 400: OAuthError, 401: OAuthError, 500: Error, 503: Error},
            is_public=True,
            is_sign_in=True,
        ),
    )
