"""The records of the engine's nodes, so that nodes are read from the store like everything else.

The reconciler says when the engine's nodes may have changed. Nodes that differ are written, together with the
intervals of the ledger that end with the change.
"""

from collections.abc import Callable
from typing import Generic

import msgspec

from fairlead.control.context import Context
from fairlead.control.ledger.intervals import close_node, has_other_supply
from fairlead.control.loop.driver import Driver, OrderT
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict
from fairlead.model.records.organization import Node, with_not_ready_since
from fairlead.store.base import Change, Delete, Put
from fairlead.store.collections import NODES, SUPPLY


class NodeRecords(Generic[OrderT]):
    def __init__(self, context: Context, driver: Driver[OrderT], find_used: Callable[[], set[str]]) -> None:
        """`find_used`: the names of nodes that have pods."""
        self._context = context
        self._driver = driver
        self._find_used = find_used
        #: Whether the engine's nodes, or what was asked of them, may differ from their records.
        self.is_outdated = False
        #: The engine's nodes that were recorded last, by id, with the versions of their records.
        self._recorded: dict[str, tuple[Node, int]] = {}
        #: Names of recorded nodes that no longer exist, and stay until their last pods are gone.
        self._gone: set[str] = set()

    async def drop_emptied(self) -> None:
        """Delete the nodes that no longer exist and have lost their last pods."""
        if self._gone and self._gone - self._find_used():
            await self.record()

    async def record(self) -> None:
        """A node that no longer exists is deleted; as long as it has pods, it stays and takes no new ones."""
        known, now, used = self._context.directory.nodes, self._context.clock(), self._find_used()
        capacity = {node.id: node for node in await self._driver.engine.capacity()}
        missing = [node for node in known.values() if node.id not in capacity]
        still_used = {node.id: node for node in missing if node.name in used}
        observed = {id: self._with_owner(node) for id, node in capacity.items() if not self._is_recorded(node)}
        observed |= {id: msgspec.structs.replace(node, ready=False) for id, node in still_used.items()}
        writes: list[Put | Delete] = []
        for node in missing:
            if node.id not in still_used:
                writes += (Delete(NODES, node.id), self._end_supply(node, node, now))
        versions: dict[str, int] = {}
        for id, node in observed.items():
            versions[id], changes = self._render_change(node, now)
            writes += changes
        if writes:
            await self._commit(writes, observed.keys() | (known.keys() - capacity))
        unchanged = {id: self._recorded[id] for id in capacity if id not in observed}
        self._recorded = unchanged | {id: (capacity[id], versions[id]) for id in observed if id in capacity}
        self.is_outdated, self._gone = False, {node.name for node in still_used.values()}

    def _is_recorded(self, node: Node) -> bool:
        """Whether neither the engine's node nor its record has changed since it was recorded."""
        record = self._context.directory.nodes.get(node.id)
        known, version = self._recorded.get(node.id, (None, 0))
        return record is not None and known is node and version == record.version

    def _with_owner(self, node: Node) -> Node:
        owner = self._context.node_cluster_id
        return msgspec.structs.replace(node, cluster_id=owner) if owner else node

    def _render_change(self, observed: Node, now: Millis) -> tuple[int, list[Put | Delete]]:
        """The version of the node's record from now on, and what to write; nothing if the record says the same."""
        before = self._context.directory.nodes.get(observed.id)
        node = self._driver.with_cordon(with_not_ready_since(observed, before, now), before)
        version = before.version if before else 0
        if before is not None and msgspec.structs.replace(before, version=node.version) == node:
            return version, []
        writes: list[Put | Delete] = [Put(NODES, msgspec.structs.replace(node, version=version + 1))]
        if before is None or has_other_supply(before, node):
            writes.append(self._end_supply(node, before, now))
        return version + 1, writes

    def _end_supply(self, node: Node, before: Node | None, now: Millis) -> Put:
        pools = self._context.directory.node_pools.values()
        return Put(SUPPLY, close_node(node.unique_name, before, pools, now))

    async def _commit(self, writes: list[Put | Delete], node_ids: set[str]) -> None:
        try:
            await self._context.store.commit(Change(writes=tuple(writes)))
        except Conflict:
            # They were recorded before, in a commit whose outcome was unknown.
            await self._context.directory.load()
            raise
        await self._context.directory.refresh([(NODES.name, id) for id in node_ids])
