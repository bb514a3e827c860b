"""Forwards a request to the server that runs the machine, and streams both directions.

Called by `application.py` for every operation, which may raise `Elsewhere`. Only between servers of one installation
on one database, so the caller's token is valid on both.
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
from fairlead.api.http.session_cookie import CSRF_HEADER
from fairlead.model.errors import Elsewhere, Unavailable
from fairlead.model.pods.urls import ANSWERED, DESCRIBING
from fairlead.model.records.people import Caller

_PIECE = 64 * 1024
_HEAD_BYTES = 64 * 1024
#: How long the other server may take to start its response.
_PATIENCE_SECONDS = 60.0
#: How often a read tries while one server stops and another takes over.
_RETRY_SECONDS = 0.25
#: Marks a request that was already forwarded once, so that it is not forwarded again.
PASSED_ON = "x-fairlead-passed-on"
#: Headers that are forwarded, of the caller's request and of the other server's response.
_THERE = ("authorization", "content-type", "cookie", "origin", CSRF_HEADER, *DESCRIBING)
_BACK = (
    *("content-type", "cache-control", "retry-after", "www-authenticate", "x-accel-buffering"),
    *(name.lower() for name in ANSWERED),
)


async def run_or_forward(call: Call, takeover_seconds: float, certificate: str = "") -> Response:
    """The response of this server, or of the one that runs the machine.

    A read waits for `takeover_seconds` while another server takes over the machine, so that an upgrade fails none.
    """
    loop = asyncio.get_running_loop()
    can_wait = call.request.method == "GET" and PASSED_ON not in call.request.headers
    deadline = loop.time() + (takeover_seconds if can_wait else 0)
    while True:
        try:
            return await call.operation.run(call)
        except Elsewhere as error:
            address = error.address
        is_last = loop.time() >= deadline or call.context.stopping
        try:
            response = await forward(call, address, certificate)
            if response.status_code != 503 or is_last:
                return response
        except Unavailable:
            if is_last:
                raise
        await asyncio.sleep(_RETRY_SECONDS)


async def forward(call: Call, address: str, certificate: str = "") -> Response:
    """The other server's response, streamed while the request's body is still sent.

    Its certificate must be one that this machine trusts, or the one in this server's own file.
    """
    if not address:
        raise Unavailable("No server runs the pods of this machine now; try again in a moment")
    if PASSED_ON in call.request.headers:
        raise Unavailable("Another server is taking over this machine; try again in a moment")
    where = urlsplit(address)
    tls = make_peer_context(certificate) if where.scheme == "https" else None
    # The address may contain the name to check its certificate against.
    name = (where.fragment or where.hostname) if tls else None
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(
                where.hostname, where.port, ssl=tls, server_hostname=name, limit=_HEAD_BYTES
            )
            writer.write(_head(call, where.netloc))
            status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise Unavailable(f"The server at {address}, which runs this machine, cannot be reached: {error}") from error
    body = _chunks(reader) if headers.get("transfer-encoding") == "chunked" else _rest(reader)
    response_headers = {name: headers[name] for name in _BACK if name in headers}
    if status >= 400:
        return Response(await _whole(body, writer), status, response_headers)
    ways = _ways(body, writer, has_body=call.operation.body is not None)
    return DuplexResponse(ways, StreamGuard(call, _leave_to_the_other_server), status, response_headers)


def make_peer_context(certificate: str) -> ssl.SSLContext:
    """The context for connections to other servers. The file is read each time, because certificates are renewed."""
    context = ssl.create_default_context()
    if certificate:
        context.load_verify_locations(certificate)
        # The file may have the certificate without the authority that signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


async def _leave_to_the_other_server(caller: Caller) -> None:
    """The other server checks the caller's rights; only the token is checked here."""


async def _whole(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> bytes:
    """An error is not streamed: the caller gets it in one piece, with its length."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return b"".join([piece async for piece in body])
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        raise Unavailable(f"The server that runs this machine ended its response early: {error}") from error
    finally:
        writer.close()


def _head(call: Call, host: str) -> bytes:
    """The head of the request to the other server; a body follows in chunks."""
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
        # The response may come before the end of the request, such as an error; it is still passed on.
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
