"""One connection of the server to one supervisor, on the event loop: messages out, messages in, and its end."""

import asyncio
import socket
from collections.abc import Callable

from fairlead.engines.local import wire


class Link:
    """Calls `on_message` for every message and `on_disconnect` once when the other side is gone."""

    __slots__ = ("_inbox", "_loop", "_on_disconnect", "_on_message", "_pending", "_socket")

    def __init__(
        self, connection: socket.socket, on_message: Callable[[wire.Message], None], on_disconnect: Callable[[], None]
    ) -> None:
        self._socket = connection
        self._on_message = on_message
        self._on_disconnect = on_disconnect
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
            self._pending = b""  # the reader sees the end
        self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        """Read until the end. If a supervisor exits without reading what we sent, that is reported only once (uvloop
        stops watching at an error), while its last messages are still unread."""
        try:
            while data := self._socket.recv(65_536):
                for message in self._inbox.feed(data):
                    self._on_message(message)
                if self._socket.fileno() < 0:
                    return  # a message closed it
        except BlockingIOError:
            return
        except (OSError, ValueError):
            pass  # gone, or not our protocol: both are its end
        self.close()
        self._on_disconnect()

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
            self._socket.close()
