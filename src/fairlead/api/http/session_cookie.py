"""The cookie of a browser session, and the token that its writes must repeat.

Scripts cannot read the cookie, and browsers send it only from pages of the same site. A page of the same site but
another origin (a workload's URL on another port) could still send requests with it. It cannot read answers, though,
so it does not know the token in the header `X-Fairlead-CSRF`, without which nothing is changed.
"""

import hashlib
import hmac

from starlette.requests import Request

COOKIE = "fairlead-session"
CSRF_HEADER = "x-fairlead-csrf"
#: What the token in the cookie is signed for.
SESSION_USE = "session"
SESSION_SECONDS = 12 * 3600
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def read_cookie(request: Request) -> str:
    """The token of the session; empty if the request has none."""
    return request.cookies.get(COOKIE, "")


def csrf_token(session: str) -> str:
    """The token that belongs to a session; it does not reveal the session."""
    return hashlib.sha256(b"fairlead csrf " + session.encode()).hexdigest()[:40]


def may_write(request: Request, session: str) -> bool:
    """Whether a request reads only, or has the token of its session."""
    given = request.headers.get(CSRF_HEADER, "")
    return request.method in _SAFE or hmac.compare_digest(given.encode(), csrf_token(session).encode())


def set_cookie(request: Request, session: str) -> dict[str, str]:
    """The header that starts a session, or ends it if there is no token."""
    seconds = SESSION_SECONDS if session else 0
    secure = "; Secure" if request.url.scheme == "https" else ""
    return {"set-cookie": f"{COOKIE}={session}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"}
