"""The seam to whatever runs pods. An engine acts on orders and reports what it observes; `control` decides.

An engine has three verbs: `observe`, `apply` and `capacity`; besides, it is started, asked for a review, and closed.
A `PodEngine` starts and stops single pods, which our scheduler placed. A `WorkloadEngine` takes whole workloads, and
its cluster creates and places their pods. Beside them stand `Sessions`, `LogStore` and `CustomResources`; an engine
has those that it can provide.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from fairlead.engines.base.orders import PodOrder, WorkloadOrder
from fairlead.engines.base.reports import CapacityChanged, PodReport, Review, WorkloadReport
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Node


class Engine(Protocol):
    """What every engine can do."""

    async def start(self, notify: Callable[[], None]) -> None:
        """Find everything that still runs; call `notify` from now on (on the event loop) when something changes."""
        ...

    async def capacity(self) -> Sequence[Node]:
        """The nodes and what each can give."""
        ...

    def review(self, podset: PodSet) -> Review:
        """What the engine refuses or ignores of a pod set, asked before its start."""
        ...

    async def close(self) -> None:
        """Let go; pods run on."""
        ...


class PodEngine(Engine, Protocol):
    """Runs single pods on the nodes that our scheduler chose."""

    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        """Every pod that changed since the last call; on the first call, every known pod."""
        ...

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        """Begin to carry out the orders. Their effect is observed later, a failed start included."""
        ...

    def load_record(self, pod_id: str, attempt: int) -> bytes:
        """The record that the attempt was started with; empty if there is none."""
        ...


class WorkloadEngine(Engine, Protocol):
    """Runs whole workloads on a cluster that creates and places their pods."""

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        """Every workload that changed since the last call; on the first call, every known workload."""
        ...

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        """Begin to carry out the orders. Their effect is observed later."""
        ...
