"""HTTP/1.1 over one socket that is kept open: only the parts that the SDK needs.

The standard library's `http.client` costs 30 ms to import (it brings the e-mail parser along), three times what a
Python process costs to start; this imports only `socket`. TLS is imported if an address needs it.
"""

import importlib
import select
import socket
from collections.abc import Iterator, Mapping
from io import BufferedReader
from typing import NamedTuple

from fairlead.client.errors import ClientError, TimedOut, Unreachable

_TLS = "fairlead.client.tls"
_LONGEST_LINE = 65_536
_PIECE = 65_536


class Address(NamedTuple):
    """The address of a server. `prefix` is the path that it serves below, usually empty."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


_DEFAULT_PORTS = {"http": 80, "https": 443}


def read_address(url: str) -> Address:
    """Parse a URL; the default scheme is http."""
    scheme, separator, rest = url.strip().partition("://")
    if not separator:
        scheme, rest = "http", url.strip()
    if scheme not in _DEFAULT_PORTS:
        raise ClientError(f"'{url}' is not a server address: it must start with http:// or https://.")
    authority, _, path = rest.partition("/")
    host, port = _split_authority(authority.rpartition("@")[2], _DEFAULT_PORTS[scheme], url)
    return Address(scheme, host, port, f"/{path}".rstrip("/"))


def _split_authority(authority: str, default_port: int, url: str) -> tuple[str, int]:
    if authority.startswith("["):
        host, _, after = authority[1:].partition("]")
        port = after.removeprefix(":")
    else:
        host, _, port = authority.partition(":")
    if not host or not (port.isdecimal() or port == ""):
        raise ClientError(f"'{url}' is not a server address.")
    return host, int(port) if port else default_port


class Response:
    """An answer whose head has been read. Its body is read completely, or in pieces as they arrive."""

    def __init__(self, status: int, headers: dict[str, str], reader: BufferedReader, has_body: bool) -> None:
        self.status = status
        self.headers = headers
        self._reader = reader
        self._has_body = has_body
        #: Whether the connection can be used for another request after this body.
        self.is_finished = False

    def read(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raises Unreachable if the server goes away before its end."""
        try:
            yield from self._pieces()
        except TimeoutError as error:
            raise TimedOut("The server sent nothing more within the time limit.") from error
        except (OSError, ValueError) as error:
            # A ValueError means that a length is not a number.
            raise Unreachable(f"The connection broke while reading the answer: {error}.") from error
        self.is_finished = True

    def lines(self) -> Iterator[bytes]:
        """The lines of the body, without line ends."""
        parts: list[bytes] = []
        for piece in self.pieces():
            first, *others = piece.split(b"\n")
            parts.append(first)
            for following in others:
                yield b"".join(parts)
                parts = [following]
        if rest := b"".join(parts):
            yield rest

    def _pieces(self) -> Iterator[bytes]:
        if not self._has_body:
            return
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            yield from self._chunks()
        elif "content-length" in self.headers:
            yield from self._counted(int(self.headers["content-length"]))
        else:
            while piece := self._reader.read1(_PIECE):
                yield piece

    def _counted(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._reader.read1(min(left, _PIECE))
            if not piece:
                raise Unreachable("The server closed the connection in the middle of an answer.")
            left -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._reader.readline(_LONGEST_LINE)
            if not line:
                raise Unreachable("The server closed the connection in the middle of an answer.")
            size = int(line.partition(b";")[0].strip() or b"0", 16)
            yield from self._counted(size)
            if not size:
                while self._reader.readline(_LONGEST_LINE).strip():
                    pass
                return
            self._reader.readline(_LONGEST_LINE)


class Trust(NamedTuple):
    """Which certificates are trusted: those of an authority or of the machine's authorities, or a single one."""

    authority_file: str | None = None
    certificate_file: str | None = None


#: Trust the authorities of this machine.
MACHINES_OWN = Trust()


class Connection:
    """One connection to one server, opened at the first request and reopened after it was closed."""

    def __init__(self, address: Address, timeout: float, trust: Trust = MACHINES_OWN) -> None:
        self._address = address
        self._timeout = timeout
        self._trust = trust
        self._channel: tuple[socket.socket, BufferedReader] | None = None
        self._open_response: Response | None = None

    def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Send one request and read the head of its answer.

        A connection that the server has closed meanwhile is reopened, but only for requests without effects: a request
        that may have been executed is never sent twice.
        """
        was_open = self._is_usable()
        try:
            return self._send(method, target, headers, body)
        except (OSError, Unreachable) as error:
            self.close()
            if was_open and method == "GET":
                return self._send(method, target, headers, body)
            if isinstance(error, Unreachable):
                raise
            raise Unreachable(f"The connection to {self._address.authority} broke: {error}.") from error

    def open_duplex(self, target: str, headers: Mapping[str, str]) -> tuple[socket.socket, bytes]:
        """Open a new socket and send the head of a POST whose body follows in chunks."""
        connected, _ = self._open()
        self._channel = None
        head = [f"POST {self._address.prefix}{target} HTTP/1.1", f"Host: {self._address.authority}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        return connected, "\r\n".join([*head, "Transfer-Encoding: chunked", "", ""]).encode("latin-1")

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the time limit for the next bytes of the present answer; None is no limit."""
        if self._channel is not None:
            self._channel[0].settimeout(seconds)

    def close(self) -> None:
        if self._channel is not None:
            for end in reversed(self._channel):
                end.close()
        self._channel = self._open_response = None

    def _is_usable(self) -> bool:
        if self._channel is None:
            return False
        is_left_unread = self._open_response is not None and not self._open_response.is_finished
        if is_left_unread or _has_ended(self._channel[0]):
            self.close()
            return False
        return True

    def _send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        connected, reader = self._channel or self._open()
        connected.settimeout(self._timeout)
        head = [f"{method} {self._address.prefix}{target} HTTP/1.1", f"Host: {self._address.authority}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method != "GET":
            head.append(f"Content-Length: {len(body or b'')}")
        connected.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + (body or b""))
        response = _read_head(reader, has_body=method != "HEAD")
        self._open_response = response
        if response.headers.get("connection", "").lower() == "close":
            # The response keeps the reader; only this object drops it.
            connected.close()
            self._channel = None
        return response

    def _open(self) -> tuple[socket.socket, BufferedReader]:
        address = self._address
        try:
            connected = socket.create_connection((address.host, address.port), self._timeout)
        except OSError as error:
            raise Unreachable(f"No server answers at {address.scheme}://{address.authority}: {error}.") from error
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.scheme == "https":
            connected = importlib.import_module(_TLS).wrap(connected, address.host, self._trust)
        self._channel = (connected, connected.makefile("rb"))
        return self._channel


def _has_ended(connected: socket.socket) -> bool:
    """Whether the server has closed an idle connection: then it is readable."""
    poll = select.poll()
    poll.register(connected, select.POLLIN)
    return bool(poll.poll(0))


def _read_head(reader: BufferedReader, has_body: bool) -> Response:
    while True:
        status_line = reader.readline(_LONGEST_LINE)
        if not status_line:
            raise Unreachable("The server closed the connection without an answer.")
        fields = status_line.split(None, 2)
        if len(fields) < 2 or not fields[0].startswith(b"HTTP/1.") or not fields[1].isdigit():
            raise Unreachable("The program at this address does not speak HTTP.")
        status = int(fields[1])
        headers: dict[str, str] = {}
        while line := reader.readline(_LONGEST_LINE).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if status >= 200:
            return Response(status, headers, reader, has_body and status not in (204, 304))
