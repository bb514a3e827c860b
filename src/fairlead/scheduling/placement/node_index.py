"""The best node for a request class without looking at all nodes again.

The plain way scores every node that fits and sorts (`placing.candidates`). Here the same order is kept in a heap per
class: only nodes whose books changed since the last question are judged again. Packing scores are scaled by the
emptiest and the fullest node, but the scale never changes the order, so what is free stands for the score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.queues import INFINITE
from fairlead.scheduling.model.requests import KIND_CPU
from fairlead.scheduling.model.snapshot import Placement
from fairlead.scheduling.placement import scoring
from fairlead.scheduling.placement.predicates import fits_later, static_cause

#: Score, then what is free (less first), then position by name; last the stamp of the node's books.
Rank = tuple[float, float, int, int]


class NodeIndex:
    def __init__(
        self,
        task: LiveTask,
        placement: Placement,
        watched: tuple[Sequence[LiveNode], Sequence[int]],
        cost: Callable[[LiveTask, LiveNode], float] | None = None,
    ) -> None:
        """`watched`: the nodes and the growing list of those that changed; `cost` replaces packing if given."""
        nodes, touched = watched
        self.task = task
        self.placement = placement
        self.cost = cost
        self.spread = (placement.cpu if task.kind == KIND_CPU else placement.gpu) == "spread"
        self.nodes = nodes
        self.touched = touched
        self.heap: list[Rank] = []
        self.read = 0
        self._build()

    def _build(self) -> None:
        ranks = (self._rank(node) for node in self.nodes)
        self.heap = [rank for rank in ranks if rank is not None]
        heapify(self.heap)
        self.read = len(self.touched)

    def _rank(self, node: LiveNode) -> Rank | None:
        task = self.task
        if static_cause(task, node) is not None or not fits_later(task, node):
            return None
        if self.cost is not None:
            return (-scoring.urgent_score(task, node), self.cost(task, node), node.index, node.stamp)
        score: float = scoring.base_score(task, node, self.placement)
        if self.spread:
            return (-score - scoring.spreading_score(task, node), 0, node.index, node.stamp)
        free = scoring.free(task, node) if scoring.has_any(task, node) else INFINITE
        return (-score, free, node.index, node.stamp)

    def best(self, allowed: Callable[[LiveNode], bool]) -> LiveNode | None:
        """The first node in order that is allowed; what is passed over stays in the heap."""
        self._catch_up()
        heap, nodes = self.heap, self.nodes
        passed: list[Rank] = []
        best: LiveNode | None = None
        while heap:
            rank = heap[0]
            node = nodes[rank[2]]
            if node.stamp != rank[3]:
                heappop(heap)
            elif allowed(node):
                best = node
                break
            else:
                passed.append(heappop(heap))
        for rank in passed:
            heappush(heap, rank)
        return best

    def _catch_up(self) -> None:
        touched = self.touched
        if self.read == len(touched):
            return
        changed = set(touched[self.read :])
        self.read = len(touched)
        if len(self.heap) > 4 * len(self.nodes) + 64:
            self._build()
            return
        cpu, memory, heap, nodes = self.task.cpu, self.task.memory, self.heap, self.nodes
        for index in changed:
            node = nodes[index]
            # What most full nodes lack is asked here, without a call.
            if cpu > node.idle_cpu + node.releasing_cpu or memory > node.idle_memory + node.releasing_memory:
                continue
            rank = self._rank(node)
            if rank is not None:
                heappush(heap, rank)
