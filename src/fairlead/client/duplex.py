"""A request whose body and answer are streams at the same time: commands, terminals and ports of pods.

One socket in one thread: the caller waits for it with `select`, together with its own input.
"""

import contextlib
import json
import select
import socket
import struct
from collections.abc import Iterator

from fairlead.client.channel import Channel
from fairlead.client.client import Client
from fairlead.client.errors import Unreachable, read_error

#: The frames of the server's sessions: a channel, a length, bytes.
FRAME = struct.Struct("!BI")
INPUT, END, SIZE, FINISH = 0, 1, 2, 3
OUTPUT, ERROR, EXIT = 1, 2, 3
_PIECE = 65_536


def open_duplex(client: Client, path: str, query: str) -> "Duplex":
    """A POST whose body and answer are streams at the same time; `query` is rendered already."""
    address = client.address
    channel = Channel.open(address, client.timeout, client.trust)
    head = [
        f"POST {address.prefix}{path}?{query} HTTP/1.1",
        f"Host: {address.authority}",
        "User-Agent: fairlead-client",
        "Content-Type: application/octet-stream",
        f"Authorization: Bearer {client.token()}",
        "Transfer-Encoding: chunked",
        "",
        "",
    ]
    return Duplex(channel.socket, "\r\n".join(head).encode("latin-1"))


class Duplex:
    def __init__(self, connected: socket.socket, head: bytes) -> None:
        """Send the head of a request and read that of its answer; raises the server's error."""
        self._socket = connected
        self._raw = bytearray()
        #: Bytes of the answer, without the chunk headers.
        self._body = bytearray()
        self._is_over = False
        connected.sendall(head)
        status, headers = self._read_head()
        if status >= 400:
            raise read_error(status, self._read_error(headers))
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "")
        connected.settimeout(None)
        self._unwrap()

    def _read_head(self) -> tuple[int, dict[str, str]]:
        while b"\r\n\r\n" not in self._raw:
            self._fill()
        head, _, rest = bytes(self._raw).partition(b"\r\n\r\n")
        self._raw = bytearray(rest)
        lines = head.decode("latin-1").split("\r\n")
        status = lines[0].split(None, 2)
        if len(status) < 2 or not status[1].isdecimal():
            raise Unreachable("The program at this address does not speak HTTP.")
        fields = (line.partition(":") for line in lines[1:])
        return int(status[1]), {name.strip().lower(): value.strip().lower() for name, _, value in fields}

    def _read_error(self, headers: dict[str, str]) -> object:
        length = headers.get("content-length", "0")
        while length.isdecimal() and len(self._raw) < int(length):
            self._fill()
        try:
            return json.loads(bytes(self._raw))
        except ValueError:
            return bytes(self._raw).decode("utf-8", "replace")

    def _fill(self) -> None:
        try:
            piece = self._socket.recv(_PIECE)
        except OSError as error:
            raise Unreachable(f"The connection broke: {error}.") from error
        if not piece:
            raise Unreachable("The server closed the connection.")
        self._raw += piece

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def has_pending(self) -> bool:
        """Whether there are buffered bytes that `select` does not see, as with TLS."""
        pending = getattr(self._socket, "pending", None)
        return bool(pending is not None and pending())

    def send(self, data: bytes) -> None:
        """Send bytes of the request's body."""
        if data:
            self._socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def send_frame(self, channel: int, data: bytes = b"") -> None:
        self.send(FRAME.pack(channel, len(data)) + data)

    def end(self) -> None:
        """End the request's body; the answer continues."""
        with contextlib.suppress(OSError):
            self._socket.sendall(b"0\r\n\r\n")

    def receive(self) -> bytes:
        """Read bytes of the answer's body after `select`; empty at its end."""
        while not self._body and not self._is_over:
            try:
                self._fill()
            except Unreachable:
                self._is_over = True
                break
            self._unwrap()
            if not self.has_pending and not select.select([self._socket], [], [], 0)[0]:
                break
        received, self._body = bytes(self._body), bytearray()
        return received

    @property
    def is_over(self) -> bool:
        return self._is_over and not self._body

    def frames(self, pending: bytearray) -> Iterator[tuple[int, bytes]]:
        """The complete frames; an incomplete one stays in `pending`."""
        pending += self.receive()
        while len(pending) >= FRAME.size:
            channel, length = FRAME.unpack_from(pending)
            if len(pending) < FRAME.size + length:
                return
            yield channel, bytes(pending[FRAME.size : FRAME.size + length])
            del pending[: FRAME.size + length]

    def _unwrap(self) -> None:
        """Move complete chunks to the body."""
        if not self._is_chunked:
            self._body += self._raw
            self._raw.clear()
            return
        while b"\r\n" in self._raw:
            line, _, rest = bytes(self._raw).partition(b"\r\n")
            size = int(line.partition(b";")[0] or b"0", 16)
            if len(rest) < size + 2:
                return
            self._body += rest[:size]
            self._raw = bytearray(rest[size + 2 :])
            if size == 0:
                self._is_over = True
                return

    def close(self) -> None:
        self._socket.close()
