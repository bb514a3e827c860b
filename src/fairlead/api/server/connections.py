"""Bounds of the API's connections: time for a head and a body, and how many may be open, in all and per address.

`app` gives the protocol to uvicorn. Requests that are being answered are never cut off, so streams may last; if there
are too many connections, the one that has kept the server waiting longest is closed first.
"""

import asyncio
import logging
import resource
from collections import defaultdict
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger("fairlead.api")


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    #: Seconds until a request's head must have come, from the connection or from the previous answer on.
    head_seconds: float = 10.0
    #: Seconds between two pieces of a body, and for the whole of it, unless its answer has begun.
    body_pause_seconds: float = 20.0
    body_seconds: float = 120.0
    #: Seconds between two checks of all connections.
    check_seconds: float = 1.0
    max_connections: int = 1000
    max_per_address: int = 500


def limits_of_process() -> ConnectionLimits:
    """Half of the files that this process may open: the rest is for pods and the database. Half of it per address."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = 10_000 if files == resource.RLIM_INFINITY else max(64, min(10_000, files // 2))
    return ConnectionLimits(max_connections=most, max_per_address=most // 2)


class Connections:
    """The open connections of a server. Used on its event loop only."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_address: defaultdict[str, set[LimitedProtocol]] = defaultdict(set)
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        #: The time of the last check or new connection: exact enough, and cheaper than the clock for every request.
        self.now = 0.0

    def add(self, connection: "LimitedProtocol") -> None:
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

    def remove(self, connection: "LimitedProtocol") -> None:
        own = self._by_address[connection.address]
        if connection in own:
            own.remove(connection)
            self._count -= 1
        if not own:
            del self._by_address[connection.address]

    def _close_slowest(self, connections: "set[LimitedProtocol]", newest: "LimitedProtocol") -> None:
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

    def _close(self, connection: "LimitedProtocol", why: str) -> None:
        logger.debug("Closing a connection of %s: %s", connection.address, why)
        self.remove(connection)
        # Not `close`: that would wait until a client that reads nothing has been sent everything.
        connection.transport.abort()


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with the times that the bounds need. Its subclasses have the connections of a server."""

    open_connections: Connections
    address = ""
    #: Since when the next request is waited for; None while one is being read or answered.
    waiting_since: float | None = None
    _began_at = 0.0
    _last_data_at = 0.0

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

    def overdue(self, now: float) -> str:
        """Why the connection is to be closed; empty if it is in time."""
        limits = self.open_connections.limits
        if self.waiting_since is not None:
            return "no request came" if now - self.waiting_since > limits.head_seconds else ""
        cycle = self.cycle
        if not cycle.more_body or cycle.response_started:
            # The body is complete, or it is a session: its two directions may be silent for hours.
            return ""
        is_slow = now - self._began_at > limits.body_seconds or now - self._last_data_at > limits.body_pause_seconds
        # While reading is paused the server is what is slow.
        return "the body did not come" if is_slow and not self.flow.read_paused else ""


def make_protocol(limits: ConnectionLimits) -> type[LimitedProtocol]:
    """The protocol of one server, with its own count of connections."""
    members: dict[str, Any] = {"open_connections": Connections(limits)}
    return type("ServerProtocol", (LimitedProtocol,), members)
