"""Ends an answer that goes on and on when its caller may not have it any more.

Used by watches, followed logs and sessions into pods: a token that expires, an account that is disabled and an access
rule that is removed take effect on them within seconds, as on a new request.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from fairlead.api.http.operation import Call
from fairlead.model.errors import Forbidden, NotFound, Unauthenticated
from fairlead.model.records.organization import Caller

#: How often rights are checked again.
CHECK_SECONDS = 1.0


class StreamGuard:
    """Checks again, for one call, what was checked when it began."""

    def __init__(self, call: Call, check: Callable[[Caller], Awaitable[object]]) -> None:
        self._call = call
        self._check = check

    async def may_continue(self) -> bool:
        try:
            self._call.caller = self._call.authenticate()
            await self._check(self._call.caller)
        except (Unauthenticated, Forbidden, NotFound):
            return False
        return not self._call.context.stopping

    async def limit(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same pieces, for as long as the caller may have them."""
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
