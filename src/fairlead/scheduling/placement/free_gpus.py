"""Free GPUs of all nodes as filters and pre-checks see them, kept in order while nodes change.

True for the state at the last commit: read it only while no attempt is under way.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from fairlead.scheduling.model.live import LiveNode
from fairlead.scheduling.placement.gpus import at_most_free, idle_sum, releasing_sum

#: Sums of parts of GPUs may be off by this much.
_EPSILON = 1e-9


def count_slots(amount: float, size: int) -> int:
    return int((amount + _EPSILON) / size) if amount > 0 else 0


class FreeGpus:
    def __init__(self, nodes: Sequence[LiveNode], touched: Sequence[int]) -> None:
        self.nodes = nodes
        self.touched = touched
        self.read = len(touched)
        self.amounts: list[float] = []
        #: No less than what tasks can get.
        self.exact: list[float] = []
        #: Sum of what is there of `exact`.
        self.exact_total: float = 0
        #: Slots of a size on all nodes, counted when first asked for.
        self._slots: dict[int, int] = {}
        #: Minus the amount, then the node's index: freest first.
        self.ordered: list[tuple[float, int]] = []
        #: Nodes with anything idle or releasing.
        self.feasible: dict[int, LiveNode] = {}
        for node in nodes:
            idle, releasing = idle_sum(node), releasing_sum(node)
            self.amounts.append(idle + releasing)
            self.exact.append(at_most_free(node))
            if idle > 0 or releasing > 0:
                self.feasible[node.index] = node
        self.exact_total = sum(amount for amount in self.exact if amount > 0)
        self.ordered = sorted((-amount, index) for index, amount in enumerate(self.amounts))

    def update(self) -> None:
        if self.read == len(self.touched):
            return
        changed = set(self.touched[self.read :])
        self.read = len(self.touched)
        self._slots.clear()
        for index in changed:
            node = self.nodes[index]
            idle, releasing = idle_sum(node), releasing_sum(node)
            if idle > 0 or releasing > 0:
                self.feasible[index] = node
            else:
                self.feasible.pop(index, None)
            exact = at_most_free(node)
            self.exact_total += max(0, exact) - max(0, self.exact[index])
            self.exact[index] = exact
            amount, before = idle + releasing, self.amounts[index]
            if amount != before:
                del self.ordered[bisect_left(self.ordered, (-before, index))]
                insort(self.ordered, (-amount, index))
                self.amounts[index] = amount

    def slots(self, size: int) -> int:
        """How many tasks of so many whole GPUs fit on what is free, at most."""
        if size not in self._slots:
            self._slots[size] = sum(count_slots(amount, size) for amount in self.exact)
        return self._slots[size]

    def freest(self, changed: dict[int, float]) -> Iterator[float]:
        """Amounts in falling order, some nodes with another amount than they have now."""
        others = sorted(changed.values(), reverse=True)
        at = 0
        for negative, index in self.ordered:
            if index in changed:
                continue
            while at < len(others) and others[at] >= -negative:
                yield others[at]
                at += 1
            yield -negative
        yield from others[at:]
