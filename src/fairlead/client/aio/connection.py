"""HTTP/1.1 over one socket that is kept open: only the parts that the SDK needs.

The standard library's `http.client` costs 30 ms to import (it brings the e-mail parser along), three times what a
Python process costs to start.
"""

from collections.abc import AsyncGenerator, Mapping

from fairlead.client.access.urls import MACHINES_OWN, Address, Trust
from fairlead.client.aio.channel import AsyncChannel
from fairlead.client.errors import TimedOut, Unreachable

_PIECE = 65_536


class AsyncResponse:
    """An answer whose head has been read. Its body is read completely, or in pieces as they arrive."""

    def __init__(self, status: int, headers: dict[str, str], channel: AsyncChannel, has_body: bool) -> None:
        self.status = status
        self.headers = headers
        self._channel = channel
        self._has_body = has_body
        #: Whether the connection can be used for another request after this body.
        self.is_finished = False

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives; raises Unreachable if the server goes away before its end."""
        try:
            async for piece in self._pieces():
                yield piece
        except TimeoutError as error:
            raise TimedOut("The server sent nothing more within the time limit.") from error
        except (OSError, ValueError) as error:
            # A ValueError means that a length is not a number.
            raise Unreachable(f"The connection broke while reading the answer: {error}.") from error
        self.is_finished = True

    async def lines(self) -> AsyncGenerator[bytes]:
        """The lines of the body, without line ends."""
        parts: list[bytes] = []
        async for piece in self.pieces():
            first, *others = piece.split(b"\n")
            parts.append(first)
            for following in others:
                yield b"".join(parts)
                parts = [following]
        if rest := b"".join(parts):
            yield rest

    async def _pieces(self) -> AsyncGenerator[bytes]:
        if not self._has_body:
            return
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            async for piece in self._chunks():
                yield piece
        elif "content-length" in self.headers:
            async for piece in self._counted(int(self.headers["content-length"])):
                yield piece
        else:
            while piece := await self._channel.read(_PIECE):
                yield piece

    async def _counted(self, remaining: int) -> AsyncGenerator[bytes]:
        while remaining:
            piece = await self._channel.read(min(remaining, _PIECE))
            if not piece:
                raise Unreachable("The server closed the connection in the middle of an answer.")
            remaining -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while True:
            line = await self._channel.read_line()
            if not line:
                raise Unreachable("The server closed the connection in the middle of an answer.")
            size = int(line.partition(b";")[0].strip() or b"0", 16)
            async for piece in self._counted(size):
                yield piece
            if not size:
                while (await self._channel.read_line()).strip():
                    pass
                return
            await self._channel.read_line()


class AsyncConnection:
    """One connection to one server, opened at the first request and reopened after it was closed."""

    def __init__(self, address: Address, timeout: float, trust: Trust = MACHINES_OWN) -> None:
        self._address = address
        self._timeout = timeout
        self._trust = trust
        self._channel: AsyncChannel | None = None
        self._open_response: AsyncResponse | None = None

    async def send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> AsyncResponse:
        """Send one request and read the head of its answer.

        A connection that the server has closed meanwhile is reopened, but only for requests without effects: a request
        that may have been executed is never sent twice.
        """
        was_open = await self._is_usable()
        try:
            return await self._send(method, target, headers, body)
        except (OSError, Unreachable) as error:
            await self.close()
            if was_open and method == "GET":
                return await self._send(method, target, headers, body)
            if isinstance(error, Unreachable):
                raise
            raise Unreachable(f"The connection to {self._address.authority} broke: {error}.") from error

    def wait_at_most(self, seconds: float | None) -> None:
        """Set the time limit for the next bytes of the present answer; None is no limit."""
        if self._channel is not None:
            self._channel.set_timeout(seconds)

    async def close(self) -> None:
        channel, self._channel, self._open_response = self._channel, None, None
        if channel is not None:
            await channel.close()

    async def _is_usable(self) -> bool:
        if self._channel is None:
            return False
        before = self._open_response
        is_spent = before is not None and (not before.is_finished or before.headers.get("connection", "") == "close")
        if is_spent or self._channel.has_ended():
            await self.close()
            return False
        return True

    async def _send(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> AsyncResponse:
        if self._channel is None:
            self._channel = await AsyncChannel.open(self._address, self._timeout, self._trust)
        channel = self._channel
        channel.set_timeout(self._timeout)
        head = [f"{method} {self._address.prefix}{target} HTTP/1.1", f"Host: {self._address.authority}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None or method != "GET":
            head.append(f"Content-Length: {len(body or b'')}")
        await channel.write("\r\n".join([*head, "", ""]).encode("latin-1") + (body or b""))
        response = await _read_head(channel, has_body=method != "HEAD")
        self._open_response = response
        return response


async def _read_head(channel: AsyncChannel, has_body: bool) -> AsyncResponse:
    while True:
        status_line = await channel.read_line()
        if not status_line:
            raise Unreachable("The server closed the connection without an answer.")
        fields = status_line.split(None, 2)
        if len(fields) < 2 or not fields[0].startswith(b"HTTP/1.") or not fields[1].isdigit():
            raise Unreachable("The program at this address does not speak HTTP.")
        status = int(fields[1])
        headers: dict[str, str] = {}
        while line := (await channel.read_line()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if status >= 200:
            return AsyncResponse(status, headers, channel, has_body and status not in (204, 304))
