"""Changes of workloads for all streams that show the same projects: each is read, rendered and compressed once.

Used by `watch.py`. A feed has one task that reads after a commit, and keeps its newest batches for the streams. A
stream that is further behind reads for itself. The more streams are open, the longer a feed pauses between two reads,
so that pages do not slow submissions down.
"""

import asyncio
import contextlib
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import cached_property

#: The pause between two reads for each open stream, and the longest one.
_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.002, 1.0
_MAX_BATCHES = 16
#: Begins a gzip file of unknown time and system. What follows is a deflate stream that never ends.
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

#: A message of the stream, with the revision of its event.
Message = tuple[int, bytes]
#: Reads the changes after a revision: up to which revision, and their messages.
Load = Callable[[int], Awaitable[tuple[int, list[Message]]]]
#: Calls a listener after every commit, until the returned function is called.
Subscribe = Callable[[Callable[[int, Sequence[tuple[str, str]]], None]], Callable[[], None]]


def deflate(text: bytes) -> bytes:
    """A part of a deflate stream that refers to no other part, so that all streams can share it."""
    compressor = zlib.compressobj(level=1, wbits=-15)
    return compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH)


class Batch:
    """The messages of the changes after one revision, up to another one."""

    def __init__(self, start: int, through: int, messages: Sequence[Message]) -> None:
        self.start = start
        self.through = through
        self._messages = messages

    @cached_property
    def text(self) -> bytes:
        return b"".join(message for _, message in self._messages)

    @cached_property
    def deflated(self) -> bytes:
        return deflate(self.text)

    def after(self, revision: int) -> "Batch":
        if revision <= self.start:
            return self
        return Batch(revision, self.through, [one for one in self._messages if one[0] > revision])

    def __bool__(self) -> bool:
        return bool(self._messages)


class ChangeFeed:
    def __init__(self, subscribe: Subscribe, load: Load, since: int, pause: Callable[[], float]) -> None:
        self._subscribe = subscribe
        self._load = load
        self._pause = pause
        #: Up to which revision this feed has read.
        self._position = since
        self._batches: deque[Batch] = deque(maxlen=_MAX_BATCHES)
        self._changed = asyncio.Event()
        #: Set and replaced after every read.
        self._was_read = asyncio.Event()
        self._error: Exception | None = None
        #: How many streams use it.
        self.streams = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="changes of workloads")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def is_broken(self) -> bool:
        return self._error is not None

    async def read(self, since: int, seconds: float) -> tuple[int, list[Batch]]:
        """What changed after a revision, and the revision up to which that is known; waits so long for a change.

        Raises what the feed's last read raised; the client connects again then.
        """
        if since < (self._batches[0].start if self._batches else self._position):
            through, messages = await self._load(since)
            return through, [Batch(since, through, messages)]
        if self._position <= since and not self.is_broken:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._was_read.wait(), seconds)
        if self._error is not None:
            raise self._error
        unread = (batch.after(since) for batch in self._batches if batch.through > since)
        return max(since, self._position), [batch for batch in unread if batch]

    async def _run(self) -> None:
        """Read after every commit, until cancelled or until a read fails."""
        unsubscribe = self._subscribe(lambda revision, subjects: self._changed.set())
        self._changed.set()
        try:
            while not self.is_broken:
                await self._changed.wait()
                self._changed.clear()
                await self._advance()
                self._was_read.set()
                self._was_read = asyncio.Event()
                await asyncio.sleep(self._pause())
        finally:
            unsubscribe()

    async def _advance(self) -> None:
        try:
            through, messages = await self._load(self._position)
        except Exception as error:
            # The streams raise it; nobody waits for this task.
            self._error = error
            return
        if messages:
            self._batches.append(Batch(self._position, through, messages))
            # There may be more than one read returns.
            self._changed.set()
        self._position = max(self._position, through)


class ChangeFeeds:
    """The feeds of a server, by what their streams show. A feed ends with its last stream."""

    def __init__(self, max_streams: int) -> None:
        self._max_streams = max_streams
        self._open_streams = 0
        self._feeds: dict[object, ChangeFeed] = {}

    @property
    def is_full(self) -> bool:
        return self._open_streams >= self._max_streams

    @contextlib.contextmanager
    def count(self) -> Iterator[None]:
        """Count one more open stream."""
        self._open_streams += 1
        try:
            yield
        finally:
            self._open_streams -= 1

    @contextlib.asynccontextmanager
    async def join(self, key: object, subscribe: Subscribe, load: Load, since: int) -> AsyncIterator[ChangeFeed]:
        feed = self._feeds.get(key)
        if feed is None or feed.is_broken:
            feed = self._feeds[key] = ChangeFeed(subscribe, load, since, self._pause_seconds)
            feed.start()
        feed.streams += 1
        try:
            yield feed
        finally:
            feed.streams -= 1
            if not feed.streams:
                if self._feeds.get(key) is feed:
                    del self._feeds[key]
                await feed.stop()

    def _pause_seconds(self) -> float:
        return min(_PAUSE_SECONDS * self._open_streams, _MAX_PAUSE_SECONDS)
