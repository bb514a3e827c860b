"""Messages over an upgraded connection, as the API server's sessions speak them (RFC 6455, the client's side).

Used by `sessions.py`. Only what the API server sends is understood: whole binary and text messages, pings, closes.
"""

import asyncio
import base64
import os
import struct
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.connection import ApiConnection

_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10
_LARGEST = 64 << 20


class WebSocket:
    def __init__(self, connection: ApiConnection, rest: bytes, protocol: str) -> None:
        self._connection = connection
        self._buffer = bytearray(rest)
        #: What was agreed on.
        self.protocol = protocol

    @classmethod
    async def open(cls, api: Api, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]) -> "WebSocket":
        headers = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            # Port forwarding is answered by the container runtime, which has nothing as JSON.
            "Accept": "*/*",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Protocol": ", ".join(protocols),
        }
        connection, answer = await api.upgrade(f"{quote(path)}?{urlencode(query)}", headers)
        return cls(connection, answer.rest, _agreed(answer.headers))

    async def send(self, data: bytes) -> None:
        self._write(_BINARY, data)
        await self._connection.writer.drain()

    def _write(self, kind: int, data: bytes) -> None:
        length = len(data)
        head = bytearray([0x80 | kind])
        if length < 126:
            head.append(0x80 | length)
        elif length < 1 << 16:
            head += struct.pack("!BH", 0x80 | 126, length)
        else:
            head += struct.pack("!BQ", 0x80 | 127, length)
        mask = os.urandom(4)
        self._connection.writer.write(bytes(head) + mask + _masked(data, mask))

    async def receive(self) -> bytes | None:
        """The next message; None when the other side has closed."""
        message = bytearray()
        while True:
            frame = await self._frame()
            if frame is None:
                return None
            is_last, kind, data = frame
            if kind == _PING:
                self._write(_PONG, data)
            elif kind == _CLOSE:
                return None
            elif kind in (_CONTINUATION, _TEXT, _BINARY):
                message += data
                if is_last:
                    return bytes(message)

    async def _frame(self) -> tuple[bool, int, bytes] | None:
        if not await self._fill(2):
            return None
        first, second = self._buffer[0], self._buffer[1]
        length, start = second & 0x7F, 2
        if length > 125:
            wide = 2 if length == 126 else 8
            if not await self._fill(2 + wide):
                return None
            length = int.from_bytes(self._buffer[2 : 2 + wide])
            start += wide
        if length > _LARGEST or not await self._fill(start + length):
            return None
        data = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        return bool(first & 0x80), first & 0x0F, data

    async def _fill(self, length: int) -> bool:
        """Whether so many bytes are there before the other side closes."""
        while len(self._buffer) < length:
            try:
                piece = await self._connection.reader.read(65_536)
            except OSError:
                return False
            if not piece:
                return False
            self._buffer += piece
        return True

    def close(self) -> None:
        if not self._connection.writer.is_closing():
            self._write(_CLOSE, struct.pack("!H", 1000))
            self._connection.close()


def _agreed(headers: Mapping[str, str]) -> str:
    return headers.get("sec-websocket-protocol", "")


def _masked(data: bytes, mask: bytes) -> bytes:
    """Each byte against one of the mask's four, as one large number at once."""
    length = len(data)
    pattern = mask * (length // 4 + 1)
    return (int.from_bytes(data, "little") ^ int.from_bytes(pattern[:length], "little")).to_bytes(length, "little")


async def pump(source: asyncio.StreamReader, send: "WebSocket", channel: bytes) -> None:
    """Pass everything from a stream on as messages of one channel."""
    while piece := await source.read(65_536):
        await send.send(channel + piece)
