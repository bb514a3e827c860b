"""Ends a streamed response when its caller loses the right to it.

Used by watches, followed logs and sessions into pods: an expired token, a disabled account or a removed access
rule takes effect on them within seconds, as on a new request.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from fairlead.api.http.operation import Call
from fairlead.model.errors import Forbidden, NotFound, Unauthenticated
from fairlead.model.records.people import Caller

#: How often rights are checked again.
CHECK_SECONDS = 1.0


class StreamGuard:
    """Repeats the access checks of one call."""

    def __init__(self, call: Call, check: Callable[[Caller], Awaitable[object]]) -> None:
        self._call = call
        self._check = check

    async def may_continue(self) -> bool:
        try:
            self._call.caller = self._call.authenticate()
            await self._call.confirm_session()
            await self._check(self._call.caller)
        except (Unauthenticated, Forbidden, NotFound):
            return False
        return not self._call.context.stopping

    async def limit(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same pieces, until the caller loses access."""
        clock = asyncio.get_running_loop().time
        checked_at = clock()
        coming = asyncio.ensure_future(anext(pieces, None))
        try:
            while True:
                await asyncio.wait((coming,), timeout=CHECK_SECONDS)
                if clock() - checked_at >= CHECK_SECONDS:
                    if not await self.may_continue():
                        return
                    checked_at = clock()
                if coming.done():
                    piece = coming.result()
                    if piece is None:
                        return
                    yield piece
                    coming = asyncio.ensure_future(anext(pieces, None))
        finally:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
