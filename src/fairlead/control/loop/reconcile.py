"""The loop: load what changed, observe the engine, decide, record, and only then apply.

It runs only when something happened: a request, the end of a pod, a time that has come. It survives a crash at any
point, because decisions are durable before their orders are given, every order is idempotent, and after a start the
engine is observed before anything is decided. What differs between engines is in the driver.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic

import msgspec

from fairlead.control.assets.pod_supplies import leave_claims
from fairlead.control.context import Context
from fairlead.control.decide.claims import makes_claims
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.equivalence import Equivalent, scheduling_key
from fairlead.control.ledger.intervals import close_usage
from fairlead.control.loop.counters import CYCLES, Histogram
from fairlead.control.loop.driver import Driver, OrderT
from fairlead.control.loop.node_records import NodeRecords
from fairlead.control.loop.usage_retention import begin_ledger
from fairlead.control.organization.removal import remove_emptied
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, Unavailable
from fairlead.model.records.phase import TERMINAL, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import CALLER_ENVIRONMENTS, PODS, REVISIONS, USAGE, WORKLOADS

log = logging.getLogger(__name__)

_BATCH = 500
#: The most changed workloads in one cycle; the rest follows in the next, so that requests are answered in between.
_MAX_CHANGED = 200
#: How long the loop waits before it retries when the store or the engine could not be reached.
_RETRY_SECONDS = 1.0
#: Phases with which others may stop waiting for a workload.
_ENDS = TERMINAL | {Phase.STOPPED, Phase.DELETING}


@dataclass
class LoopMetrics:
    """What `/metrics` shows about the loop."""

    cycles: int = 0
    scheduling_cycles: int = 0
    scheduling_milliseconds: float = 0.0
    scheduling: Histogram = field(default_factory=lambda: Histogram(CYCLES))
    last_cycle_milliseconds: float = 0.0
    conflicts: int = 0


@dataclass
class Reconciler(Generic[OrderT]):
    context: Context
    driver: Driver[OrderT]
    #: Called when a finished workload will delete itself.
    note_due: Callable[[Millis], None]
    #: A clock for measuring spans, in seconds.
    measure: Callable[[], float]
    metrics: LoopMetrics = field(default_factory=LoopMetrics)

    def __post_init__(self) -> None:
        self.context.has_local_loop = True
        self.board = self.driver.board
        self._dirty: set[str] = set()
        #: Orders of recorded drafts that the engine has not taken yet.
        self._orders: list[OrderT] = []
        self._recording: set[str] = set()
        #: Workloads whose last record failed: somebody was quicker, or the commit outcome is unknown.
        self._doubtful: set[str] = set()
        self._nodes = NodeRecords(self.context, self.driver, self._find_used_nodes)
        self._directory_changed: list[tuple[str, str]] = []
        #: Workloads to decide on although their records have not changed.
        self._asked_for: set[str] = set()
        #: Whether what waiting workloads wait for may have happened: one of them is new, or a workload has ended.
        self._is_recheck_due = True
        self._wakeup = asyncio.Event()
        self._stopped = False

    async def run(self, ready: asyncio.Event) -> None:
        """Run until `stop`. Sets `ready` when the state from before the start has been recovered."""
        unsubscribe = self.context.store.subscribe(self._on_commit)
        self.context.url_registry.traffic.listen(self._on_traffic)
        try:
            await self.driver.engine.start(self._wakeup.set)
            await self._recover()
            ready.set()
            while not self._stopped:
                await self._wait()
                await self._cycle_safely()
        finally:
            unsubscribe()
            self.context.url_registry.traffic.ignore(self._on_traffic)
            await self.driver.finish()

    def stop(self) -> None:
        self._stopped = True
        self._wakeup.set()

    def _on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """Called by the store after every commit. Our own records are newer on the board than in the message."""
        self.context.revision = revision
        for collection, id in subjects:
            if collection == WORKLOADS.name:
                if id in self._dirty:
                    # Changed again since it was recorded: the record in the store is newer.
                    self.context.just_recorded.pop(id, None)
                elif id not in self._recording:
                    self._dirty.add(id)
            else:
                self._directory_changed.append((collection, id))
        if self._dirty or self._directory_changed:
            self._wakeup.set()

    def _on_traffic(self, workload_id: str) -> None:
        """Called by the proxy: requests wait or have become more, or a pod has answered its last one."""
        self._asked_for.add(workload_id)
        self._wakeup.set()

    async def _wait(self) -> None:
        """Wait until something happens or the next due time comes."""
        next_time = min((t for t in (self.board.next_wake(), self.driver.next_change_at) if t), default=None)
        timeout = None if next_time is None else max(0.0, (next_time - self.context.clock()) / 1000)
        if self._dirty or self._directory_changed:
            timeout = 0.0
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wakeup.wait(), timeout)
        self._wakeup.clear()

    async def _cycle_safely(self) -> None:
        began = self.measure()
        try:
            await self.cycle()
        except Exception as error:
            # One broken cycle must not end the loop: its workloads are read and decided on again.
            log.warning("a round of the loop failed, retrying: %s", error, exc_info=not isinstance(error, Unavailable))
            await asyncio.sleep(_RETRY_SECONDS)
            self._dirty.update(self.board.entries)
            self._wakeup.set()
        self.metrics.cycles += 1
        self.metrics.last_cycle_milliseconds = (self.measure() - began) * 1000

    async def cycle(self) -> None:
        """One turn: load → observe → decide → record → apply."""
        now = self.context.clock()
        await self._refresh_directory()
        dirty = {self._dirty.pop() for _ in range(min(_MAX_CHANGED, len(self._dirty)))}
        try:
            touched = await self._load(dirty)
        except Unavailable:
            self._dirty |= dirty
            raise
        touched |= await self._observe()
        asked_for, self._asked_for = self._asked_for, set()
        touched |= (self.board.due(now) | asked_for) & self.board.entries.keys()
        await self._decide_and_record(touched, now)
        await self._nodes.drop_emptied()
        await self._recheck_waiting()
        if self.context.directory.has_leaving:
            await remove_emptied(self.context)

    async def _recheck_waiting(self) -> None:
        if self._is_recheck_due and self.board.waiting:
            await recheck_waiting_workloads(self.context)
        self._is_recheck_due = False

    async def _observe(self) -> set[str]:
        """Take the engine's reports; returns the workloads that they concern."""
        # First of all, and nothing in between that may fail: the engine reports everything only once.
        self._nodes.is_outdated |= await self.driver.observe()
        if self._nodes.is_outdated:
            await self._nodes.record()
        return await self.driver.take_reported()

    async def _decide_and_record(self, workload_ids: Collection[str], now: Millis) -> None:
        drafts = self._decide_each(workload_ids, now)
        await self._place(drafts, now)
        unrecorded = await self._record(drafts)
        self.driver.retry_reports([*unrecorded, *(id for id in workload_ids if id not in drafts)])

    async def _refresh_directory(self) -> None:
        """Read the projects, nodes, quotas and claims again that others changed."""
        if not self._directory_changed:
            return
        changed, self._directory_changed = self._directory_changed, []
        try:
            await self.context.directory.refresh(changed)
            reaction = await self.driver.on_directory_change(changed)
        except Unavailable:
            self._directory_changed += changed
            raise
        self._nodes.is_outdated |= any(
            node.cordon_request is not None for node in self.context.directory.nodes.values()
        )
        self._orders += reaction.orders
        self._asked_for |= reaction.workload_ids

    async def _load(self, ids: Collection[str]) -> set[str]:
        """Read the workloads that others changed; those with nothing to do stay off the board."""
        touched: set[str] = set()
        wanted: list[str] = []
        for id in ids:
            newcomer = self.context.just_recorded.pop(id, None)
            if newcomer is None:
                wanted.append(id)
            elif not self._is_decided(self.board.put(newcomer.workload, ()), newcomer.like):
                touched.add(id)
        for start in range(0, len(wanted), _BATCH):
            batch = tuple(wanted[start : start + _BATCH])
            where = (Where("id", Comparison.ONE_OF, batch),)
            for workload in await self.context.store.find(Query(collection=WORKLOADS, where=where)):
                if not self.context.covers(workload):
                    continue
                entry = self.board.entries.get(workload.id)
                if entry is None and not workload.is_active:
                    continue
                if workload.id in self._doubtful and entry is not None:
                    await self._read_again(workload, entry)
                elif entry is None or entry.workload.version < workload.version:
                    self.board.put(workload, entry.pods if entry else ())
                touched.add(workload.id)
        self._is_recheck_due |= not touched.isdisjoint(self.board.waiting)
        return touched

    def _is_decided(self, entry: WorkloadEntry, like: Equivalent | None) -> bool:
        """Whether a newcomer waits as its equivalent does, and a decision would only find the same once more."""
        if like is None or entry.revises:
            return False
        return self.context.pending_equivalents.get(scheduling_key(entry.workload)) is like

    async def _read_again(self, workload: Workload, entry: WorkloadEntry) -> None:
        """Put a workload whose commit outcome was unknown on the board as it is stored, and carry out its orders."""
        of_it = Where("workload_id", Comparison.EQUAL, workload.id)
        pods: Sequence[Pod] = await self.context.store.find(Query(collection=PODS, where=(of_it,)))
        self._orders += self.driver.on_read_again(entry, self.board.put(workload, pods), pods)
        if workload.delete_at is not None:
            self.note_due(workload.delete_at)
        self.context.notify_without_event(workload.id)
        self._doubtful.discard(workload.id)

    def _decide_each(self, ids: Iterable[str], now: Millis) -> dict[str, Draft]:
        """A draft per workload. If one decision fails, it is retried later and the others go on."""
        drafts: dict[str, Draft] = {}
        for id in ids:
            try:
                drafts[id] = self.driver.decide(self.board.entries[id], now)
            except Exception:
                self._retry_later(id, now)
        return drafts

    def _retry_later(self, workload_id: str, now: Millis) -> None:
        log.exception("the decision on workload %s failed, retrying", workload_id)
        self.board.wake(now + int(_RETRY_SECONDS * 1000), workload_id)

    async def _place(self, drafts: dict[str, Draft], now: Millis) -> None:
        began = self.measure()
        if await self.driver.place(drafts, now):
            self.metrics.scheduling_cycles += 1
            seconds = self.measure() - began
            self.metrics.scheduling_milliseconds += seconds * 1000
            self.metrics.scheduling.observe(seconds)

    def _orders_each(self, drafts: dict[str, Draft]) -> dict[str, list[OrderT]]:
        """The orders of each draft, worked out before anything is recorded, because after that nothing may fail."""
        orders: dict[str, list[OrderT]] = {}
        for id, draft in list(drafts.items()):
            try:
                orders[id] = self.driver.orders(draft)
            except Exception:
                del drafts[id]
                self._retry_later(id, draft.now)
        return orders

    async def _record(self, drafts: dict[str, Draft]) -> list[str]:
        """Record and carry out the drafts; returns the workloads whose drafts lost a race and are decided on again."""
        orders = self._orders_each(drafts)
        changed = [draft for draft in drafts.values() if draft.is_changed]
        recorded = await asyncio.gather(
            *(self._record_one(draft, orders[draft.entry.workload.id]) for draft in changed), return_exceptions=True
        )
        for id, draft in drafts.items():
            if draft.wake_at is not None:
                self.board.wake(draft.wake_at, id)
            if not draft.is_changed:
                self._orders += orders[id]
                self.board.discard_if_idle(id)
        await self._apply()
        for outcome in recorded:
            if isinstance(outcome, BaseException):
                raise outcome
        return [draft.entry.workload.id for draft, done in zip(changed, recorded, strict=True) if not done]

    async def _apply(self) -> None:
        """Give the orders of recorded drafts to the engine. They stay until it has taken them."""
        if self._orders:
            await self.driver.engine.apply(tuple(self._orders))
            self._orders.clear()

    async def _record_one(self, draft: Draft, orders: Iterable[OrderT]) -> bool:
        """Make a draft durable. A lost race drops it: the workload is read again and decided on again."""
        workload = msgspec.structs.replace(
            draft.workload, version=draft.entry.workload.version + 1, updated_at=draft.now
        )
        pods = draft.changed_pods()
        change = await self._build_change(draft, workload, pods)
        self._recording.add(workload.id)
        try:
            await self.context.store.commit(change)
        except Unavailable:
            self._doubtful.add(workload.id)
            raise
        except Conflict:
            self.metrics.conflicts += 1
            self._doubtful.add(workload.id)
            self._dirty.add(workload.id)
            self._wakeup.set()
            return False
        finally:
            self._recording.discard(workload.id)
        # From here on the draft is durable, so its orders must be given.
        self._orders += orders
        self._doubtful.discard(workload.id)
        self._is_recheck_due |= workload.phase in _ENDS and workload.phase is not draft.entry.workload.phase
        if workload.delete_at is not None and draft.entry.workload.delete_at is None:
            self.note_due(workload.delete_at)
        self.driver.on_recorded(draft, workload)
        versions = {pod.id: pod for pod in pods}
        self.board.put(workload, [versions.get(pod.id, pod) for pod in draft.pods.values()])
        self.board.discard_if_idle(workload.id)
        if not change.events:
            self.context.notify_without_event(workload.id)
        return True

    async def _build_change(self, draft: Draft, workload: Workload, pods: Iterable[Pod]) -> Change:
        """All that is written with a draft; with the end of a workload, also what existed only for it."""
        writes: list[Put | Delete] = [Put(WORKLOADS, workload), *(Put(PODS, pod) for pod in pods)]
        writes += [Put(REVISIONS, revision) for revision in draft.revisions.values()]
        writes += [Put(USAGE, interval) for interval in close_usage(draft)]
        events = list(draft.events)
        if workload.gone and not draft.entry.workload.gone:
            if makes_claims(draft.entry.podsets):
                claim_writes, claim_events = await leave_claims(self.context, workload)
                writes += claim_writes
                events += claim_events
            if workload.caller_environment:
                writes.append(Delete(CALLER_ENVIRONMENTS, workload.caller_environment))
        return Change(writes=tuple(writes), events=tuple(events))

    async def _recover(self) -> None:
        """Recover the state after a start: the records, then what the engine still runs of them."""
        is_active = Where("is_active", Comparison.EQUAL, 1)
        active = Query(collection=WORKLOADS, where=(is_active, *self.context.own_workload_conditions))
        workloads = {workload.id: workload for workload in await self.context.store.find(active)}
        unended = Where("phase", Comparison.ONE_OF, (PodPhase.STARTING, PodPhase.RUNNING, PodPhase.STOPPING))
        pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in await self.context.store.find(Query(collection=PODS, where=(unended,))):
            pods[pod.workload_id].append(pod)
        for id in pods.keys() - workloads.keys():
            workload = await self.context.store.get(WORKLOADS, id)
            if workload is not None and self.context.covers(workload):
                workloads[id] = workload
        for id, workload in workloads.items():
            self.board.put(workload, pods.get(id, ()))
        await begin_ledger(self.context)
        await self.context.directory.load()
        await self._nodes.record()
        await self.driver.recover(workloads.values())
        await self._observe()
        self._orders += await self.driver.resume()
        await self._decide_and_record(list(self.board.entries), self.context.clock())
        await self._recheck_waiting()

    def _find_used_nodes(self) -> set[str]:
        return {pod.node for entry in self.board.entries.values() for pod in entry.pods}
