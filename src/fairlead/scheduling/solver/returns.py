"""Victims of whole GPUs by node: those on some nodes often all get a place before the winner, whatever their order.

Where no GPU is free and each victim comes from one node, its node is free again as far as victims leave it. Then sums
by node suffice, and a scenario that must fail need not even be put together. Made by `last_in_line`, asked by
`scenarios`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fairlead.scheduling.model.live import LiveJob, LiveTask
from fairlead.scheduling.solver.packing import all_fit_again


class ReturnsByNode:
    """For one probe without loaded victims."""

    def __init__(self, find_places: Callable[[LiveJob], Sequence[tuple[int, int]]], most: int) -> None:
        """`find_places`: node and GPUs of each task of a victim; nothing unless it comes before the winner.

        `most`: GPUs of the largest node.
        """
        self.find_places = find_places
        self.most = most
        #: By node, the GPUs that victims leave there, and the numbers of their tasks by size.
        self.rooms: dict[int, int] = {}
        self.counts: dict[int, dict[int, int]] = {}
        #: Nodes with a victim of several nodes, or with one about which nothing is known.
        self.unknown: set[int] = set()

    def add(self, unit: Sequence[LiveTask]) -> None:
        places = self.find_places(unit[0].job)
        nodes = {task.home.index for task in unit}
        if len(places) != len(unit) or len(nodes) > 1:
            self.unknown |= nodes
            return
        for node, size in places:
            self.rooms[node] = self.rooms.get(node, 0) + size
            counts = self.counts.setdefault(node, {})
            counts[size] = counts.get(size, 0) + 1

    def all_return(self, nodes: Sequence[int]) -> bool:
        """Whether all victims on these nodes get a place before the winner; false if that is unknown."""
        if not self.unknown.isdisjoint(nodes):
            return False
        counts: dict[int, int] = {}
        for node in nodes:
            for size, count in self.counts[node].items():
                counts[size] = counts.get(size, 0) + count
        parts = sum(count for size, count in counts.items() if 1 < size < self.most)
        return parts <= 1 or len(nodes) == 1 or all_fit_again({node: self.rooms[node] for node in nodes}, {}, counts)
