"""The HTTP server: uvicorn with its own handling of signals. Created by `app`."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType

import uvicorn

from fairlead.control.context import Context


class HttpServer(uvicorn.Server):
    """On a signal it refuses new requests and ends streams at once; `app` cleans up afterwards.

    With `drain_seconds`, SIGTERM first makes it not ready, and it serves for so long before it stops.
    """

    def __init__(
        self, config: uvicorn.Config, context: Context, before_closing: Callable[[], None], drain_seconds: float = 0
    ) -> None:
        super().__init__(config)
        self._context = context
        self._drain_seconds = drain_seconds
        #: Called before the listener is closed.
        self._before_closing = before_closing
        #: The exit code that `serve` returns.
        self.exit_code = 0
        self._starting: asyncio.Task[None] | None = None

    def handle_signals(self) -> None:
        """Handle signals from now on, so that the server can be stopped while it starts."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)

    async def start_with(self, work: Coroutine[None, None, None]) -> None:
        """Wait for work that must finish before the server serves; a signal cancels it."""
        self._starting = asyncio.ensure_future(work)
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self.should_exit:
                raise
        finally:
            self._starting = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_closing()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: uvicorn would raise the signal again at the end, which would skip the clean-up."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        is_draining = self._context.draining
        if sig == signal.SIGTERM and self._drain_seconds and self.started and not is_draining:
            self._context.draining = True
            asyncio.get_running_loop().call_later(self._drain_seconds, self.handle_exit, sig, None)
            return
        self._context.stopping = True
        # A server that was told to stop does not start again.
        self.exit_code = 0
        super().handle_exit(sig, frame)
        if self._starting is not None:
            self._starting.cancel()
