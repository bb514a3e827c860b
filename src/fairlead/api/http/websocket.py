"""Sessions into pods over WebSocket, for browsers, which cannot send a body while they read the answer.

Called by `application.py`. A WebSocket is answered like a POST to the same path: its messages are the body, and the
answer's body is sent as messages. So access, audit, limits and forwarding are the same. A page cannot set headers of a
WebSocket, so it sends its CSRF token as one of the offered subprotocols.
"""

import contextlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import msgspec
from starlette.types import Message, Receive, Scope, Send

from fairlead.api.http.session_cookie import CSRF_HEADER

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: The subprotocol that is chosen, and the prefix of the one with the CSRF token.
SUBPROTOCOL = "fairlead"
_TOKEN_PREFIX = "csrf."  # noqa: S105 - a prefix, not a token
#: Added to the HTTP status of a refusal: a script in a browser sees only the close code and its reason.
_CODE_OF_STATUS = 4000
_MAX_REASON_BYTES = 123
_INTERNAL_ERROR = 1011
#: Headers of the connection, not of the request.
_CONNECTION_HEADERS = (b"connection", b"upgrade", b"content-length")


async def answer_websocket(scope: Scope, receive: Receive, send: Send, answer: Application) -> None:
    """Answer a WebSocket with the application that answers requests."""
    if not _is_of_this_origin(scope):
        await send({"type": "websocket.close", "code": 1008})
        return
    bridge = _Bridge(receive, send)
    try:
        await answer(_as_request(scope), bridge.receive, bridge.send)
    finally:
        await bridge.close(_INTERNAL_ERROR, "")


def _is_of_this_origin(scope: Scope) -> bool:
    """Browsers send cookies with every WebSocket, so a page of another origin could open one."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    return not origin or urlsplit(origin).netloc == headers.get(b"host", b"").decode("latin-1")


def _as_request(scope: Scope) -> Scope:
    headers = [
        (name, value)
        for name, value in scope["headers"]
        if name not in _CONNECTION_HEADERS and not name.startswith(b"sec-websocket-") and name != CSRF_HEADER.encode()
    ]
    offered = scope.get("subprotocols", ())
    tokens = [name.removeprefix(_TOKEN_PREFIX) for name in offered if name.startswith(_TOKEN_PREFIX)]
    headers += [(CSRF_HEADER.encode(), token.encode("latin-1")) for token in tokens]
    scheme = {"ws": "http", "wss": "https"}.get(scope.get("scheme", ""), "http")
    return {**scope, "type": "http", "method": "POST", "scheme": scheme, "headers": headers}


class _Bridge:
    """A WebSocket as the two directions of a request."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._status = 0
        self._refusal = b""
        self._is_closed = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "websocket.connect":
            message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._is_closed = True
            return {"type": "http.disconnect"}
        text: str = message.get("text") or ""
        return {"type": "http.request", "body": message.get("bytes") or text.encode(), "more_body": True}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            await self._send({"type": "websocket.accept", "subprotocol": SUBPROTOCOL})
        elif self._status >= 300:
            self._refusal += message.get("body", b"")
            if not message.get("more_body"):
                await self.close(_CODE_OF_STATUS + self._status, _reason_of(self._refusal))
        else:
            if message.get("body") and not self._is_closed:
                await self._send({"type": "websocket.send", "bytes": message["body"]})
            if not message.get("more_body"):
                await self.close(1000, "")

    async def close(self, code: int, reason: str) -> None:
        """Close it once; a WebSocket that was not accepted is refused."""
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(OSError):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})


class _Refusal(msgspec.Struct):
    message: str = ""
    details: str = ""


def _reason_of(body: bytes) -> str:
    """The message of an error, cut to the maximum length."""
    try:
        error = msgspec.json.decode(body, type=_Refusal)
    except msgspec.DecodeError:
        return ""
    text = (error.details or error.message).encode()[:_MAX_REASON_BYTES]
    return text.decode(errors="ignore")
