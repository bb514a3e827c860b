"""The part of a server that runs workloads: its engine, the loop, housekeeping, and the lease on them.

Made and started by `app`. If several servers share a cluster, those without the lease stand by: they serve requests,
forward what only the holder can do, and the first that finds the lease free takes over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic

from fairlead.control.context import Context
from fairlead.control.custom_resources.loop import CustomResourceSync
from fairlead.control.directory import Refresher
from fairlead.control.loop.driver import Driver, OrderT
from fairlead.control.loop.housekeeping import Housekeeper
from fairlead.control.loop.lease import LeaseKeeper
from fairlead.control.loop.reconcile import Reconciler
from fairlead.control.usage_samples import UsageSampler
from fairlead.engines.base import CustomResources, LogStore, PodOrder, Sessions, WorkloadOrder
from fairlead.model.clock import Millis
from fairlead.model.errors import Refused, Unavailable
from fairlead.model.resource_usage import MeasuredUsage

log = logging.getLogger(__name__)

#: How often a standby server checks whether the lease is free.
_CHECK_SECONDS = 1.0
#: How long a failed background task waits before it starts again.
_RESTART_SECONDS = 5.0


@dataclass
class EngineHost(Generic[OrderT]):
    context: Context
    driver: Driver[OrderT]
    sessions: Sessions
    #: None for a cluster that was added: the lease on the first one covers it.
    lease: LeaseKeeper | None
    #: Deletes events and audit lines that are older than they are kept.
    compact: Callable[[Millis], Awaitable[object]]
    #: A clock for measuring spans, in seconds.
    measure: Callable[[], float]
    observe_usage: Callable[[], Sequence[MeasuredUsage]] = tuple
    #: None if the engine keeps no logs.
    logs: LogStore | None = None
    #: The custom resources of workloads; None if the engine has no such thing.
    objects: CustomResources | None = None
    #: What the operator has to mend so that the engine can run everything; known after the start.
    find_warnings: Callable[[], Sequence[str]] = tuple
    #: Whether several servers may share the engine: those without the lease stand by.
    can_stand_by: bool = False
    #: The loop, while this server holds the lease.
    reconciler: Reconciler[OrderT] | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    #: The task of the loop, once the state from before the start has been recovered.
    _loop: asyncio.Task[None] | None = None

    async def start(self, begun: Callable[[], Awaitable[None]], lost: Callable[[], None]) -> None:
        """Returns when the state from before the start has been recovered, or when this server stands by.

        `begun` is called once this server runs the engine, now or later, and `lost` if it no longer can.
        """
        try:
            if self.lease is not None:
                await self.lease.acquire()
        except Refused as error:
            if not self.can_stand_by:
                raise
            log.info("standing by: %s", error)
            self._tasks.append(asyncio.create_task(self._run_as_standby(begun, lost), name="standing by"))
            return
        await self._run(begun, lost)

    async def _run_as_standby(self, begun: Callable[[], Awaitable[None]], lost: Callable[[], None]) -> None:
        unsubscribe = self.context.store.subscribe(Refresher(self.context.directory).on_commit)
        try:
            if self.lease is not None:
                await self._wait_for(self.lease)
            log.warning("this server takes over")
            await self._run(begun, lost)
        except Exception:
            # Nobody waits for this task, and half a takeover must not stay.
            log.exception("this server could not take over")
            lost()
        finally:
            unsubscribe()

    async def _wait_for(self, lease: LeaseKeeper) -> None:
        while True:
            # Nobody announces that a lease has expired.
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                await lease.acquire()
                return
            except (Refused, Unavailable):
                continue

    async def _run(self, begun: Callable[[], Awaitable[None]], lost: Callable[[], None]) -> None:
        context = self.context
        housekeeper = Housekeeper(context, self._compact, self._drop_logs)
        reconciler = Reconciler(context, self.driver, housekeeper.note, self.measure)
        ready = asyncio.Event()
        loop = asyncio.create_task(reconciler.run(ready), name="loop")
        waiting = asyncio.create_task(ready.wait())
        self.reconciler = reconciler
        self._tasks.append(loop)
        self._begin("housekeeping", housekeeper.run)
        self._keep_lease(lost)
        await asyncio.wait({waiting, loop}, return_when=asyncio.FIRST_COMPLETED)
        if loop.done():
            waiting.cancel()
            loop.result()
        self._loop = loop
        if self.lease is not None:
            # Not earlier: until the engine has been observed, it would say of every pod that it was deleted.
            context.all_clusters.sessions = self.sessions
        loop.add_done_callback(partial(_on_loop_done, lost))
        if self.objects:
            self._begin("custom resources", CustomResourceSync(context, self.objects).run)
        await begun()

    def _keep_lease(self, lost: Callable[[], None]) -> None:
        """The lease and the usage of all clusters are those of the server, and begin with its first cluster."""
        whole = self.context.all_clusters
        if self.lease is None:
            return
        whole.usage_samples = UsageSampler(whole.store, whole.clock, whole.url_registry.traffic, self.observe_usage)
        self._begin("lease", partial(self.lease.keep, lost))
        self._begin("telemetry", whole.usage_samples.run)

    def _begin(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._tasks.append(asyncio.create_task(keep_going(name, work), name=name))

    async def stop(self) -> None:
        """Stop; pods keep running."""
        if self.reconciler:
            self.reconciler.stop()
        for task in self._tasks:
            # The loop finishes its turn. Before it is ready it is cancelled, because it may wait long for a cluster.
            if task is not self._loop:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            if self.lease is not None:
                await self.lease.release()
        finally:
            await self.driver.engine.close()

    async def _compact(self, at: Millis) -> None:
        await self.compact(at)
        if self.logs:
            await self.logs.expire_logs(at - self.context.settings.keep_logs)

    async def _drop_logs(self, pods: list[str]) -> None:
        if self.logs:
            await self.logs.drop_logs(pods)


async def keep_going(name: str, work: Callable[[], Awaitable[None]], pause: float = _RESTART_SECONDS) -> None:
    """Run background work; if it fails, start it again."""
    while True:
        try:
            return await work()
        except Exception:
            log.exception("%s failed, starting it again", name)
            await asyncio.sleep(pause)


#: A host of either kind of engine.
AnyHost = EngineHost[PodOrder] | EngineHost[WorkloadOrder]


def _on_loop_done(lost: Callable[[], None], loop: asyncio.Task[None]) -> None:
    """A server whose loop has ended would accept work that nobody runs."""
    if not loop.cancelled() and (error := loop.exception()) is not None:
        log.error("the loop failed", exc_info=error)
        lost()
