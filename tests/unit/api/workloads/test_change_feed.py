"""Streams that show the same projects share what is read; one that is behind, or another one, reads for itself."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from fairlead.api.workloads.change_feed import Batch, ChangeFeed, ChangeFeeds, Message
from fairlead.model.errors import Unavailable
from fairlead.store.base import Listener

PATIENCE = 60.0


class Source:
    """A store whose events are counted, and what a feed reads of it: at most three events at once."""

    def __init__(self, revision: int = 0) -> None:
        self.revision = revision
        self.reads: list[int] = []
        self.listeners: list[Listener] = []
        self.error: Unavailable | None = None

    def subscribe(self, listener: Listener) -> Any:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def commit(self, events: int = 1) -> None:
        self.revision += events
        for listener in self.listeners:
            listener(self.revision, ())

    async def load(self, since: int) -> tuple[int, list[Message]]:
        self.reads.append(since)
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        through = min(self.revision, since + 3)
        return through, [(number, b"%d " % number) for number in range(since + 1, through + 1)]


async def collect(feed: ChangeFeed, since: int, until: int) -> bytes:
    text = b""
    while since < until:
        since, batches = await feed.read(since, PATIENCE)
        text += b"".join(batch.text for batch in batches)
    return text


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, PATIENCE))


def join(feeds: ChangeFeeds, source: Source, since: int, key: object = "all") -> Any:
    return feeds.join(key, source.subscribe, source.load, since)


def test_equal_streams_share_every_read() -> None:
    async def watch() -> None:
        source, feeds = Source(10), ChangeFeeds(9)
        async with join(feeds, source, 10) as one, join(feeds, source, 10) as other:
            assert one is other
            both = asyncio.gather(collect(one, 10, 15), collect(other, 10, 15))
            source.commit(5)
            assert list(await both) == [b"11 12 13 14 15 "] * 2
        # At most one before the commit, two for five events, and one that finds no more.
        assert len(source.reads) <= 4, source.reads

    run(watch())


def test_other_projects_are_another_feed() -> None:
    async def watch() -> None:
        source, feeds = Source(), ChangeFeeds(9)
        async with join(feeds, source, 0, key="a") as one, join(feeds, source, 0, key="b") as other:
            assert one is not other

    run(watch())


def test_a_stream_that_joins_later_gets_only_what_it_does_not_have() -> None:
    async def watch() -> None:
        source, feeds = Source(), ChangeFeeds(9)
        async with join(feeds, source, 0) as feed:
            source.commit(3)
            assert await collect(feed, 0, 3) == b"1 2 3 "
            assert await collect(feed, 2, 3) == b"3 "

    run(watch())


def test_a_stream_that_is_far_behind_reads_for_itself() -> None:
    async def watch() -> None:
        source, feeds = Source(100), ChangeFeeds(9)
        async with join(feeds, source, 100) as feed:
            assert await collect(feed, 95, 100) == b"96 97 98 99 100 "
            assert {95, 98} <= set(source.reads)

    run(watch())


def test_a_read_that_fails_ends_its_streams_and_not_later_ones() -> None:
    async def watch() -> None:
        source, feeds = Source(), ChangeFeeds(9)
        source.error = Unavailable("The store cannot be read")
        async with join(feeds, source, 0) as feed:
            with pytest.raises(Unavailable):
                await collect(feed, 0, 1)
            source.error = None
            async with join(feeds, source, 0) as next_feed:
                source.commit()
                assert await collect(next_feed, 0, 1) == b"1 "

    run(watch())


def test_a_feed_ends_with_its_last_stream() -> None:
    async def watch() -> None:
        source, feeds = Source(), ChangeFeeds(9)
        async with join(feeds, source, 0) as feed:
            source.commit()
            await collect(feed, 0, 1)
            assert len(source.listeners) == 1
        assert not source.listeners
        async with join(feeds, source, 1) as another:
            assert another is not feed

    run(watch())


def test_nothing_is_returned_if_nothing_changes() -> None:
    async def watch() -> None:
        source, feeds = Source(5), ChangeFeeds(9)
        async with join(feeds, source, 5) as feed:
            await feed.read(5, 0.01)
            assert await feed.read(5, 0.01) == (5, [])

    run(watch())


def test_a_batch_after_a_revision_has_only_later_messages() -> None:
    batch = Batch(1, 4, [(2, b"2 "), (4, b"4 ")])
    assert batch.after(1) is batch
    assert (batch.after(2).text, bool(batch.after(4))) == (b"4 ", False)
