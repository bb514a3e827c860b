"""The HTTP server of a Fairlead server: uvicorn, ended by signals in our own order. Made by `app`."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from types import FrameType

import uvicorn

from fairlead.control.context import Context


class HttpServer(uvicorn.Server):
    """Ends on a signal in its own time: it says so at once to streams and new requests, and leaves the rest to us."""

    def __init__(self, config: uvicorn.Config, context: Context) -> None:
        super().__init__(config)
        self._context = context
        #: What `serve` returns; `app` decides what follows.
        self.exit_code = 0
        self._starting: asyncio.Task[None] | None = None

    def hear_signals(self) -> None:
        """From now on: a server that is told to end while it starts must end as well."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)

    async def start_with(self, work: Coroutine[None, None, None]) -> None:
        """Wait for what must be there before we serve; given up when we are told to end."""
        self._starting = asyncio.ensure_future(work)
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self.should_exit:
                raise
        finally:
            self._starting = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: uvicorn's own would raise the signal again at the end, which would skip our clean-up."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._context.stopping = True
        # Who is told to end does not begin again.
        self.exit_code = 0
        super().handle_exit(sig, frame)
        if self._starting is not None:
            self._starting.cancel()
