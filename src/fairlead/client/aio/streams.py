"""Streams: the output of a pod, and the changes of workloads. Created by the client."""

import json
from collections.abc import AsyncGenerator, Callable

from fairlead.client.aio.connection import AsyncConnection, AsyncResponse
from fairlead.client.json_object import Json


class AsyncStream:
    """A streamed answer and its connection, which is closed at its end."""

    def __init__(self, connection: AsyncConnection, response: AsyncResponse) -> None:
        self._connection = connection
        self._response = response

    async def pieces(self) -> AsyncGenerator[bytes]:
        try:
            async for piece in self._response.pieces():
                yield piece
        finally:
            await self._connection.close()

    async def lines(self) -> AsyncGenerator[bytes]:
        try:
            async for line in self._response.lines():
                yield line
        finally:
            await self._connection.close()

    def wait_at_most(self, seconds: float | None) -> None:
        self._connection.wait_at_most(seconds)

    async def close(self) -> None:
        await self._connection.close()


class AsyncWatch:
    """A stream of changes, each a dict: `revision`, `workloadId`, `reason`, `message` and the present `workload`."""

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream
        #: The last revision that was received; a new watch can start after it.
        self.revision: int | None = None

    async def changes(self, timeout: Callable[[], float | None] = lambda: None) -> AsyncGenerator[Json | None]:
        """Yield every change, and None from time to time while there is none. `timeout` limits the wait."""
        data: list[bytes] = []
        self._stream.wait_at_most(timeout())
        async for line in self._stream.lines():
            name, _, value = line.rstrip(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"id" and value.isdigit():
                self.revision = int(value)
            elif name == b"data":
                data.append(value)
            elif not line:
                yield json.loads(b"\n".join(data)) if data else None
                data = []
                self._stream.wait_at_most(timeout())

    async def close(self) -> None:
        await self._stream.close()
