"""Passes a request on to the server that runs the machine, and both sides' bytes on as they come.

Called where a use case says that what is asked for is elsewhere. Only between servers of one installation on one
database: the caller's token is good at both.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import Send

from fairlead.api.http.duplex import DuplexHandlers, DuplexResponse
from fairlead.api.http.guard import StreamGuard
from fairlead.api.http.operation import Call
from fairlead.model.errors import Unavailable
from fairlead.model.pods.urls import ANSWERED, DESCRIBING
from fairlead.model.records.organization import Caller

_PIECE = 64 * 1024
_HEAD_BYTES = 64 * 1024
#: How long the other server may take to begin its answer.
_PATIENCE_SECONDS = 60.0
#: Says that the request has been passed on once already: a server that does not run the machine either says so then.
PASSED_ON = "x-fairlead-passed-on"
#: Of the caller's headers, those that the other server needs; of its answer's, those that the caller needs.
_THERE = ("authorization", "content-type", "cookie", "origin", *DESCRIBING)
_BACK = (
    *("content-type", "cache-control", "retry-after", "www-authenticate", "x-accel-buffering"),
    *(name.lower() for name in ANSWERED),
)


async def forward(call: Call, address: str) -> Response:
    """The other server's answer: its status, and its body while the request's flows there."""
    if call.request.headers.get(PASSED_ON):
        raise Unavailable("The server that ran this machine no longer does; send the request again in a moment")
    where = urlsplit(address)
    tls = ssl.create_default_context() if where.scheme == "https" else None
    # An address may say by which name its certificate is to be checked.
    name = (where.fragment or where.hostname) if tls else None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(
                where.hostname, where.port, ssl=tls, server_hostname=name, limit=_HEAD_BYTES
            )
            writer.write(_head(call, where.netloc))
            status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise Unavailable(f"The server at {address}, which runs this machine, does not answer: {error}") from error
    body = _chunks(reader) if headers.get("transfer-encoding") == "chunked" else _rest(reader)
    kept = {name: headers[name] for name in _BACK if name in headers}
    if status >= 400:
        return Response(await _whole(body, writer), status, kept)
    ways = _ways(body, writer, has_body=call.operation.body is not None)
    return DuplexResponse(ways, StreamGuard(call, _leave_to_the_other_server), status, kept)


async def _leave_to_the_other_server(caller: Caller) -> None:
    """The server that answers checks the caller's rights; here only the token is."""


async def _whole(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> bytes:
    """An error is no stream: the caller gets it with its length, in one piece."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return b"".join([piece async for piece in body])
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise Unavailable(f"The server that runs this machine broke off its answer: {error}") from error
    finally:
        writer.close()


def _head(call: Call, host: str) -> bytes:
    """The request as the other server gets it; the body of an operation that has one follows in chunks."""
    path, query = call.request.scope["raw_path"].decode("latin-1"), call.request.url.query
    passed = [f"{name}: {call.request.headers[name]}" for name in _THERE if name in call.request.headers]
    lines = (
        f"{call.request.method} {path}{'?' if query else ''}{query} HTTP/1.1",
        f"Host: {host}",
        f"X-Request-Id: {call.request_id}",
        f"{PASSED_ON}: yes",
        "Connection: close",
        *passed,
        "Transfer-Encoding: chunked" if call.operation.body is not None else "Content-Length: 0",
        "",
        "",
    )
    return "\r\n".join(lines).encode("latin-1")


def _read_head(head: bytes) -> tuple[int, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines[1:] if line)
    return int(lines[0].split()[1]), {name.lower(): value.strip() for name, _, value in fields}


def _ways(body: AsyncIterator[bytes], writer: asyncio.StreamWriter, *, has_body: bool) -> DuplexHandlers:
    async def inward(data: bytes) -> None:
        # An answer that came before the end of the request, such as an error, still flows the other way.
        with contextlib.suppress(OSError):
            if has_body:
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                await writer.drain()

    async def outward(send: Send) -> None:
        async for piece in body:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

    def ended() -> None:
        if has_body:
            writer.write(b"0\r\n\r\n")

    async def close() -> None:
        writer.close()

    return DuplexHandlers(inward, outward, ended, close)


async def _rest(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE):
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
