"""The writer of audit lines: what it has taken is written, also if the server stops meanwhile."""

import asyncio
from typing import Any, cast

from fairlead.control.audit import AuditWriter
from fairlead.control.context import Context
from fairlead.model.errors import Unavailable
from fairlead.model.records.event import AuditLine
from fairlead.store.base import Change


class SlowStore:
    """Its commits last until they are released."""

    def __init__(self) -> None:
        self.lines: list[AuditLine] = []
        self.refusals = 0
        self.began, self.released = asyncio.Event(), asyncio.Event()

    async def commit(self, change: Change) -> int:
        self.began.set()
        await self.released.wait()
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("not now")
        self.lines += change.audit
        return 0


def line(number: int) -> AuditLine:
    return AuditLine(at=number, caller="ann", operation="create", subject="tokens", subject_id=str(number))


def writer_to(store: SlowStore) -> AuditWriter:
    class OnlyStore:
        def __init__(self) -> None:
            self.store: Any = store

    return AuditWriter(cast(Context, OnlyStore()), pause=0)


async def _stop_during_a_commit(refusals: int) -> list[int]:
    store = SlowStore()
    store.refusals = refusals
    writer = writer_to(store)
    writer.add(line(1))
    await store.began.wait()
    writer.add(line(2))
    stopping = asyncio.create_task(writer.stop())
    await asyncio.sleep(0)
    store.released.set()
    await stopping
    return [each.at for each in store.lines]


def test_a_stop_loses_no_line_of_a_commit_in_progress() -> None:
    assert asyncio.run(_stop_during_a_commit(0)) == [1, 2]


def test_a_stop_tries_again_what_the_store_refused() -> None:
    assert asyncio.run(_stop_during_a_commit(1)) == [1, 2]


def test_lines_after_a_stop_are_written_too() -> None:
    async def run() -> list[int]:
        store = SlowStore()
        store.released.set()
        writer = writer_to(store)
        await writer.stop()
        writer.add(line(1))
        await writer.stop()
        return [each.at for each in store.lines]

    assert asyncio.run(run()) == [1]
