"""HTTP/1.1 to the API server on asyncio: kept connections, answers as they come, upgrades to other protocols.

`api.py` stands on it. It knows nothing of Kubernetes. Answers are parsed by httptools, which our HTTP server uses too.
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator

import httptools

_PIECE = 65_536
#: When a silent peer is asked whether it is still there, how often again, and how many times: a machine that vanished
#: is noticed after half a minute.
_ALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}


class Answer:
    """What came back: status and headers, then the body piece by piece. The parser calls the `on_…` members."""

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
        #: What followed the head of an upgrade, already read.
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
        # Asked here: afterwards the parser has forgotten what the headers said.
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
        """The body as it comes; ends with it, raises OSError when the connection breaks before."""
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
        """Send a request; returns when the head of its answer is there."""
        self.writer.write(head + body)
        await self.writer.drain()
        answer = Answer(self)
        await answer.read_head()
        return answer

    def close(self) -> None:
        """At once where nothing waits to be sent: the other side's goodbye is not waited for."""
        transport = self.writer.transport
        if transport.get_write_buffer_size():
            transport.close()
        else:
            transport.abort()


async def connect(host: str, port: int, tls: ssl.SSLContext | None, seconds: float) -> ApiConnection:
    """Raises OSError, also when it takes longer."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(
                host, port, ssl=tls, server_hostname=host if tls else None, limit=1 << 20
            )
    except TimeoutError:
        raise ConnectionError(f"{host}:{port} takes no connection within {seconds:g} s") from None
    _keep_alive(writer.get_extra_info("socket"))
    return ApiConnection(reader, writer)


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
