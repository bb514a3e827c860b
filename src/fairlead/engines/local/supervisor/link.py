"""One connection of the server to one supervisor, on the event loop: messages out, messages in, and its end."""

import asyncio
import socket
from collections.abc import Callable

from fairlead.engines.local import wire


class Link:
    """Calls `heard` for every message and `ended` once when the other side is gone."""

    __slots__ = ("_ended", "_heard", "_inbox", "_loop", "_pending", "_socket")

    def __init__(
        self, connection: socket.socket, heard: Callable[[wire.Message], None], ended: Callable[[], None]
    ) -> None:
        self._socket = connection
        self._heard = heard
        self._ended = ended
        self._inbox = wire.Inbox()
        self._pending = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection.fileno(), self._read)

    def send(self, message: wire.Message) -> None:
        self._pending += wire.encode(message)
        self._write()

    def _write(self) -> None:
        try:
            while self._pending:
                sent = self._socket.send(self._pending)
                self._pending = self._pending[sent:]
        except BlockingIOError:
            self._loop.add_writer(self._socket.fileno(), self._write)
            return
        except OSError:
            self._pending = b""  # the reader hears of the end
        self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        """Everything that has come. A supervisor that went without reading what we sent it is told of once and never
        again (uvloop stops watching at an error), with its last words still before the end: hence to the end."""
        try:
            while data := self._socket.recv(65_536):
                for message in self._inbox.feed(data):
                    self._heard(message)
                if self._socket.fileno() < 0:
                    return  # somebody who heard it has closed it
        except BlockingIOError:
            return
        except (OSError, ValueError):
            pass  # gone, or talking nonsense: both are its end
        self.close()
        self._ended()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
