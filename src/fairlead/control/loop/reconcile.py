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
from fairlead.control.ledger.intervals import close_node, close_usage, has_other_supply
from fairlead.control.loop.counters import CYCLES, Histogram
from fairlead.control.loop.driver import Driver, OrderT
from fairlead.control.loop.usage_retention import begin_ledger
from fairlead.control.organization.removal import remove_emptied
from fairlead.control.references.names import recheck_waiting_workloads
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, Unavailable
from fairlead.model.records.organization import Node, with_not_ready_since
from fairlead.model.records.phase import TERMINAL, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import CALLER_ENVIRONMENTS, CLAIMS, NODES, PODS, REVISIONS, SUPPLY, USAGE, WORKLOADS

log = logging.getLogger(__name__)

_BATCH = 500
#: The most changed workloads in one turn; the rest follows in the next, so that requests are answered in between.
_TURN = 200
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
        self._has_other_nodes = False
        #: The engine's nodes that were recorded last, by id, with the versions of their records.
        self._recorded_nodes: dict[str, tuple[Node, int]] = {}
        #: Names of recorded nodes that no longer exist, and stay until their last pods are gone.
        self._gone_nodes: set[str] = set()
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
            log.warning("a turn of the loop failed, retrying: %s", error, exc_info=not isinstance(error, Unavailable))
            await asyncio.sleep(_RETRY_SECONDS)
            self._dirty.update(self.board.entries)
            self._wakeup.set()
        self.metrics.cycles += 1
        self.metrics.last_cycle_milliseconds = (self.measure() - began) * 1000

    async def cycle(self) -> None:
        """One turn: load → observe → decide → record → apply."""
        now = self.context.clock()
        await self._refresh_directory()
        dirty = {self._dirty.pop() for _ in range(min(_TURN, len(self._dirty)))}
        try:
            touched = await self._load(dirty)
        except Unavailable:
            self._dirty |= dirty
            raise
        touched |= await self._observe()
        asked_for, self._asked_for = self._asked_for, set()
        touched |= (self.board.due(now) | asked_for) & self.board.entries.keys()
        await self._decide_and_record(touched, now)
        if self._gone_nodes and self._gone_nodes - self._find_used_nodes():
            await self._record_nodes()
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
        self._has_other_nodes |= await self.driver.observe()
        if self._has_other_nodes:
            await self._record_nodes()
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
            await self._drop_claims(id for collection, id in changed if collection == CLAIMS.name)
            reaction = await self.driver.on_directory_change(changed)
        except Unavailable:
            self._directory_changed += changed
            raise
        self._has_other_nodes |= any(node.cordon_request is not None for node in self.context.directory.nodes.values())
        self._orders += reaction.orders
        self._asked_for |= reaction.workload_ids

    async def _load(self, ids: Collection[str]) -> set[str]:
        """Read the workloads that others changed; those with nothing to do stay off the board."""
        recorded = [self.context.just_recorded.pop(id) for id in ids if id in self.context.just_recorded]
        touched = {workload.id for workload in recorded}
        for workload in recorded:
            self.board.put(workload, ())
        wanted = [id for id in ids if id not in touched]
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
        events = list(draft.events)
        writes: list[Put | Delete] = [Put(WORKLOADS, workload), *(Put(PODS, pod) for pod in pods)]
        writes += [Put(REVISIONS, revision) for revision in draft.revisions.values()]
        writes += [Put(USAGE, interval) for interval in close_usage(draft)]
        if workload.gone and not draft.entry.workload.gone and makes_claims(draft.entry.podsets):
            claim_writes, claim_events = await leave_claims(self.context, workload)
            writes += claim_writes
            events += claim_events
        if workload.gone and not draft.entry.workload.gone and workload.caller_environment:
            writes.append(Delete(CALLER_ENVIRONMENTS, workload.caller_environment))
        self._recording.add(workload.id)
        try:
            await self.context.store.commit(Change(writes=tuple(writes), events=tuple(events)))
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
        if not events:
            self.context.notify_without_event(workload.id)
        return True

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
        await self._record_nodes()
        await self.driver.recover(workloads.values())
        await self._observe()
        self._orders += await self.driver.resume()
        await self._decide_and_record(list(self.board.entries), self.context.clock())
        await self._recheck_waiting()

    async def _drop_claims(self, changed: Iterable[str]) -> None:
        """Remove the storage behind claims whose records are deleted."""
        deleted = [id for id in dict.fromkeys(changed) if await self.context.store.get(CLAIMS, id) is None]
        if deleted:
            await self.driver.engine.drop_claims(deleted)

    async def _record_nodes(self) -> None:
        """Record the engine's nodes, so that they are read from the store like everything else.

        A node that no longer exists is deleted; as long as it has pods, it stays and takes no new ones.
        """
        known, pools = self.context.directory.nodes, self.context.directory.node_pools.values()
        now = self.context.clock()
        owner = self.context.node_cluster_id
        capacity = {node.id: node for node in await self.driver.engine.capacity()}
        changed = {
            id: msgspec.structs.replace(node, cluster_id=owner) if owner else node
            for id, node in capacity.items()
            if not self._is_recorded(node)
        }
        used = self._find_used_nodes()
        gone: set[str] = set()
        writes: list[Put | Delete] = []
        versions: dict[str, int] = {}
        for node in known.values():
            if node.id not in capacity and node.name not in used:
                writes += (Delete(NODES, node.id), Put(SUPPLY, close_node(node.unique_name, node, pools, now)))
            elif node.id not in capacity:
                changed[node.id] = msgspec.structs.replace(node, ready=False)
                gone.add(node.name)
        for observed in changed.values():
            before = known.get(observed.id)
            node = self.driver.settle_node(with_not_ready_since(observed, before, now), before)
            versions[node.id] = before.version if before else 0
            if before is None or msgspec.structs.replace(before, version=node.version) != node:
                versions[node.id] += 1
                writes.append(Put(NODES, msgspec.structs.replace(node, version=versions[node.id])))
                if before is None or has_other_supply(before, node):
                    writes.append(Put(SUPPLY, close_node(node.unique_name, before, pools, now)))
        if writes:
            try:
                await self.context.store.commit(Change(writes=tuple(writes)))
            except Conflict:
                # They were recorded before, in a commit whose outcome was unknown.
                await self.context.directory.load()
                raise
            others = changed.keys() | (known.keys() - capacity)
            await self.context.directory.refresh([(NODES.name, id) for id in others])
        unchanged = {id: self._recorded_nodes[id] for id in capacity if id not in changed}
        self._recorded_nodes = unchanged | {id: (capacity[id], versions[id]) for id in changed if id in capacity}
        self._has_other_nodes, self._gone_nodes = False, gone

    def _is_recorded(self, node: Node) -> bool:
        """Whether neither the engine's node nor its record has changed since it was recorded."""
        record = self.context.directory.nodes.get(node.id)
        known, version = self._recorded_nodes.get(node.id, (None, 0))
        return record is not None and known is node and version == record.version

    def _find_used_nodes(self) -> set[str]:
        return {pod.node for entry in self.board.entries.values() for pod in entry.pods}
