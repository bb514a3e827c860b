"""An event loop on which hours pass in moments: it does not wait for the next timer, it moves the clock there.

For tests in which nothing waits for another process, a thread or a socket.
"""

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any


class _Selector(selectors.SelectSelector):
    """Is asked to wait when nothing is left to do before the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everything waits, and nothing will happen any more"
        self.passed += timeout
        return super().select(0)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._passing = _Selector()
        super().__init__(self._passing)

    def time(self) -> float:
        return self._passing.passed


def run_in_virtual_time(test: Callable[[], Awaitable[Any]]) -> None:
    async def act() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(act())
