"""Engines that have nothing and report nothing; tests give them what they need."""

from collections.abc import Callable, Sequence

from fairlead.control.context import Context
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.loop.reconcile import Reconciler
from fairlead.engines.base import (
    CapacityChanged,
    Engine,
    PodEngine,
    PodOrder,
    PodReport,
    Review,
    WorkloadEngine,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Node


class QuietEngine(Engine):
    async def start(self, notify: Callable[[], None]) -> None: ...

    async def capacity(self) -> Sequence[Node]:
        return ()

    def review(self, podset: PodSet) -> Review:
        return Review()

    async def close(self) -> None: ...


class QuietPods(QuietEngine, PodEngine):
    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        return ()

    async def apply(self, orders: Sequence[PodOrder]) -> None: ...

    def load_record(self, pod_id: str, attempt: int) -> bytes:
        return b""


class QuietCluster(QuietEngine, WorkloadEngine):
    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        return ()

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None: ...


def pod_loop(context: Context, engine: PodEngine) -> Reconciler[PodOrder]:
    return Reconciler(context, PodDriver(context, engine), lambda at: None, lambda: 0.0)


def cluster_loop(context: Context, engine: WorkloadEngine) -> Reconciler[WorkloadOrder]:
    return Reconciler(context, ClusterDriver(context, engine), lambda at: None, lambda: 0.0)
