"""WebSocket messages over an upgraded connection, as the API server's sessions exchange them.

Used by `sessions.py`. Frames are the library's; the connection, with its certificates and tokens, is `api.py`'s.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, OPEN, Protocol
from websockets.utils import generate_key

from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.connection import ApiConnection

_LARGEST = 64 << 20
_PIECE = 65_536
_DATA = (Opcode.CONT, Opcode.TEXT, Opcode.BINARY)


class WebSocket:
    def __init__(self, connection: ApiConnection, rest: bytes, subprotocol: str) -> None:
        self._connection = connection
        self._protocol = Protocol(CLIENT, state=OPEN, max_size=_LARGEST)
        self._frames: deque[Frame] = deque()
        #: What the server agreed to.
        self.subprotocol = subprotocol
        self._feed(rest)

    @classmethod
    async def open(
        cls, api: Api, path: str, query: Sequence[tuple[str, str]], subprotocols: Sequence[str]
    ) -> "WebSocket":
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            # The container runtime answers port forwarding, and has no JSON.
            "Accept": "*/*",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": generate_key(),
            "Sec-WebSocket-Protocol": ", ".join(subprotocols),
        }
        connection, answer = await api.upgrade(f"{quote(path)}?{urlencode(query)}", headers)
        return cls(connection, answer.rest, answer.headers.get("sec-websocket-protocol", ""))

    async def send(self, data: bytes) -> None:
        if self._protocol.state is not OPEN:
            raise ConnectionResetError("the API server closed the session")
        self._protocol.send_binary(data)
        self._flush()
        await self._connection.writer.drain()

    async def receive(self) -> bytes | None:
        """The next message; None when the other side has closed."""
        message = bytearray()
        while True:
            while self._frames:
                frame = self._frames.popleft()
                message += frame.data
                if frame.fin:
                    return bytes(message)
            if self._protocol.state is not OPEN or not await self._read():
                return None

    async def _read(self) -> bool:
        """Whether anything came before the other side closed."""
        try:
            piece = await self._connection.reader.read(_PIECE)
        except OSError:
            return False
        self._feed(piece)
        return bool(piece)

    def _feed(self, data: bytes) -> None:
        if data:
            self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Frame) and event.opcode in _DATA:
                self._frames.append(event)
        # The answers to pings and to a close.
        self._flush()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            # An empty one stands for the end of the connection, which `close` brings.
            if data and not self._connection.writer.is_closing():
                self._connection.writer.write(data)

    def close(self) -> None:
        if self._protocol.state is OPEN:
            self._protocol.send_close(1000)
            self._flush()
        self._connection.close()


async def pump(source: asyncio.StreamReader, link: WebSocket, channel: bytes) -> None:
    """Send everything from a stream as messages of one channel."""
    while piece := await source.read(_PIECE):
        await link.send(channel + piece)
