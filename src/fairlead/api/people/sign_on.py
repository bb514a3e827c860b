"""Sign-on with an identity provider: for browsers and for terminals. An addition of Fairlead.

The browser keeps the sealed state of its sign-on in a cookie that it sends when the provider redirects it back
(`SameSite=Lax`); the session that starts then has the cookie of every other session.
"""

from html import escape

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fairlead.api.http.body import query_text, read_body, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.files import page_operation
from fairlead.api.http.operation import NO_CACHE, Call, Operation, RequestBody, as_json
from fairlead.api.http.session_cookie import SESSION_SECONDS, SESSION_USE, set_cookie
from fairlead.api.http.shapes import Shape
from fairlead.api.people.auth import TokenAnswer, client_of, log_failed_sign_in, parse_form
from fairlead.api.people.browser_sessions import PAGE_PATH
from fairlead.control.people.authentication import Authenticator
from fairlead.control.people.sign_on.pkce import comparison_code
from fairlead.control.people.sign_on.provider import ProviderUnavailable
from fairlead.control.people.sign_on.sign_on import FinishedSignOn, ProgramRequest, SignOn
from fairlead.control.people.tokens import BadCredentials, Tokens
from fairlead.model.errors import FairleadError, Invalid, Refused, TooMuch
from fairlead.model.spec.fields import Spec

COOKIE = "fairlead-sign-on"
_FOLDER = "/sign-on"
START_PATH, CALLBACK_PATH, APPROVE_PATH = (f"{_FOLDER}/{name}" for name in ("start", "callback", "approve"))
_API = "/api/v1/sign-on"
_COOKIE_SECONDS = 600
_MIN_CHALLENGE_LENGTH, _MAX_CHALLENGE_LENGTH = 43, 128
_HEADERS = {
    **NO_CACHE,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action {}",
}


class SignOnView(Shape):
    """Whether people can sign on with a provider, and how."""

    enabled: bool
    #: What the provider is called on the button, and where a browser starts.
    name: str
    start_path: str
    #: Whether a terminal can show a code that is entered on any device.
    has_device_flow: bool


class DeviceView(Shape):
    """What a terminal shows: the address to open and the code to enter. `handle` polls for the result."""

    handle: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int


class DeviceBody(Spec, frozen=True, kw_only=True):
    handle: str


class PendingView(Shape):
    pending: bool


class SignOnRoutes:
    """The handlers of the operations."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def get(self, call: Call) -> Response:
        # The documentation is made without an authenticator.
        sign_on = self._authenticator.sign_on
        if sign_on is None:
            return as_json(SignOnView(enabled=False, name="", start_path="", has_device_flow=False))
        try:
            has_device_flow = await sign_on.has_device_flow()
        except ProviderUnavailable:
            has_device_flow = False
        name = sign_on.settings.name
        return as_json(SignOnView(enabled=True, name=name, start_path=START_PATH, has_device_flow=has_device_flow))

    async def start(self, call: Call) -> Response:
        try:
            sign_on = self._require()
            program = _read_program(call)
            started = await sign_on.start(_redirect_uri(sign_on, call.request), _page_of(call), program)
        except FairleadError as error:
            return _problem_page(call, error)
        return RedirectResponse(started.url, 303, NO_CACHE | _state_cookie(call.request, started.cookie))

    async def finish(self, call: Call) -> Response:
        """The browser returns from the provider."""
        query = {name: value[:8192] for name, value in call.request.query_params.items()}
        try:
            sign_on = self._require()
            with log_failed_sign_in(call, ""):
                finished = await sign_on.finish(call.request.cookies.get(COOKIE, ""), query, client_of(call)[0])
            call.request.scope["fairlead.account"] = finished.user.name
            if finished.program is not None:
                response = _approval_page(sign_on, finished, finished.program)
            else:
                response = await self._open_page(call, sign_on, finished)
        except FairleadError as error:
            response = _problem_page(call, error)
        response.headers.append("set-cookie", _state_cookie(call.request, "")["set-cookie"])
        return response

    async def _open_page(self, call: Call, sign_on: SignOn, finished: FinishedSignOn) -> Response:
        user = finished.user
        session, _ = await sign_on.open_session(user, finished.refresh_token, SESSION_SECONDS, client_of(call))
        seconds = (session.expires_at - session.created_at) // 1000
        token = self._authenticator.sign_for(user.id, SESSION_USE, seconds, session.id)
        return RedirectResponse(finished.page or PAGE_PATH, 303, NO_CACHE | set_cookie(call.request, token))

    async def approve(self, call: Call) -> Response:
        """The user approves the sign-on of a program on the browser's machine."""
        form = parse_form(await read_body(call.request, "application/x-www-form-urlencoded"))
        try:
            return RedirectResponse(self._require().approve(form.get("approval", "")), 303, NO_CACHE)
        except FairleadError as error:
            return _problem_page(call, error)

    async def start_device(self, call: Call) -> Response:
        with log_failed_sign_in(call, ""):
            pending = await self._require().start_device(client_of(call)[0])
        return as_json(DeviceView(**msgspec.structs.asdict(pending)), headers=NO_CACHE)

    async def poll_device(self, call: Call) -> Response:
        body = await receive_json(call, DeviceBody)
        with log_failed_sign_in(call, ""):
            signed_on = await self._require().poll_device(body.handle, client_of(call)[0])
        if signed_on is None:
            return as_json(PendingView(pending=True), 202, NO_CACHE)
        call.request.scope["fairlead.account"] = signed_on.user.name
        tokens = await self._authenticator.issue_signed_on(signed_on, client_of(call))
        return as_json(_answer(tokens), headers=NO_CACHE)

    def _require(self) -> SignOn:
        if self._authenticator.sign_on is None:
            raise Refused("Sign-on with a provider is not set up on this server; sign in with a password")
        return self._authenticator.sign_on


def _answer(tokens: Tokens) -> TokenAnswer:
    return TokenAnswer(tokens.access_token, tokens.id_token, tokens.refresh_token, tokens.expires_in)


def _redirect_uri(sign_on: SignOn, request: Request) -> str:
    """Where the provider redirects the browser to. It must be registered with the provider."""
    base = sign_on.settings.public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"
    return f"{base.rstrip('/')}{CALLBACK_PATH}"


def _page_of(call: Call) -> str:
    """The view to show afterwards: only a path of the page is accepted."""
    page = query_text(call, "page")
    is_safe = page.startswith(PAGE_PATH) and len(page) < 1000 and page.isprintable() and "\\" not in page
    return page if is_safe else ""


def _read_program(call: Call) -> ProgramRequest | None:
    port, challenge = query_text(call, "port"), query_text(call, "challenge")
    if not port and not challenge:
        return None
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and 1024 <= int(port) <= 65_535):
        raise Invalid(f"port is {port[:20]!r}; it must be a port of the browser's machine, from 1024 to 65535")
    if not _MIN_CHALLENGE_LENGTH <= len(challenge) <= _MAX_CHALLENGE_LENGTH or not challenge.isascii():
        raise Invalid("challenge must be the hash of a secret of the program, as in RFC 7636")
    return ProgramRequest(int(port), challenge)


def _state_cookie(request: Request, value: str) -> dict[str, str]:
    """The cookie of a sign-on in progress; an empty value removes it."""
    seconds = _COOKIE_SECONDS if value else 0
    secure = "; Secure" if request.url.scheme == "https" else ""
    return {"set-cookie": f"{COOKIE}={value}; Path={_FOLDER}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"}


def _approval_page(sign_on: SignOn, finished: FinishedSignOn, program: ProgramRequest) -> Response:
    approval = sign_on.seal_approval(finished, program)
    text = (
        f"<p>A program on this machine asks to sign in as <b>{escape(finished.user.name)}</b>.\n"
        f"<p>Your terminal must show this code: <b>{comparison_code(program.challenge)}</b>. If it does not, or if you "
        "did not run <code>fairlead login</code>, close this page.\n"
        f'<form method="post" action="{APPROVE_PATH}"><input type="hidden" name="approval" value="{approval}">'
        "<button>Sign in</button></form>"
    )
    return _page(200, text, f"'self' http://127.0.0.1:{program.port}")


def _problem_page(call: Call, error: FairleadError) -> Response:
    if not isinstance(error, BadCredentials | Invalid | Refused | ProviderUnavailable | TooMuch):
        raise error
    status = 429 if isinstance(error, TooMuch) else 503 if isinstance(error, ProviderUnavailable) else 400
    text = f'<p>{escape(str(error))}.\n<p><a href="{PAGE_PATH}">Back to the page</a>'
    return _page(status, text, "'none'")


def _page(status: int, content: str, form_action: str) -> Response:
    text = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Fairlead</title>\n{content}\n</html>\n'
    policy = _HEADERS["content-security-policy"].format(form_action)
    return Response(text, status, _HEADERS | {"content-security-policy": policy}, "text/html")


def sign_on_operations(authenticator: Authenticator) -> tuple[Operation, ...]:
    routes = SignOnRoutes(authenticator)
    return (
        Operation(
            method="GET",
            path=_API,
            id="get_sign_on",
            tag="Sessions",
            summary="Check whether users can sign on with an identity provider",
            run=routes.get,
            answers={200: SignOnView, **failing(500, 503)},
            is_public=True,
            is_addition=True,
        ),
        Operation(
            method="POST",
            path=f"{_API}/device",
            id="start_device_sign_on",
            tag="Sessions",
            summary="Start a sign-on from a terminal, with a code to enter at the provider",
            run=routes.start_device,
            answers={200: DeviceView, **failing(400, 429, 500, 503)},
            is_public=True,
            is_addition=True,
        ),
        Operation(
            method="POST",
            path=f"{_API}/device/token",
            id="finish_device_sign_on",
            tag="Sessions",
            summary="Get the tokens of a sign-on from a terminal, if it is complete",
            run=routes.poll_device,
            body=RequestBody(schema=DeviceBody),
            answers={200: TokenAnswer, 202: PendingView, **failing(400, 500, 503)},
            is_public=True,
            is_addition=True,
            is_sign_in=True,
        ),
        page_operation(START_PATH, "start_sign_on", "Redirect to the identity provider", routes.start),
        msgspec.structs.replace(
            page_operation(CALLBACK_PATH, "finish_sign_on", "Finish signing on", routes.finish),
            is_sign_in=True,
        ),
        msgspec.structs.replace(
            page_operation(APPROVE_PATH, "approve_sign_on", "Approve the sign-on of a local program", routes.approve),
            method="POST",
        ),
    )
