"""The clusters that were added to a server: each has an engine and a loop of its own, as the first one has.

Started by `app` when the server runs its first cluster. A cluster that cannot be reached, or whose credentials are
wrong, is tried again and harms no other one. `ClusterSessions` leads to the pods of all of them.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from fairlead.control.context import Context, EngineView
from fairlead.control.loop.engine_host import AnyHost
from fairlead.engines.base import ExecRequest, LogRequest, Session, Sessions
from fairlead.model.errors import FairleadError, Unavailable
from fairlead.model.records.organization import Cluster, ClusterConnection
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.resource_usage import MeasuredUsage
from fairlead.store.collections import CLUSTERS, PODS, WORKLOADS

log = logging.getLogger(__name__)

#: How long a cluster whose engine could not be started waits before it is tried again.
_RETRY_SECONDS = 10.0
#: How many pods are remembered with their cluster.
_MAX_PODS = 20_000


@dataclass
class Fleet:
    #: The context with all clusters.
    context: Context
    #: Makes the host of a cluster in its own context, and says what use cases ask its engine; raises FairleadError.
    make_host: Callable[[Context, Cluster], tuple[AnyHost, EngineView]]
    hosts: dict[str, AnyHost] = field(default_factory=dict)
    #: By cluster, the task that runs it, and the connection that the task began with.
    _running: dict[str, tuple[ClusterConnection | None, asyncio.Task[None]]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="clusters")

    async def _run(self) -> None:
        unsubscribe = self.context.store.subscribe(self._on_commit)
        try:
            while True:
                await self._changed.wait()
                self._changed.clear()
                await self.context.directory.refresh([(CLUSTERS.name, "")])
                await self._follow()
        finally:
            unsubscribe()

    def _on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        if any(collection == CLUSTERS.name for collection, _ in subjects):
            self._changed.set()

    async def _follow(self) -> None:
        """One task for each cluster that has a connection; another one if its connection has changed."""
        wanted = {id: one for id, one in self.context.directory.clusters.items() if one.connection is not None}
        for id in list(self._running):
            if id not in wanted or self._running[id][0] != wanted[id].connection:
                await self._end(id)
        for id, cluster in wanted.items():
            if id not in self._running:
                task = asyncio.create_task(self._keep(cluster), name=f"cluster {cluster.name}")
                self._running[id] = (cluster.connection, task)

    async def _end(self, id: str) -> None:
        _, task = self._running.pop(id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        self.context.engines.pop(id, None)
        self.context.views.pop(id, None)

    async def _keep(self, cluster: Cluster) -> None:
        """Run the cluster; whatever fails is tried again."""
        while True:
            failed = asyncio.Event()
            host: AnyHost | None = None
            try:
                host, view = self.make_host(self.context.add_view(cluster.id), cluster)
                self.hosts[cluster.id], self.context.engines[cluster.id] = host, view
                await host.start(_nothing, failed.set)
                log.info("runs cluster %s", cluster.name)
                await failed.wait()
            except Exception as error:
                # Nobody waits for this task, and other clusters must not suffer from it.
                is_expected = isinstance(error, FairleadError | OSError)
                log.warning(
                    "cluster %s could not be started, retrying: %s", cluster.name, error, exc_info=not is_expected
                )
                self.context.engines[cluster.id] = broken_engine(str(error))
            finally:
                self.hosts.pop(cluster.id, None)
                if host is not None:
                    await host.stop()
            await asyncio.sleep(_RETRY_SECONDS)

    def observe_usage(self) -> list[MeasuredUsage]:
        return [usage for host in list(self.hosts.values()) for usage in host.observe_usage()]

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.gather(*(self._end(id) for id in list(self._running)))


def broken_engine(reason: str) -> EngineView:
    """The view of a cluster whose engine could not be made: it cannot be reached, and why."""
    return EngineView(unreachable_reason=lambda: reason, is_cluster=True)


async def _nothing() -> None:
    return None


class ClusterSessions:
    """Sessions into the pods of all clusters, by the cluster of each pod."""

    def __init__(self, context: Context, first: Sessions, fleet: Fleet) -> None:
        self._context = context
        self._first = first
        self._fleet = fleet
        self._cluster_ids: dict[str, str] = {}

    async def _find(self, pod_id: str) -> Sessions:
        if len(self._context.directory.clusters) <= 1:
            return self._first  # without a question to the store
        return self._of_cluster(self._cluster_ids.get(pod_id) or await self._load_cluster_id(pod_id))

    def _of_cluster(self, cluster_id: str) -> Sessions:
        directory = self._context.directory
        if len(directory.clusters) <= 1 or cluster_id in ("", directory.cluster.id):
            return self._first
        host = self._fleet.hosts.get(cluster_id)
        if host is None:
            why = self._context.engine_of(cluster_id).unreachable_reason() or "its loop has not started"
            raise Unavailable(f"The cluster of this pod cannot be reached: {why}")
        return host.sessions

    async def _load_cluster_id(self, pod_id: str) -> str:
        pod: Pod | None = await self._context.store.get(PODS, pod_id)
        workload: Workload | None = await self._context.store.get(WORKLOADS, pod.workload_id) if pod else None
        if workload is None:
            return ""
        if len(self._cluster_ids) >= _MAX_PODS:
            self._cluster_ids.clear()
        self._cluster_ids[pod_id] = workload.cluster_id
        return workload.cluster_id

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        """Not a generator: output that is not kept must be refused before the response begins."""
        return self._of_cluster(request.origin.cluster_id if request.origin else "").logs(request)

    async def exec(self, request: ExecRequest) -> Session:
        return await (await self._find(request.pod_id)).exec(request)

    async def attach(self, pod_id: str, *, from_start: bool = False) -> Session:
        return await (await self._find(pod_id)).attach(pod_id, from_start=from_start)

    async def dial(self, pod_id: str, port: int) -> int:
        return await (await self._find(pod_id)).dial(pod_id, port)
