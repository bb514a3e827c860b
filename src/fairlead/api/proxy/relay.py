"""Passes connections for workloads' URLs on to the server that runs the machine, byte by byte, until this one does.

`app` starts it on a server that stands by, in the place of the proxy. It knows nothing of what it passes on: who may
send requests, and where they go, is decided over there.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from fairlead.model.errors import Unavailable

_PIECE = 64 * 1024
_CONNECT_SECONDS = 10.0


class Relay:
    """`find` says where connections go at the moment, as HOST:PORT; empty for nowhere."""

    def __init__(self, find: Callable[[], Awaitable[str]]) -> None:
        self._find = find
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        # Of its own: whoever listens after it does so on the same socket.
        self._server = await asyncio.start_server(self._pass_on, sock=listening.dup())

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        self._server = None

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._connect(reader, writer))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            host, _, port = (await self._find()).rpartition(":")
            if host:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    back, there = await asyncio.open_connection(host.strip("[]"), int(port))
                await asyncio.gather(_copy(reader, there), _copy(back, writer))
        except (OSError, Unavailable):
            # Whoever asked sees a connection that ends, as from a server that is not there.
            return
        finally:
            for side in (writer, there):
                if side is not None:
                    side.close()
                    with contextlib.suppress(OSError):
                        await side.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side has said all; the other may go on speaking."""
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
