"""Background tasks that somebody owns: kept until they end, logged if they fail, cancelled on close."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import TypeVar

log = logging.getLogger(__name__)
Result = TypeVar("Result")


class BackgroundTasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def spawn(self, work: Coroutine[None, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        # The event loop itself holds tasks weakly.
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def _finish(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("A background task failed", exc_info=task.exception())

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
