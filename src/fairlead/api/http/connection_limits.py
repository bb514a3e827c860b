"""How many connections a listener keeps open, in all and per address, and how long they may keep it waiting.

The API and the proxy count theirs here. If there are too many, the one that has kept the server waiting longest is
closed first.
"""

import asyncio
import logging
import resource
from collections import defaultdict
from collections.abc import Collection
from typing import Protocol

import msgspec

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


def limits_of_process(share: int = 2) -> ConnectionLimits:
    """One in `share` of the files that this process may open: the rest is for others. Half of it per address."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    max_connections = 10_000 if files == resource.RLIM_INFINITY else max(64, min(10_000, files // share))
    return ConnectionLimits(max_connections=max_connections, max_per_address=max_connections // 2)


class Connection(Protocol):
    """What is counted: a connection before its TLS handshake is done, with requests, or of the proxy."""

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
        #: In the order in which they came, which decides between those that wait equally long.
        self._by_address: defaultdict[str, dict[Connection, None]] = defaultdict(dict)
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        #: The time of the last check or new connection: exact enough, and cheaper than the clock for every request.
        self.now = 0.0

    def add(self, connection: Connection) -> None:
        """Take a connection on. If there are too many, the slowest of them is closed, which may be this one."""
        self.now = connection.waiting_since = connection.loop.time()
        own = self._by_address[connection.address]
        own[connection] = None
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
            del own[connection]
            self._count -= 1
        if not own:
            del self._by_address[connection.address]

    def _close_slowest(self, connections: Collection[Connection], newest: Connection) -> None:
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
