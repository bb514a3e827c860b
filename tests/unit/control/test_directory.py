"""What is kept in memory of the organisation follows the store, also when that was away for a while."""

import asyncio
from typing import Any

from fairlead.control.directory import Directory, Refresher
from fairlead.model.errors import Unavailable
from fairlead.model.records.organization import Node
from fairlead.store.base import Query
from fairlead.store.collections import NODES


class Shelf:
    """A store that holds nodes only, and may be away."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.failures = 0

    async def find(self, query: Query) -> list[Any]:
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        return list(self.nodes) if query.collection is NODES else []


def test_what_changed_while_the_store_was_away_is_read_later() -> None:
    async def run() -> None:
        shelf = Shelf()
        directory = Directory(shelf)  # type: ignore[arg-type]  # all that a directory asks of a store
        refresher = Refresher(directory, pause=0)
        shelf.nodes = [Node(id="7", name="alpha", cpu_milli=1000, memory_bytes=1, created_at=0)]
        shelf.failures = 2
        refresher.on_commit(1, [(NODES.name, "1")])
        refresher.on_commit(2, [("workloads", "x")])
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        assert [node.name for node in directory.nodes.values()] == ["alpha"]
        assert not shelf.failures

    asyncio.run(run())
