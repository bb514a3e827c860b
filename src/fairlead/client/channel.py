"""One socket to a server, for the blocking client. `aio/channel.py` is its counterpart for `asyncio`.

These two are the only modules of the client that are written for one of both. TLS is imported if an address needs it.
"""

import importlib
import select
import socket

from fairlead.client.access.urls import Address, Trust
from fairlead.client.errors import Unreachable

_TLS = "fairlead.client.access.tls"
LONGEST_LINE = 65_536


class Channel:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._reader = connected.makefile("rb")

    @classmethod
    def open(cls, address: Address, timeout: float, trust: Trust) -> "Channel":
        """Connect; raises Unreachable."""
        try:
            connected = socket.create_connection((address.host, address.port), timeout)
        except OSError as error:
            raise Unreachable(f"No server answers at {address.scheme}://{address.authority}: {error}.") from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.scheme == "https":
            connected = importlib.import_module(_TLS).wrap(connected, address.host, trust)
        return cls(connected)

    def set_timeout(self, seconds: float | None) -> None:
        """The time limit for each of the next reads and writes; None is no limit."""
        self.socket.settimeout(seconds)

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_line(self) -> bytes:
        return self._reader.readline(LONGEST_LINE)

    def read(self, limit: int) -> bytes:
        """What has arrived, but at least one byte; empty at the end."""
        return self._reader.read1(limit)

    def has_ended(self) -> bool:
        """Whether the server has closed an idle connection: then it is readable."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        self._reader.close()
        self.socket.close()
