"""What server, fork server and supervisors share: messages over Unix sockets (a length and JSON), and a few constants.

Loaded by the fork server too, so it imports little.
"""

import contextlib
import fcntl
import json
import os
import socket
import struct
import termios
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]

HEADER = struct.Struct("!I")
#: No peer of ours sends more; arguments and environment of one process are limited to some megabytes.
MAX_MESSAGE = 64 * 1024 * 1024
#: The option of a container runtime for the machine's network; the supervisor replaces it if the pod has its own.
HOST_NETWORK = "--network=host"


def encode(message: Message) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    return HEADER.pack(len(body)) + body


class Inbox:
    """Assembles messages from the pieces that arrive."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Every message that is complete with these bytes; raises ValueError for what is not a message."""
        self._pieces += data
        while len(self._pieces) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._pieces)
            if length > MAX_MESSAGE:
                raise ValueError(f"a message of {length} bytes")
            end = HEADER.size + length
            if len(self._pieces) < end:
                return
            message = json.loads(bytes(self._pieces[HEADER.size : end]))
            del self._pieces[:end]
            yield message


def connect(path: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """A non-blocking connection to the socket at `path`; OSError if there is no listener."""
    link = socket.socket(socket.AF_UNIX, kind)
    try:
        with Folder(path) as address:
            link.connect(address)
    except OSError:
        link.close()
        raise
    link.setblocking(False)
    return link


def listen(path: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
    """A non-blocking listener at `path`, for its owner only; a socket that a dead process left there is replaced."""
    listener = socket.socket(socket.AF_UNIX, kind)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    before = os.umask(0o177)
    try:
        with Folder(path) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Folder:
    """The address of a socket file through its open folder: a Unix address itself ends at 107 bytes."""

    __slots__ = ("_folder", "_name")

    def __init__(self, path: str) -> None:
        folder, self._name = os.path.split(path)
        self._folder = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> str:
        return f"/proc/self/fd/{self._folder}/{self._name}"

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)
