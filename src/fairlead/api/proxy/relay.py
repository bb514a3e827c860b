"""Forwards connections for workloads' URLs to the server that runs the machine, until this one does.

`app` starts it on a standby server, instead of the proxy. It only forwards bytes: the other server decides who may
send requests and where they go.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from fairlead.model.errors import Unavailable

_PIECE = 64 * 1024
_CONNECT_SECONDS = 10.0


class Relay:
    """`find` returns the current target as HOST:PORT; empty if there is none."""

    def __init__(self, find: Callable[[], Awaitable[str]]) -> None:
        self._find = find
        self._server: asyncio.Server | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def start(self, listening: socket.socket) -> None:
        # A duplicate, because the proxy listens on the same socket later.
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
            # The caller sees a closed connection, as from a server that is down.
            return
        finally:
            for side in (writer, there):
                if side is not None:
                    side.close()
                    with contextlib.suppress(OSError):
                        await side.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side has sent everything; the other may go on sending."""
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
