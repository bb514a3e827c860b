"""Bounds of the API's connections: time for a TLS handshake, a head, a body and for reading an answer; and how many may
be open, in all and per address.

`app` gives the protocol to uvicorn. Requests that are being answered are not cut off as long as the client reads, so
streams may last; if there are too many connections, the one that has kept the server waiting longest is closed first.
"""

import asyncio
import logging
import os
import socket
import ssl
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairlead.api.http.connection_limits import ConnectionLimits, Connections

logger = logging.getLogger("fairlead.api")


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the times that the bounds need. Its subclasses have the connections of a server."""

    open_connections: Connections
    address = ""
    #: Since when the next request, or the reading of an answer, is waited for; None while neither is.
    waiting_since: float | None = None
    _began_at = 0.0
    _last_data_at = 0.0
    #: While an answer waits to be read: since when, and how much there was then; when some was last read, and the rest.
    _stalled_at: float | None = None
    _stalled_bytes = 0
    _read_at = 0.0
    _unread_bytes = 0
    #: Whether it has become a WebSocket, which may be silent for hours.
    _is_upgraded = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self.open_connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.open_connections.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._last_data_at = self.open_connections.now
        super().data_received(data)

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.waiting_since = None
        self._began_at = self._last_data_at

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and self.cycle.response_complete:
            self.waiting_since = self.open_connections.now

    def handle_websocket_upgrade(self) -> None:
        """The connection goes on as a WebSocket, with a protocol of its own, and stays counted until it is lost."""
        self._is_upgraded = True
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        lose = protocol.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            self.open_connections.remove(self)
            lose(exc)

        protocol.connection_lost = connection_lost  # type: ignore[method-assign]  # of this one only

    def abort(self) -> None:
        if self._stalled_at is not None:
            # So that the kernel does not keep for minutes what the client does not read either.
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        # Not `close`: that would wait until a client that reads nothing has been sent everything.
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled_at = self._read_at = self.waiting_since = self.open_connections.now
        self._stalled_bytes = self._unread_bytes = self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stalled_at = None
        is_answering = self.cycle is not None and not self.cycle.response_complete
        self.waiting_since = None if is_answering else self.open_connections.now

    def _overdue_reading(self, now: float, stalled_at: float) -> str:
        limits, unread = self.open_connections.limits, self.transport.get_write_buffer_size()
        if unread < self._unread_bytes:
            self._unread_bytes, self._read_at = unread, now
        rate = (self._stalled_bytes - unread) / max(now - stalled_at, 1e-3)
        is_slow = now - stalled_at > limits.read_pause_seconds and rate < limits.read_rate
        is_silent = now - self._read_at > limits.read_pause_seconds
        return "the client did not read the response" if is_silent or is_slow else ""

    def overdue(self, now: float) -> str:
        """Why the connection is to be closed; empty if it is in time."""
        if self._is_upgraded:
            return ""
        limits = self.open_connections.limits
        if self._stalled_at is not None:
            return self._overdue_reading(now, self._stalled_at)
        if self.waiting_since is not None:
            return "no request arrived" if now - self.waiting_since > limits.head_seconds else ""
        cycle = self.cycle
        if not cycle.more_body or cycle.response_started:
            # The body is complete, or it is a session: its two directions may be silent for hours.
            return ""
        is_slow = now - self._began_at > limits.body_seconds or now - self._last_data_at > limits.body_pause_seconds
        # While reading is paused the server is what is slow.
        return "the body did not arrive" if is_slow and not self.flow.read_paused else ""


class TlsHandshakeProtocol(asyncio.Protocol):
    """A connection until its TLS handshake is done, counted like any other. Its subclasses have what a server has.

    uvicorn's own TLS would start to count only afterwards, and wait a minute for the handshake.
    """

    open_connections: Connections
    tls: ssl.SSLContext
    inner: type[LimitedProtocol]
    loop: asyncio.AbstractEventLoop
    address = ""
    waiting_since: float | None = None

    def __init__(self, **members: Any) -> None:
        self._members = members
        self._handshake: asyncio.Task[None] | None = None
        self._is_secured = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self.loop = asyncio.get_running_loop()
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if isinstance(peer, tuple) else ""
        # With a transport of its own, which begins with the first byte that the client sends.
        connection = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        connection.setblocking(False)
        transport.abort()
        self._handshake = self.loop.create_task(self._shake_hands(connection))
        # Even if it is cancelled before it has begun.
        self._handshake.add_done_callback(lambda _: self._on_shaken(connection))
        self.open_connections.add(self)

    async def _shake_hands(self, connection: socket.socket) -> None:
        try:
            await self.loop.connect_accepted_socket(
                lambda: self.inner(**self._members),
                connection,
                ssl=self.tls,
                ssl_handshake_timeout=self.open_connections.limits.handshake_seconds,
            )
        except OSError as error:
            logger.debug("The TLS handshake of %s failed: %s", self.address, error)
        else:
            self._is_secured = True

    def _on_shaken(self, connection: socket.socket) -> None:
        self.open_connections.remove(self)
        if not self._is_secured:
            connection.close()

    def abort(self) -> None:
        if self._handshake is not None:
            self._handshake.cancel()

    def overdue(self, now: float) -> str:
        """Nothing: the handshake has its own time limit."""
        return ""


def make_protocol(
    limits: ConnectionLimits, tls: ssl.SSLContext | None = None
) -> "type[LimitedProtocol] | type[TlsHandshakeProtocol]":
    """The protocol of one server, with its own count of connections; with TLS, what comes before it."""
    counted = {"open_connections": Connections(limits)}
    inner: type[LimitedProtocol] = type("ServerProtocol", (LimitedProtocol,), dict(counted))
    if tls is None:
        return inner
    return type("ServerEntrance", (TlsHandshakeProtocol,), {**counted, "tls": tls, "inner": inner})
