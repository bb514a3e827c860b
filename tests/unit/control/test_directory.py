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
        #: How many records were read.
        self.read = 0

    async def find(self, query: Query) -> list[Any]:
        if self.failures:
            self.failures -= 1
            raise Unavailable("away")
        if query.collection is not NODES:
            return []
        named: list[Any] = [where.value for where in query.where]
        found = [node for node in self.nodes if all(node.id in ids for ids in named)]
        self.read += len(found)
        return sorted(found, key=lambda node: node.id)


def node(number: int, cpu_milli: int = 1000) -> Node:
    return Node(id=f"{number:03}", name=f"node-{number}", cpu_milli=cpu_milli, memory_bytes=1, created_at=0)


def test_what_changed_while_the_store_was_away_is_read_later() -> None:
    async def run() -> None:
        shelf = Shelf()
        directory = Directory(shelf)  # type: ignore[arg-type]  # all that a directory asks of a store
        refresher = Refresher(directory, pause=0)
        shelf.nodes = [node(7)]
        shelf.failures = 2
        refresher.on_commit(1, [(NODES.name, "007")])
        refresher.on_commit(2, [("workloads", "x")])
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
        assert [node.name for node in directory.nodes.values()] == ["node-7"]
        assert not shelf.failures

    asyncio.run(run())


def test_of_many_nodes_only_those_that_changed_are_read() -> None:
    async def run() -> None:
        shelf = Shelf()
        shelf.nodes = [node(number) for number in range(1, 400)]
        directory = Directory(shelf)  # type: ignore[arg-type]  # all that a directory asks of a store
        await directory.load()
        shelf.read = 0
        # One is new and comes first, one has more, one is gone.
        shelf.nodes = [node(0), node(1, cpu_milli=2000), *(node(number) for number in range(3, 400))]
        await directory.refresh([(NODES.name, f"{number:03}") for number in range(3)])
        assert shelf.read == 2
        assert list(directory.nodes.values()) == shelf.nodes

    asyncio.run(run())
