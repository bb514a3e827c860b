"""One socket to a server, for `asyncio`. `fairlead.client.channel` is its counterpart for the blocking client."""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import TypeVar

from fairlead.client.access.tls import make_context
from fairlead.client.access.urls import Address, Trust
from fairlead.client.channel import LONGEST_LINE
from fairlead.client.errors import Unreachable

T = TypeVar("T")


class AsyncChannel:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._timeout: float | None = None

    @classmethod
    async def open(cls, address: Address, timeout: float, trust: Trust) -> "AsyncChannel":
        """Connect; raises Unreachable."""
        secure = make_context(trust) if address.scheme == "https" else None
        try:
            opening = asyncio.open_connection(address.host, address.port, ssl=secure, limit=LONGEST_LINE)
            return cls(*await asyncio.wait_for(opening, timeout))
        except OSError as error:
            raise Unreachable(f"No server answers at {address.scheme}://{address.authority}: {error}.") from error

    def set_timeout(self, seconds: float | None) -> None:
        """The time limit for each of the next reads and writes; None is no limit."""
        self._timeout = seconds

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._limited(self._writer.drain())

    async def read_line(self) -> bytes:
        return await self._limited(self._reader.readline())

    async def read(self, limit: int) -> bytes:
        """What has arrived, but at least one byte; empty at the end."""
        return await self._limited(self._reader.read(limit))

    async def _limited(self, operation: Awaitable[T]) -> T:
        async with asyncio.timeout(self._timeout):
            return await operation

    def has_ended(self) -> bool:
        """Whether the server has closed an idle connection."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
