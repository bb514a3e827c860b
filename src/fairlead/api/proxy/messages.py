"""HTTP message heads, as the reverse proxy reads and writes them: strictly, so that they have one meaning. Pure.

Ambiguous messages are refused: two body lengths, folded lines, spaces before a colon, bare line ends.
"""

import re
from typing import NamedTuple

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_START = re.compile(rb"(" + _TOKEN + rb") (/[\x21-\x7e\x80-\xff]*|\*) HTTP/1\.([01])")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00\r\n]*))?")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):[ \t]*([^\x00\r\n]*?)[ \t]*")
#: Hop-by-hop headers: they apply to one connection only.
_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"upgrade"})

#: Headers that a sender cannot make hop-by-hop: without them the message would mean something else to the next reader.
_KEPT = frozenset({b"host", b"content-length", b"transfer-encoding"})

Headers = list[tuple[bytes, bytes]]


class BadMessage(Exception):
    """The message is not valid or ambiguous."""


class MessageBody(NamedTuple):
    """How a body ends: by chunks, by its length, or (None) with the connection."""

    chunked: bool
    length: int | None


NO_BODY = MessageBody(False, 0)


class RequestHead(NamedTuple):
    method: bytes
    target: bytes
    headers: Headers
    host: str
    body: MessageBody
    keep_alive: bool
    #: The protocol to upgrade to, in lower case.
    upgrade: bytes


class ResponseHead(NamedTuple):
    status: int
    phrase: bytes
    headers: Headers
    body: MessageBody
    keep_alive: bool


def read_request(head: bytes) -> RequestHead:
    """A request's head, including the empty line."""
    lines = head[:-4].split(b"\r\n")
    start = _START.fullmatch(lines[0])
    if start is None:
        raise BadMessage("the first line is not an HTTP/1.1 request for a path")
    headers = _fields(lines[1:])
    hosts = [value for name, value in headers if name == b"host"]
    if len(hosts) != 1:
        raise BadMessage("a request must have exactly one Host header")
    options = _options(headers)
    body = _body(headers) or NO_BODY
    upgrade = b"".join(value for name, value in headers if name == b"upgrade").lower() if b"upgrade" in options else b""
    keep_alive = b"close" not in options and (start[3] == b"1" or b"keep-alive" in options)
    return RequestHead(start[1], start[2], headers, host_of(hosts[0]), body, keep_alive, upgrade)


def read_response(head: bytes, method: bytes) -> ResponseHead:
    """A response's head; `method` is that of the request."""
    lines = head[:-4].split(b"\r\n")
    start = _STATUS.fullmatch(lines[0])
    if start is None:
        raise BadMessage("the first line is not an HTTP/1.1 status")
    headers = _fields(lines[1:])
    status = int(start[2])
    options = _options(headers)
    body = _body(headers) or MessageBody(False, None)
    if method == b"HEAD" or status in (204, 304) or status < 200:
        body = NO_BODY
    keep_alive = b"close" not in options and start[1] == b"1" and (body.chunked or body.length is not None)
    return ResponseHead(status, start[3] or b"", headers, body, keep_alive)


def _fields(lines: list[bytes]) -> Headers:
    headers = []
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None:
            raise BadMessage("a header is not a name, a colon and a value")
        headers.append((field[1].lower(), field[2]))
    return headers


def _options(headers: Headers) -> set[bytes]:
    """The options of the Connection header, in lower case."""
    return {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}


def _body(headers: Headers) -> MessageBody | None:
    encodings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
    lengths = {value for name, value in headers if name == b"content-length"}
    if encodings:
        if encodings != [b"chunked"] or lengths:
            raise BadMessage("the length of the body is given twice, or in an unknown way")
        return MessageBody(True, None)
    if not lengths:
        return None
    length = lengths.pop()
    if lengths or not length.isdigit() or len(length) > 18:
        raise BadMessage("the length of the body is not a single number")
    return MessageBody(False, int(length))


def host_of(value: bytes) -> str:
    """The name in a Host header: without port and final dot, in lower case."""
    text = value.decode("latin-1").lower()
    if text.startswith("["):
        return text.partition("]")[0] + "]"
    return text.partition(":")[0].removesuffix(".")


def passed_on(headers: Headers) -> Headers:
    """The end-to-end headers: without those of this connection, which the sender may add to in `Connection`."""
    dropped = _HOP | (_options(headers) - _KEPT)
    return [(name, value) for name, value in headers if name not in dropped]


def render_head(start: bytes, headers: Headers) -> bytes:
    lines = [start, *(name + b": " + value for name, value in headers), b"", b""]
    return b"\r\n".join(lines)


def value_of(headers: Headers, wanted: bytes) -> bytes:
    """The first value of a header; empty without one."""
    return next((value for name, value in headers if name == wanted), b"")
