"""Passes a request for a session on to the server that runs the machine, and its answer back as it comes.

Only between servers of one installation on one database: the caller's token is good at both.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import StreamingResponse

from fairlead.model.errors import Unavailable

_PIECE = 64 * 1024


async def forward(request: Request, address: str) -> StreamingResponse:
    """The holder's answer, status and body, streamed."""
    where = urlsplit(address)
    tls = ssl.create_default_context() if where.scheme == "https" else None
    try:
        reader, writer = await asyncio.open_connection(where.hostname, where.port, ssl=tls)
    except OSError as error:
        raise Unavailable(f"The server at {address}, which runs this machine, does not answer: {error}") from error
    target = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    lines = (
        f"GET {target} HTTP/1.1",
        f"Host: {where.netloc}",
        f"Authorization: {request.headers.get('authorization', '')}",
        "Connection: close",
        "",
        "",
    )
    writer.write("\r\n".join(lines).encode("latin-1"))
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
    body = _chunks(reader) if headers.get("transfer-encoding") == "chunked" else _rest(reader)
    return StreamingResponse(
        _closing(body, writer), int(head[0].split()[1]), media_type=headers.get("content-type", "text/plain")
    )


async def _closing(body: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> AsyncIterator[bytes]:
    try:
        async for piece in body:
            yield piece
    finally:
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while piece := await reader.read(_PIECE):
        yield piece


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
