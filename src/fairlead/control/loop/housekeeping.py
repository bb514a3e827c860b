"""What is due by time alone: finished workloads that delete themselves, old records, events and logs.

Runs beside the loop and wakes at the next due time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from fairlead.control.assets.caller_environments import delete_unused
from fairlead.control.context import Context
from fairlead.control.cycles.retention import drop_old_cycles
from fairlead.control.loop.usage_retention import drop_old_usage
from fairlead.control.workloads.lifecycle import delete_by_itself
from fairlead.model.clock import Millis
from fairlead.model.errors import Unavailable
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Delete, Query, Where
from fairlead.store.collections import PODS, REVISIONS, WORKLOADS

log = logging.getLogger(__name__)

_BATCH = 200
#: Purging and compaction run once an hour; finished workloads delete themselves exactly on time.
_SWEEP_SECONDS = 3600.0


@dataclass
class Housekeeper:
    context: Context
    #: Deletes old events and audit lines; and the logs of pods, by their ids.
    compact: Callable[[Millis], Awaitable[None]]
    drop_logs: Callable[[list[str]], Awaitable[None]]
    _earlier: asyncio.Event = field(default_factory=asyncio.Event)
    _next_sweep: Millis = 0
    _next_due: Millis | None = None

    def note(self, due: Millis) -> None:
        """A workload has finished and deletes itself at this time, perhaps before any other."""
        if self._next_due is None or due < self._next_due:
            self._next_due = due
            self._earlier.set()

    async def run(self) -> None:
        while True:
            try:
                await self._turn()
            except Unavailable as error:
                log.warning("housekeeping failed, retrying: %s", error)
                await asyncio.sleep(_SWEEP_SECONDS / 60)

    async def _turn(self) -> None:
        now = self.context.clock()
        if now >= self._next_sweep:
            await self.purge(now)
            await delete_unused(self.context, now)
            await self.compact(now)
            await drop_old_usage(self.context, now)
            await drop_old_cycles(self.context, now)
            self._next_sweep = now + int(_SWEEP_SECONDS * 1000)
        self._earlier.clear()
        self._next_due = await self.delete_due(now)
        until = min(self._next_sweep, self._next_due) if self._next_due else self._next_sweep
        with suppress(TimeoutError):
            await asyncio.wait_for(self._earlier.wait(), max(0.0, (until - self.context.clock()) / 1000))

    async def delete_due(self, now: Millis) -> Millis | None:
        """Delete every finished workload whose time is over; returns when the next one is due."""
        while True:
            due: list[Workload] = await self.context.store.find(
                Query(
                    collection=WORKLOADS,
                    where=(Where("delete_at", Comparison.IS_NULL, False), *self.context.own_workload_conditions),
                    order=(("delete_at", False),),
                    limit=_BATCH,
                )
            )
            for workload in due:
                if workload.delete_at is not None and workload.delete_at > now:
                    return workload.delete_at
                await delete_by_itself(
                    self.context,
                    workload,
                    "AutoDeletion",
                    "Deleted: its auto-deletion time after completion has passed",
                )
            if len(due) < _BATCH:
                return None

    async def purge(self, now: Millis) -> None:
        """Remove the records, pods and logs of workloads that were deleted long ago."""
        before = Where("deleted_at", Comparison.AT_MOST, now - self.context.settings.keep_deleted)
        where = (before, *self.context.own_workload_conditions)
        while workloads := await self.context.store.find(Query(collection=WORKLOADS, where=where, limit=_BATCH)):
            ids = tuple(workload.id for workload in workloads)
            pods = await self.context.store.find(
                Query(collection=PODS, where=(Where("workload_id", Comparison.ONE_OF, ids),))
            )
            await self.drop_logs([pod.id for pod in pods])
            revisions = await self.context.store.find(
                Query(collection=REVISIONS, where=(Where("workload_id", Comparison.ONE_OF, ids),))
            )
            writes = [Delete(PODS, pod.id) for pod in pods] + [Delete(WORKLOADS, id) for id in ids]
            writes += [Delete(REVISIONS, revision.id) for revision in revisions]
            await self.context.store.commit(Change(writes=tuple(writes)))
