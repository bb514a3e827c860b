"""A response that is streamed while the request's body is still received: sessions into pods, here or elsewhere.

`workloads/sessions.py` uses it for every session, `forward.py` for every request that another server answers.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fairlead.api.http.guard import CHECK_SECONDS, StreamGuard

STREAM = "application/octet-stream"
_OWN_HEADERS = {"content-type": STREAM, "cache-control": "no-store"}


class DuplexHandlers(NamedTuple):
    """Handlers for the bytes of each direction, for the end of the caller's, and for the end of both."""

    inward: Callable[[bytes], Awaitable[None]]
    outward: Callable[[Send], Coroutine[None, None, None]]
    ended: Callable[[], None]
    close: Callable[[], Awaitable[None]]


class DuplexResponse(Response):
    """It ends when either direction ends, the server stops, or the caller's rights end; an error aborts it."""

    def __init__(
        self, ways: DuplexHandlers, guard: StreamGuard, status: int = 200, headers: Mapping[str, str] = _OWN_HEADERS
    ) -> None:
        super().__init__(None, status, {**headers, "connection": "close"})
        del self.headers["content-length"]
        self._ways = ways
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        # The caller waits for the response's headers before it sends anything.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        tasks = {asyncio.create_task(self._read(receive)), asyncio.create_task(self._ways.outward(send))}
        done: set[asyncio.Task[None]] = set()
        try:
            while not done and await self._guard.may_continue():
                done, _ = await asyncio.wait(tasks, timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._ways.close()
        for task in done:
            task.result()
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    async def _read(self, receive: Receive) -> None:
        """Pass the body on; returns when the caller disconnects."""
        has_more = True
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            if message.get("body"):
                await self._ways.inward(message["body"])
            if has_more and not message.get("more_body"):
                has_more = False
                self._ways.ended()
