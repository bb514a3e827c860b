"""HTTP/1.1 to the API server on asyncio: kept connections, streamed answers, upgrades to other protocols.

`api.py` is built on it. It knows nothing of Kubernetes. httptools, which our HTTP server uses too, parses the answers.
Why not httpx or aiohttp: measured in docs/designs/0006-kubernetes-engine.md.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator

import httptools
import msgspec

from fairlead.engines.kubernetes.client.proxies import HttpProxy, open_tunnel

_PIECE, _LIMIT = 65_536, 1 << 20
#: TCP keep-alive: seconds until the first probe, seconds between probes, and their number. So it takes half a minute to
#: notice that a machine disappeared.
_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


class Answer:
    """Status and headers, then the body piece by piece. The parser calls the `on_…` methods."""

    def __init__(self, connection: "ApiConnection") -> None:
        self.connection = connection
        self._reader = connection.reader
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self.status = 0
        self.headers: dict[str, str] = {}
        self._has_head = False
        self.is_complete = False
        self._keeps_alive = False
        #: Bytes after the head of an upgrade that were read already.
        self.rest = b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = True
        # Asked here, because the parser forgets the headers afterwards.
        self._keeps_alive = self._parser.should_keep_alive()

    async def read_head(self) -> None:
        while not self._has_head:
            await self._feed()

    async def _feed(self) -> None:
        data = await self._reader.read(_PIECE)
        if not data:
            raise ConnectionResetError("the API server closed the connection")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.rest = data[upgrade.args[0] :]
            self.is_complete = True
        except httptools.HttpParserError as error:
            raise ConnectionResetError(f"the API server's answer cannot be read: {error}") from error

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it arrives; raises OSError if the connection breaks before its end."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self.is_complete:
                return
            await self._feed()

    async def body(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    @property
    def may_be_kept(self) -> bool:
        return self.is_complete and self._keeps_alive


class ApiConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def is_usable(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    async def send(self, head: bytes, body: bytes) -> Answer:
        """Send a request; returns when the head of the answer has arrived."""
        self.writer.write(head + body)
        await self.writer.drain()
        answer = Answer(self)
        await answer.read_head()
        return answer

    def close(self) -> None:
        """At once if nothing is left to send, without waiting for the other side."""
        transport = self.writer.transport
        if transport.get_write_buffer_size():
            transport.close()
        else:
            transport.abort()


class ServerPlace(msgspec.Struct, frozen=True):
    """Where a server is, and the way to it."""

    host: str
    port: int
    #: The name on its certificate, if it is not the host.
    name: str = ""
    proxy: HttpProxy | None = None


async def connect(place: ServerPlace, tls: ssl.SSLContext | None, seconds: float) -> ApiConnection:
    """Raises OSError, also after this time."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await _open(place, tls)
    except TimeoutError:
        way = f" through the proxy {place.proxy.host}:{place.proxy.port}" if place.proxy else ""
        message = f"{place.host}:{place.port} accepted no connection{way} within {seconds:g} s"
        raise ConnectionError(message) from None
    _keep_alive(writer.get_extra_info("socket"))
    return ApiConnection(reader, writer)


async def _open(place: ServerPlace, tls: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    name = (place.name or place.host) if tls else None
    if place.proxy is None:
        return await asyncio.open_connection(place.host, place.port, ssl=tls, server_hostname=name, limit=_LIMIT)
    reader, writer = await open_tunnel(place.proxy, place.host, place.port, _LIMIT)
    if tls is not None:
        try:
            await writer.start_tls(tls, server_hostname=name)
        except BaseException:
            writer.transport.abort()
            raise
    return reader, writer


def _keep_alive(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _ALIVE.items():
        # Not every system has them.
        if (option := getattr(socket, name, None)) is not None:
            link.setsockopt(socket.IPPROTO_TCP, option, value)


def render_head(method: str, path: str, headers: dict[str, str], length: int) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if length or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
