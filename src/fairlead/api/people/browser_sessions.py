"""Sessions of browsers: signing in with a password or a one-time link, and signing out. An addition of Fairlead.

A session is a signed token in a cookie (`session_cookie`). It ends with its account, its password, or after half a day.
"""

import contextlib

from starlette.responses import RedirectResponse, Response

from fairlead.api.http.body import query_text, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.files import page_operation
from fairlead.api.http.one_time import LINK_LIFETIME, OneTimeCodes
from fairlead.api.http.operation import NO_CACHE, Call, Operation, RequestBody, as_json
from fairlead.api.http.session_cookie import SESSION_SECONDS, SESSION_USE, csrf_token, read_cookie, set_cookie
from fairlead.api.http.shapes import Shape
from fairlead.api.people.auth import client_of, log_failed_sign_in
from fairlead.control.context import Context
from fairlead.control.people.accounts import end_session, refuse_access_key
from fairlead.control.people.authentication import Authenticator
from fairlead.model.clock import iso
from fairlead.model.errors import Forbidden, NotFound, Unauthenticated
from fairlead.model.records.people import Caller
from fairlead.model.spec.fields import Spec

_PATH = "/api/v1/session"
#: Where the page is, and where its one-time links lead.
PAGE_PATH = "/ui/"
SIGN_IN_PATH = "/ui/sign-in"


class SignInBody(Spec, frozen=True, kw_only=True):
    username: str
    password: str


class SessionView(Shape):
    """Who is signed in; an empty name if nobody is."""

    username: str
    #: `User` or `App`, as in the audit; only users have a password and access keys.
    subject_type: str
    is_administrator: bool
    #: The value of the header `X-Fairlead-CSRF`, which every request that changes something must have.
    csrf_token: str
    #: What the user may do in at least one scope, such as `project:update`; an administrator may do everything.
    permissions: tuple[str, ...]


class PageLink(Shape):
    """A link that signs a browser in once, as a path on this server."""

    path: str
    expires_at: str


def _view(caller: Caller | None, session: str) -> SessionView:
    if caller is None:
        return SessionView(username="", subject_type="", is_administrator=False, csrf_token="", permissions=())
    return SessionView(
        username=caller.name,
        subject_type="User" if caller.type == "user" else "App",
        is_administrator=caller.is_administrator,
        csrf_token=csrf_token(session),
        permissions=tuple(sorted(caller.anywhere)),
    )


class BrowserSessions:
    """The handlers of the operations."""

    def __init__(self, authenticator: Authenticator, codes: OneTimeCodes[Caller]) -> None:
        self._authenticator = authenticator
        self._codes = codes

    async def sign_in(self, call: Call) -> Response:
        body = await receive_json(call, SignInBody)
        with log_failed_sign_in(call, body.username):
            user = await self._authenticator.verify_password(body.username, body.password, client_of(call)[0])
        session = await self._open(call, user.id)
        caller = self._authenticator.caller_of(session, SESSION_USE)
        return as_json(_view(caller, session), headers=NO_CACHE | set_cookie(call.request, session))

    async def get(self, call: Call) -> Response:
        session = read_cookie(call.request)
        try:
            caller = self._authenticator.caller_of(session, SESSION_USE) if session else None
        except Unauthenticated:
            caller = None
        return as_json(_view(caller, session), headers=NO_CACHE)

    async def sign_out(self, call: Call) -> Response:
        if call.caller.session_id:
            # A session that has just been ended elsewhere is as good as signed out.
            with contextlib.suppress(NotFound):
                await end_session(call.context, call.caller, call.caller.session_id, call.request_id)
        return Response(None, 204, NO_CACHE | set_cookie(call.request, ""))

    async def make_link(self, call: Call) -> Response:
        refuse_access_key(call.caller)
        if self._is_of_provider(call.context, call.caller) and not call.caller.session_id:
            raise Forbidden("An exchanged token cannot sign a browser in; sign on with your organization's account")
        path = f"{SIGN_IN_PATH}?code={self._codes.issue(call.caller)}"
        return as_json(PageLink(path=path, expires_at=iso(call.context.clock() + LINK_LIFETIME)), headers=NO_CACHE)

    async def follow_link(self, call: Call) -> Response:
        headers = NO_CACHE | {"referrer-policy": "no-referrer"}
        caller = self._codes.redeem(query_text(call, "code"))
        try:
            session = await self._open_linked(call, caller) if caller is not None else ""
        except Unauthenticated:
            session = ""
        if not session:
            return RedirectResponse(f"{PAGE_PATH}?link=expired", 303, headers)
        return RedirectResponse(PAGE_PATH, 303, headers | set_cookie(call.request, session))

    async def _open_linked(self, call: Call, caller: Caller) -> str:
        """A session like that of the link's maker. The provider is asked about sessions that it started only, so the
        browser of somebody who signs on there shares theirs.
        """
        if self._is_of_provider(call.context, caller):
            return self._authenticator.sign_like(caller, SESSION_USE, SESSION_SECONDS)
        return await self._open(call, caller.id)

    def _is_of_provider(self, context: Context, caller: Caller) -> bool:
        user = context.directory.users.get(caller.id)
        return user is not None and user.type == "user" and not user.is_local

    async def _open(self, call: Call, account_id: str) -> str:
        return await self._authenticator.open_session(account_id, SESSION_USE, SESSION_SECONDS, client_of(call))


def session_operations(authenticator: Authenticator, codes: OneTimeCodes[Caller]) -> tuple[Operation, ...]:
    sessions = BrowserSessions(authenticator, codes)
    return (
        Operation(
            method="POST",
            path=_PATH,
            id="start_session",
            tag="Sessions",
            summary="Sign a browser in with a password",
            run=sessions.sign_in,
            body=RequestBody(schema=SignInBody),
            answers={200: SessionView, **failing(400, 500, 503)},
            is_public=True,
            is_addition=True,
            is_sign_in=True,
        ),
        Operation(
            method="GET",
            path=_PATH,
            id="get_session",
            tag="Sessions",
            summary="Get who is signed in in this browser",
            run=sessions.get,
            answers={200: SessionView, **failing(500, 503)},
            is_public=True,
            is_addition=True,
        ),
        Operation(
            method="DELETE",
            path=_PATH,
            id="end_session",
            tag="Sessions",
            summary="Sign this browser out",
            run=sessions.sign_out,
            answers={204: None, **failing(401, 500, 503)},
            is_addition=True,
        ),
        Operation(
            method="POST",
            path=f"{_PATH}/links",
            id="create_session_link",
            tag="Sessions",
            summary="Create a one-time link that signs a browser in to the page",
            run=sessions.make_link,
            answers={200: PageLink, **failing(401, 500, 503)},
            is_addition=True,
        ),
        page_operation(
            SIGN_IN_PATH, "follow_session_link", "Sign a browser in with a one-time link", sessions.follow_link
        ),
    )
