"""Queues while a cycle runs, and the amounts that they are reckoned in.

Amounts of a queue are CPU in thousandths of a core, bytes, and GPUs in thousandths. Unlimited is infinite here, so that
comparisons need no special case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from fairlead.scheduling.model import snapshot as plain

Amounts = tuple[float, float, float]
#: Position in amounts of a queue, after CPU and memory.
GPU = 2
RESOURCES = ("cpu", "memory", "gpu")
NOTHING: Amounts = (0, 0, 0)
INFINITE = math.inf


class LiveQueue:
    __slots__ = (
        "allocated",
        "children",
        "fair",
        "limit",
        "name",
        "non_preemptible",
        "parent",
        "path",
        "priority",
        "quota",
        "rank",
        "requested",
        "share",
        "spec",
        "stamp",
        "terms",
        "usage",
        "weight",
    )

    def __init__(self, spec: plain.Queue) -> None:
        self.spec = spec
        self.name = spec.name
        self.priority = spec.priority
        self.parent: LiveQueue | None = None
        self.children: list[LiveQueue] = []
        #: Itself, its parent, up to the top.
        self.path: tuple[LiveQueue, ...] = ()
        shares = spec.resources
        self.quota: Amounts = (_finite(shares.cpu.quota), _finite(shares.memory.quota), _gpus(shares.gpu.quota))
        self.limit: Amounts = (_finite(shares.cpu.limit), _finite(shares.memory.limit), _gpus(shares.gpu.limit))
        self.weight: Amounts = (
            shares.cpu.over_quota_weight,
            shares.memory.over_quota_weight,
            shares.gpu.over_quota_weight,
        )
        self.usage: Amounts = (spec.usage.cpu, spec.usage.memory, spec.usage.gpu)
        self.allocated: list[float] = [0, 0, 0]
        self.non_preemptible: list[float] = [0, 0, 0]
        self.requested: list[float] = [0, 0, 0]
        self.fair: Amounts = NOTHING
        #: Allocatable share: what the queue may reach before others may take from it.
        self.share: Amounts = NOTHING
        #: Position among its siblings when all else is equal.
        self.rank = 0
        #: Rises with every change of its usage.
        self.stamp = 0
        #: Its quota and fair share as they are told, in numbers and in words; made when first asked for.
        self.terms: tuple[Amounts, Amounts, str] | None = None


def _finite(amount: float) -> float:
    return INFINITE if amount == plain.UNLIMITED else amount


def _gpus(amount: float) -> float:
    return INFINITE if amount == plain.UNLIMITED else round(amount * 1000)


def build_queues(snapshot: plain.Snapshot, pool: str) -> tuple[dict[str, LiveQueue], list[str]]:
    """Queues of a pool as a tree, and the names of those dropped because an ancestor does not exist."""
    return link_queues({queue.name: queue for queue in snapshot.queues if queue.node_pool == pool})


def link_queues(specs: dict[str, plain.Queue]) -> tuple[dict[str, LiveQueue], list[str]]:
    linked: dict[str, LiveQueue] = {}
    dropped: list[str] = []
    for name in sorted(specs):
        if _has_root(name, specs):
            linked[name] = LiveQueue(specs[name])
        else:
            dropped.append(name)
    for queue in linked.values():
        if queue.spec.parent is not None:
            queue.parent = linked[queue.spec.parent]
            queue.parent.children.append(queue)
    for queue in linked.values():
        queue.path = tuple(_path(queue))
    return linked, dropped


def _has_root(name: str, specs: dict[str, plain.Queue]) -> bool:
    seen: set[str] = set()
    current: str | None = name
    while current is not None:
        if current not in specs or current in seen:
            return False
        seen.add(current)
        current = specs[current].parent
    return True


def _path(queue: LiveQueue) -> Iterable[LiveQueue]:
    current: LiveQueue | None = queue
    while current is not None:
        yield current
        current = current.parent
