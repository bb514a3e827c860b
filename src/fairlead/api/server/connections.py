"""Bounds of the API's connections: time for a TLS handshake, a head, a body and for reading an answer; and how many may
be open, in all and per address.

`app` gives the protocol to uvicorn. Requests that are being answered are not cut off as long as the client reads, so
streams may last; if there are too many connections, the one that has kept the server waiting longest is closed first.
"""

import asyncio
import logging
import os
import resource
import socket
import ssl
import struct
from collections import defaultdict
from typing import Any, Protocol

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger("fairlead.api")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    #: Seconds until a request's head must have come, from the connection or from the previous answer on.
    head_seconds: float = 10.0
    #: Seconds between two pieces of a body, and for the whole of it, unless its answer has begun.
    body_pause_seconds: float = 20.0
    body_seconds: float = 120.0
    #: Seconds for a TLS handshake; and without any byte of a waiting answer being read.
    handshake_seconds: float = 10.0
    read_pause_seconds: float = 60.0
    #: The least bytes per second at which a waiting answer is read, on average over longer than that pause.
    read_rate: int = 1024
    #: Seconds between two checks of all connections.
    check_seconds: float = 1.0
    max_connections: int = 1000
    max_per_address: int = 500


def limits_of_process() -> ConnectionLimits:
    """Half of the files that this process may open: the rest is for pods and the database. Half of it per address."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = 10_000 if files == resource.RLIM_INFINITY else max(64, min(10_000, files // 2))
    return ConnectionLimits(max_connections=most, max_per_address=most // 2)


class Connection(Protocol):
    """What is counted: a connection before its TLS handshake is done, or with requests."""

    loop: asyncio.AbstractEventLoop
    address: str
    #: Since when the client keeps the server waiting; None while it does not.
    waiting_since: float | None

    def overdue(self, now: float) -> str:
        """Why the connection is to be closed; empty if it is in time."""
        ...

    def abort(self) -> None: ...


class Connections:
    """The open connections of a server. Used on its event loop only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_address: defaultdict[str, set[Connection]] = defaultdict(set)
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        #: The time of the last check or new connection: exact enough, and cheaper than the clock for every request.
        self.now = 0.0

    def add(self, connection: Connection) -> None:
        """Take a connection on. If there are too many, the slowest of them is closed, which may be this one."""
        self.now = connection.waiting_since = connection.loop.time()
        own = self._by_address[connection.address]
        own.add(connection)
        self._count += 1
        if len(own) > self.limits.max_per_address:
            self._close_slowest(own, connection)
        elif self._count > self.limits.max_connections:
            # Of the address that has most, so that one address cannot push the others out.
            self._close_slowest(max(self._by_address.values(), key=len), connection)
        if self._timer is None:
            self._timer = connection.loop.call_later(self.limits.check_seconds, self._check, connection.loop)

    def remove(self, connection: Connection) -> None:
        own = self._by_address[connection.address]
        if connection in own:
            own.remove(connection)
            self._count -= 1
        if not own:
            del self._by_address[connection.address]

    def _close_slowest(self, connections: set[Connection], newest: Connection) -> None:
        waiting = [one for one in connections if one.waiting_since is not None and one is not newest]
        slowest = min(waiting, key=lambda one: one.waiting_since or 0.0, default=newest)
        self._close(slowest, "too many connections")

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        self.now = loop.time()
        every = [connection for own in self._by_address.values() for connection in own]
        for connection in every:
            overdue = connection.overdue(self.now)
            if overdue:
                self._close(connection, overdue)
        is_needed = bool(every)
        self._timer = loop.call_later(self.limits.check_seconds, self._check, loop) if is_needed else None

    def _close(self, connection: Connection, why: str) -> None:
        logger.debug("Closing a connection of %s: %s", connection.address, why)
        self.remove(connection)
        connection.abort()


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
        limits, left = self.open_connections.limits, self.transport.get_write_buffer_size()
        if left < self._unread_bytes:
            self._unread_bytes, self._read_at = left, now
        rate = (self._stalled_bytes - left) / max(now - stalled_at, 1e-3)
        is_slow = now - stalled_at > limits.read_pause_seconds and rate < limits.read_rate
        is_silent = now - self._read_at > limits.read_pause_seconds
        return "the answer was not read" if is_silent or is_slow else ""

    def overdue(self, now: float) -> str:
        """Why the connection is to be closed; empty if it is in time."""
        if self._is_upgraded:
            return ""
        limits = self.open_connections.limits
        if self._stalled_at is not None:
            return self._overdue_reading(now, self._stalled_at)
        if self.waiting_since is not None:
            return "no request came" if now - self.waiting_since > limits.head_seconds else ""
        cycle = self.cycle
        if not cycle.more_body or cycle.response_started:
            # The body is complete, or it is a session: its two directions may be silent for hours.
            return ""
        is_slow = now - self._began_at > limits.body_seconds or now - self._last_data_at > limits.body_pause_seconds
        # While reading is paused the server is what is slow.
        return "the body did not come" if is_slow and not self.flow.read_paused else ""


class TlsEntrance(asyncio.Protocol):
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
) -> "type[LimitedProtocol] | type[TlsEntrance]":
    """The protocol of one server, with its own count of connections; with TLS, what comes before it."""
    counted = {"open_connections": Connections(limits)}
    inner: type[LimitedProtocol] = type("ServerProtocol", (LimitedProtocol,), dict(counted))
    if tls is None:
        return inner
    return type("ServerEntrance", (TlsEntrance,), {**counted, "tls": tls, "inner": inner})
