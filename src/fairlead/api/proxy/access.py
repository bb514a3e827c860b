"""Who may open a workload's URL, and which headers of Fairlead are kept from the workload.

Used by the reverse proxy for every request. A caller sends an access token, or the cookie that a one-time link set
for that URL only; neither ever reaches a workload.
"""

import base64
import binascii
import json
from urllib.parse import parse_qs, quote

import msgspec

from fairlead.api.http import session_cookie
from fairlead.api.http.one_time import OneTimeCodes
from fairlead.api.proxy.messages import Headers, RequestHead, passed_on, value_of
from fairlead.control.people.authentication import Authenticator
from fairlead.control.serving.urls import Route, UrlLocation, UrlRegistry, UrlSettings
from fairlead.model.clock import Clock
from fairlead.model.errors import Unauthenticated
from fairlead.model.pods.urls import SIGN_IN
from fairlead.model.records.people import Caller

COOKIE = "fairlead-url"
#: How long a browser stays signed in to a URL.
COOKIE_SECONDS = 12 * 3600
#: Cookies that never reach a workload, and that no workload may set.
_OUR_COOKIES = frozenset({COOKIE.encode(), session_cookie.COOKIE.encode()})
_MAX_TOKENS = 1_000
_SAFE = frozenset({b"GET", b"HEAD", b"OPTIONS"})
#: Headers that only the proxy may set.
_OURS = frozenset(
    (
        *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-prefix", b"x-forwarded-user"),
        *(b"forwarded", b"x-real-ip"),
    )
)


class SignInToken(msgspec.Struct, frozen=True):
    """What a one-time sign-in link stands for: its URL and user."""

    place: UrlLocation
    caller: Caller


class RequestDenied(Exception):
    """The request is refused with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class UrlGate:
    def __init__(self, authenticator: Authenticator, exposure: UrlRegistry, clock: Clock) -> None:
        self._authenticator = authenticator
        self._exposure = exposure
        self._links = OneTimeCodes[SignInToken](clock)
        #: A cache of tokens and whether they are ours, because every request of a caller has the same token.
        self._known: dict[bytes, bool] = {}

    @property
    def settings(self) -> UrlSettings:
        return self._exposure.settings

    def find(self, request: RequestHead) -> Route:
        path = request.target.partition(b"?")[0].decode("latin-1")
        route = self._exposure.find(request.host, path)
        if route is None:
            raise _unknown(request.host)
        return route

    def find_named(self, url: str) -> Route:
        """The route for a host and the beginning of a path. Raises `RequestDenied`."""
        host, slash, path = url.partition("/")
        route = self._exposure.find(host, slash + path)
        if route is None or route.location != UrlLocation(host, slash + path):
            raise _unknown(host)
        return route

    def protocol_of(self, host: str) -> str:
        """The protocol of the workload at a host's root; empty if there is none."""
        route = self._exposure.find(host.lower(), "")
        return "" if route is None else route.protocol

    def admit(self, request: RequestHead, route: Route) -> Caller | None:
        """The caller of a permitted request; None on a public URL without a token. Raises `RequestDenied`."""
        caller, by_cookie = self._caller(request, route)
        self._check_origin(request, route, by_cookie=by_cookie)
        if route.is_public:
            return caller
        if caller is None:
            raise RequestDenied(
                401,
                "Sign in to open this URL: `fairlead url NAME` prints a link for your browser; "
                "programs send an access token as Authorization: Bearer.",
            )
        if not route.admits(caller):
            raise RequestDenied(403, f"{caller.name} may not open this URL; the owner of its workload decides who may.")
        return caller

    def _caller(self, request: RequestHead, route: Route) -> tuple[Caller | None, bool]:
        scheme, _, token = value_of(request.headers, b"authorization").partition(b" ")
        try:
            if scheme.lower() == b"bearer" and self._is_ours(token):
                return self._authenticator.caller_of(token.decode("latin-1").strip()), False
            cookie = _cookie(request.headers)
            if cookie:
                return self._authenticator.caller_of(cookie, _use(route.location)), True
        except Unauthenticated:
            pass  # it has expired, or its account was deleted: treat it as missing
        return None, False

    def _check_origin(self, request: RequestHead, route: Route, *, by_cookie: bool) -> None:
        """Refuse requests that a page of another origin sends with the user's cookie."""
        origin = value_of(request.headers, b"origin")
        if not origin or (not request.upgrade and (request.method in _SAFE or not by_cookie)):
            return
        own = f"{self.settings.scheme}://{value_of(request.headers, b'host').decode('latin-1')}".lower()
        if origin.decode("latin-1").lower() != own:
            raise RequestDenied(
                403, f"A page at {origin[:200].decode('latin-1')} may not send this request to this URL."
            )

    # Signing in

    def make_link(self, caller: Caller, route: Route, url: str) -> str:
        """A link that signs a browser in as `caller`, once."""
        code = self._links.issue(SignInToken(route.location, caller))
        return f"{url.rstrip('/')}{SIGN_IN}?code={quote(code)}"

    def is_sign_in(self, request: RequestHead, route: Route) -> bool:
        path = request.target.partition(b"?")[0].decode("latin-1")
        return path == route.location.prefix + SIGN_IN

    def follow_link(self, request: RequestHead, route: Route) -> Headers:
        """Redeem a link: the headers that set the cookie and redirect to the URL. Raises `RequestDenied`."""
        query = parse_qs(request.target.partition(b"?")[2].decode("latin-1"))
        link = self._links.redeem(query.get("code", [""])[0])
        if link is None or link.place != route.location:
            raise RequestDenied(401, "This link was already used or has expired; `fairlead url NAME` prints a new one.")
        try:
            token = self._authenticator.sign_like(link.caller, _use(route.location), COOKIE_SECONDS)
        except Unauthenticated as error:
            raise RequestDenied(401, str(error)) from error
        secure = "; Secure" if self.settings.scheme == "https" else ""
        path = route.location.prefix or "/"
        cookie = f"{COOKIE}={token}; Path={path}; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
        return [
            (b"location", f"{route.location.prefix}/".encode("latin-1")),
            (b"set-cookie", cookie.encode("latin-1")),
            (b"cache-control", b"no-store"),
            (b"referrer-policy", b"no-referrer"),
        ]

    # Headers

    def cleaned_request(self, request: RequestHead, route: Route, caller: Caller | None, peer: str) -> Headers:
        """The end-to-end headers of a request without Fairlead's tokens and cookies, and with the caller's identity.

        Hop-by-hop names come from the client's headers alone: ours are added afterwards, so it cannot remove them.
        """
        headers: Headers = []
        for name, value in passed_on(request.headers):
            if name in _OURS:
                continue
            if name == b"authorization" and self._is_ours(value.partition(b" ")[2]):
                continue
            if name == b"cookie":
                value = _without_ours(value)
                if not value:
                    continue
            headers.append((name, value))
        headers.append((b"x-forwarded-for", peer.encode("latin-1")))
        headers.append((b"x-forwarded-proto", self.settings.scheme.encode("latin-1")))
        headers.append((b"x-forwarded-host", value_of(request.headers, b"host")))
        if route.location.prefix:
            headers.append((b"x-forwarded-prefix", route.location.prefix.encode("latin-1")))
        if caller is not None:
            headers.append((b"x-forwarded-user", quote(caller.name, safe="@+._-").encode("latin-1")))
        return headers

    def _is_ours(self, token: bytes) -> bool:
        """Whether this installation issued a token, valid or not; such tokens must not reach a workload."""
        known = self._known.get(token)
        if known is None:
            if len(self._known) >= _MAX_TOKENS:
                self._known.clear()
            known = self._known[token] = _issuer(token) == self._authenticator.issuer
        return known


def _unknown(host: str) -> RequestDenied:
    return RequestDenied(
        404, f"No workload has a URL at {host[:200]}; `fairlead describe NAME` shows a workload's URLs."
    )


def _issuer(token: bytes) -> object:
    """The issuer that a token claims; None if it is not a token."""
    parts = token.strip().split(b".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return None
    return claims.get("iss") if isinstance(claims, dict) else None


def cleaned_response(headers: Headers) -> Headers:
    """A response's headers without cookies of Fairlead and cookies for other hosts."""
    kept: Headers = []
    for name, value in headers:
        if name == b"set-cookie":
            parts = [part for part in value.split(b";") if not part.strip().lower().startswith(b"domain=")]
            if parts[0].partition(b"=")[0].strip() in _OUR_COOKIES:
                continue
            value = b";".join(parts)
        kept.append((name, value))
    return kept


def _use(place: UrlLocation) -> str:
    """The audience of a cookie's token: one URL."""
    return f"url {place.host}{place.prefix}"


def _cookie(headers: Headers) -> str:
    for name, value in headers:
        for part in value.split(b";") if name == b"cookie" else ():
            key, _, token = part.strip().partition(b"=")
            if key == COOKIE.encode():
                return token.decode("latin-1")
    return ""


def _without_ours(value: bytes) -> bytes:
    parts = value.split(b";")
    return b";".join(part for part in parts if part.partition(b"=")[0].strip() not in _OUR_COOKIES).strip()
