"""The loop: load what changed, observe the engine, decide, record, and only then act.

It runs when something happened (a request, a pod's end, a time that has come) and never otherwise. A crash at any
point is healed by the order of things: intentions are durable before they are carried out, every order is idempotent,
and after a start the engine is observed before anything is decided.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from fairlead.control.assets.pod_supplies import leave_claims, load_retained
from fairlead.control.context import Context
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.leaving import makes_claims, order_cleanup
from fairlead.control.decide.phases import PhaseInputs, decide, is_lost, report_lost
from fairlead.control.decide.pod_specs import render_pod
from fairlead.control.loop.board import Board
from fairlead.control.loop.cluster_driver import ClusterDriver
from fairlead.control.loop.refresh import find_changed, find_mounting
from fairlead.control.loop.schedule import Scheduler
from fairlead.control.organization.removal import remove_emptied
from fairlead.engines.base import (
    CapacityChanged,
    DropClaims,
    Engine,
    Order,
    PodReport,
    Report,
    Review,
    Start,
    Stop,
)
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.errors import Conflict, Unavailable
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Where
from fairlead.store.collections import CLAIMS, NODES, PODS, REVISIONS, WORKLOADS

log = logging.getLogger(__name__)

_BATCH = 500
#: Changed workloads that one turn takes on; the rest follows in the next, so that requests are answered in between.
_TURN = 200
#: How long to wait before the loop tries again when the store or the engine could not be reached.
_RETRY_SECONDS = 1.0


@dataclass
class LoopMetrics:
    """What the loop tells about itself to `/metrics`."""

    cycles: int = 0
    scheduling_cycles: int = 0
    scheduling_milliseconds: float = 0.0
    last_cycle_milliseconds: float = 0.0
    conflicts: int = 0


@dataclass
class Reconciler:
    context: Context
    engine: Engine
    #: What the engine says of a pod set before it starts.
    review: Callable[[PodSet], Review]
    #: Told when a finished workload will delete itself.
    note_due: Callable[[Millis], None]
    #: A clock for measuring spans, in seconds.
    measure: Callable[[], float]
    #: Set where the engine takes whole workloads and its cluster places their pods.
    following: ClusterDriver | None = None
    figures: LoopMetrics = field(default_factory=LoopMetrics)

    def __post_init__(self) -> None:
        self.context.has_local_loop = True
        self.board = Board(self.context.open_workloads, self.context.exposure)
        self.scheduler = Scheduler(self.context, self.board)
        self._dirty: set[str] = set()
        #: Orders of recorded drafts that the engine has not taken yet.
        self._orders: list[Order] = []
        self._recording: set[str] = set()
        #: Workloads whose last record failed: somebody was quicker, or it was made and nobody could tell us.
        self._doubtful: set[str] = set()
        #: What the engine reported and no record holds yet: it says everything only once.
        self._unrecorded: list[PodReport] = []
        self._has_other_nodes = False
        self._directory_changed: list[tuple[str, str]] = []
        #: Workloads whose requests want a look at them.
        self._asked_for: set[str] = set()
        self._wakeup = asyncio.Event()
        self._stopped = False
        self._outcomes = {key: kind.outcome for key, kind in KINDS.items()}

    async def run(self, ready: asyncio.Event) -> None:
        """Until `stop`. Sets `ready` when everything from before has been found again."""
        unsubscribe = self.context.store.subscribe(self._on_commit)
        self.context.exposure.traffic.listen(self._hear_traffic)
        try:
            await self.engine.start(self._wakeup.set)
            await self._recover()
            ready.set()
            while not self._stopped:
                await self._wait()
                await self._cycle_safely()
        finally:
            unsubscribe()

    def stop(self) -> None:
        self._stopped = True
        self._wakeup.set()

    def _on_commit(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """Told by the store after every commit. Our own records are newer on the board than in the message."""
        for collection, id in subjects:
            if collection == WORKLOADS.name:
                if id in self._dirty:
                    # Changed again since it was handed over: the record in the store is the newer one.
                    self.context.just_recorded.pop(id, None)
                elif id not in self._recording:
                    self._dirty.add(id)
            else:
                self._directory_changed.append((collection, id))
        if self._dirty or self._directory_changed:
            self._wakeup.set()

    def _hear_traffic(self, workload_id: str) -> None:
        """Told by the proxy's side: requests wait, or have become more, or a pod has answered its last one."""
        self._asked_for.add(workload_id)
        self._wakeup.set()

    async def _wait(self) -> None:
        """Until something happens or the next time comes."""
        next_time = min((t for t in (self.board.next_wake(), self.scheduler.next_change_at) if t), default=None)
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
            # One broken cycle must not end the loop: what it held is read anew and tried again.
            log.warning("the loop pauses: %s", error, exc_info=not isinstance(error, Unavailable))
            await asyncio.sleep(_RETRY_SECONDS)
            self._dirty.update(self.board.entries)
            self._wakeup.set()
        self.figures.cycles += 1
        self.figures.last_cycle_milliseconds = (self.measure() - began) * 1000

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
        reports = self._by_workload(self._unrecorded)
        asked_for, self._asked_for = self._asked_for, set()
        touched |= set(reports) | ((self.board.due(now) | asked_for) & self.board.entries.keys())
        drafts = self._decide_each(touched, reports, now)
        await self._schedule(drafts, now)
        lost = await self._record(drafts)
        undecided = touched - drafts.keys()
        self._unrecorded = [report for id in (*lost, *undecided) for report in reports.get(id, ())]
        if self.context.directory.has_leaving:
            await remove_emptied(self.context)

    async def _observe(self) -> set[str]:
        """Take what the engine has to say; the workloads whose whole state it told."""
        said: Sequence[Report] = await self.engine.observe()
        # First of all, and nothing in between that may fail: it says everything only once.
        self._unrecorded += [report for report in said if isinstance(report, PodReport)]
        self._has_other_nodes |= any(isinstance(report, CapacityChanged) for report in said)
        if self.following:
            self.following.record_report(said)
        if self._has_other_nodes:
            await self._record_nodes()
        if not self.following:
            return set()
        held = self.board.entries
        await self._readmit(self.following.find_unrecorded(held))
        return self.following.take_news(held)

    async def _readmit(self, ids: Collection[str]) -> None:
        """Hold ended workloads once more of which pods came to light after their end."""
        for id in ids:
            workload = await self.context.store.get(WORKLOADS, id)
            if workload is not None and not workload.gone:
                self.board.put(workload, ())

    async def _refresh_directory(self) -> None:
        """Read again the projects, nodes, quotas and claims that others changed."""
        if not self._directory_changed:
            return
        changed, self._directory_changed = self._directory_changed, []
        try:
            await self.context.directory.refresh(changed)
            await self._drop_claims(id for collection, id in changed if collection == CLAIMS.name)
            refreshes = await find_changed(self.context, self.board.entries.values(), changed, self._pod_spec)
            if self.following and self.following.affects_organization(changed):
                await self.engine.apply([self.following.organize()])
                self._asked_for |= self.following.find_affected_by_pools(self.board.entries.values(), changed)
        except Unavailable:
            self._directory_changed += changed
            raise
        self._orders += refreshes
        self.scheduler.needed = True

    async def _load(self, ids: Collection[str]) -> set[str]:
        """Read the workloads that others changed; those with nothing to do are not held."""
        handed = [self.context.just_recorded.pop(id) for id in ids if id in self.context.just_recorded]
        touched = {workload.id for workload in handed}
        for workload in handed:
            self.board.put(workload, ())
        wanted = [id for id in ids if id not in touched]
        for start in range(0, len(wanted), _BATCH):
            batch = tuple(wanted[start : start + _BATCH])
            where = (Where("id", Comparison.ONE_OF, batch),)
            for workload in await self.context.store.find(Query(collection=WORKLOADS, where=where)):
                entry = self.board.entries.get(workload.id)
                if entry is None and not workload.is_active:
                    continue
                if workload.id in self._doubtful and entry is not None:
                    await self._read_again(workload, entry)
                elif entry is None or entry.workload.version < workload.version:
                    self.board.put(workload, entry.pods if entry else ())
                touched.add(workload.id)
        return touched

    async def _read_again(self, workload: Workload, entry: WorkloadEntry) -> None:
        """Hold what the store has of a workload and its pods; do what a record wants that was made unknown to us."""
        of_it = Where("workload_id", Comparison.EQUAL, workload.id)
        pods: Sequence[Pod] = await self.context.store.find(Query(collection=PODS, where=(of_it,)))
        held = self.board.put(workload, pods)
        if self.following:
            self.following.learn(pods)
        else:
            self._orders += self._orders_missed(entry, held, pods)
        if workload.delete_at is not None:
            self.note_due(workload.delete_at)
        self.scheduler.note(workload)
        self.context.notify_without_event(workload.id)
        self._doubtful.discard(workload.id)

    def _orders_missed(self, before: WorkloadEntry, after: WorkloadEntry, pods: Iterable[Pod]) -> list[Order]:
        """What the engine was never told of a record: starts and stops, and the removal of what ended pods left."""
        known = {pod.id: pod.version for pod in before.pods}
        changed = tuple(pod for pod in after.pods if known.get(pod.id) != pod.version)
        draft = Draft(before, self.context.clock())
        draft.workload = after.workload
        draft.pods = {pod.id: pod for pod in pods if pod.id in known or not pod.has_ended}
        order_cleanup(draft)
        return [*self._unfinished(msgspec.structs.replace(after, pods=changed), set()), *draft.orders]

    def _by_workload(self, reports: Iterable[PodReport]) -> dict[str, list[PodReport]]:
        grouped: dict[str, list[PodReport]] = defaultdict(list)
        for report in reports:
            workload_id = self.board.pods.get(report.pod_id)
            if workload_id is not None:
                grouped[workload_id].append(report)
        return grouped

    def rules(self, kind: str) -> PhaseInputs:
        return PhaseInputs(
            outcome=self._outcomes[kind],
            pod_spec=self._pod_spec,
            review=self.review,
            retry_delay=self.context.settings.retry_delay,
            max_retry_delay=self.context.settings.max_retry_delay,
            has_node=self._has_node,
            load=self.context.exposure.traffic.load,
            expose=self.context.exposure.claim,
        )

    def _has_node(self, name: str) -> bool:
        return any(node.name == name and node.ready for node in self.context.directory.nodes.values())

    def _pod_spec(self, workload: Workload, pod: Pod, podset: PodSet) -> PodSpec:
        return render_pod(workload, pod, podset, self.context.directory.projects.get(workload.project_id))

    def _decide_each(
        self, ids: Iterable[str], reports: Mapping[str, Sequence[PodReport]], now: Millis
    ) -> dict[str, Draft]:
        """A draft per workload. One that cannot be decided on is left for later, and stops nobody else."""
        drafts: dict[str, Draft] = {}
        for id in ids:
            try:
                drafts[id] = self._decide(id, reports.get(id, ()), now)
            except Exception:
                log.exception("workload %s could not be decided on; it is tried again", id)
                self.board.wake(now + int(_RETRY_SECONDS * 1000), id)
        return drafts

    def _decide(self, id: str, reports: Iterable[PodReport], now: Millis) -> Draft:
        entry = self.board.entries[id]
        if self.following:
            return self.following.decide(entry, now, self.rules(entry.workload.kind))
        return decide(entry, reports, now, self.rules(entry.workload.kind))

    async def _schedule(self, drafts: dict[str, Draft], now: Millis) -> None:
        """Ask the scheduler if anything that it looks at may have changed; its decisions go into the drafts."""
        if self.following or not self.scheduler.is_needed(drafts, now):
            return
        began = self.measure()
        await self.scheduler.decide(drafts, now, self.rules)
        self.figures.scheduling_cycles += 1
        self.figures.scheduling_milliseconds += (self.measure() - began) * 1000

    async def _record(self, drafts: dict[str, Draft]) -> list[str]:
        """Record and carry out the drafts; the workloads whose drafts lost a race, and are decided on anew."""
        changed = [draft for draft in drafts.values() if draft.is_changed]
        recorded = await asyncio.gather(*(self._record_one(draft) for draft in changed), return_exceptions=True)
        for draft in drafts.values():
            if draft.wake_at is not None:
                self.board.wake(draft.wake_at, draft.entry.workload.id)
            if not draft.is_changed:
                self._orders += draft.orders
                self.board.discard_if_idle(draft.entry.workload.id)
        await self._apply()
        for outcome in recorded:
            if isinstance(outcome, BaseException):
                raise outcome
        return [draft.entry.workload.id for draft, done in zip(changed, recorded, strict=True) if done is None]

    async def _apply(self) -> None:
        """Carry out what is recorded. Orders stay until the engine has taken them; it takes none twice."""
        if self._orders:
            await self.engine.apply(tuple(self._orders))
            self._orders.clear()

    async def _record_one(self, draft: Draft) -> Draft | None:
        """Make a draft durable. A lost race drops it: the workload is read again and decided anew."""
        workload = msgspec.structs.replace(
            draft.workload, version=draft.entry.workload.version + 1, updated_at=draft.now
        )
        pods = draft.changed_pods()
        events = list(draft.events)
        writes: list[Put | Delete] = [Put(WORKLOADS, workload), *(Put(PODS, pod) for pod in pods)]
        writes += [Put(REVISIONS, revision) for revision in draft.revisions.values()]
        if workload.gone and not draft.entry.workload.gone and makes_claims(draft.entry.podsets):
            left, told = await leave_claims(self.context, workload)
            writes += left
            events += told
        self._recording.add(workload.id)
        try:
            await self.context.store.commit(Change(writes=tuple(writes), events=tuple(events)))
        except Unavailable:
            self._doubtful.add(workload.id)
            raise
        except Conflict:
            self.figures.conflicts += 1
            self._doubtful.add(workload.id)
            self._dirty.add(workload.id)
            self._wakeup.set()
            return None
        finally:
            self._recording.discard(workload.id)
        # What is durable is carried out, whatever happens from here on.
        self._orders += draft.orders
        self._doubtful.discard(workload.id)
        if workload.delete_at is not None and draft.entry.workload.delete_at is None:
            self.note_due(workload.delete_at)
        self.scheduler.note(workload)
        if self.following:
            self.following.note(draft)
        versions = {pod.id: pod for pod in pods}
        self.board.put(workload, [versions.get(pod.id, pod) for pod in draft.pods.values()])
        self.board.discard_if_idle(workload.id)
        if not events:
            self.context.notify_without_event(workload.id)
        return draft

    async def _recover(self) -> None:
        """Find everything again after a start: the records, then what the engine still runs of them."""
        active = Query(collection=WORKLOADS, where=(Where("is_active", Comparison.EQUAL, 1),))
        workloads = {workload.id: workload for workload in await self.context.store.find(active)}
        unended = Where("phase", Comparison.ONE_OF, (PodPhase.STARTING, PodPhase.RUNNING, PodPhase.STOPPING))
        pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in await self.context.store.find(Query(collection=PODS, where=(unended,))):
            pods[pod.workload_id].append(pod)
        for id in pods.keys() - workloads.keys():
            workload = await self.context.store.get(WORKLOADS, id)
            if workload is not None:
                workloads[id] = workload
        for id, workload in workloads.items():
            self.board.put(workload, pods.get(id, ()))
        await self._record_nodes()
        if self.following:
            await self._take_up(self.following)
            return
        running = (id for id, workload in workloads.items() if workload.phase is not Phase.STOPPED)
        await self.engine.apply([await load_retained(self.context, running)])
        await self._catch_up()

    async def _take_up(self, following: ClusterDriver) -> None:
        """After a start with an engine of whole workloads: tell it what there is, and follow what it has."""
        retained = await following.retain()
        await following.load(retained.workload_ids)
        claims = await load_retained(self.context, retained.workload_ids)
        await self.engine.apply([following.organize(), retained, claims])
        await self._observe()
        drafts = self._decide_each(list(self.board.entries), {}, self.context.clock())
        await self._record(drafts)

    async def _drop_claims(self, changed: Iterable[str]) -> None:
        """The storage behind claims whose records are gone goes too."""
        gone = [id for id in dict.fromkeys(changed) if await self.context.store.get(CLAIMS, id) is None]
        if gone:
            await self.engine.apply([DropClaims(tuple(gone))])

    async def _catch_up(self) -> None:
        """Set going again what was intended, and take what the engine has no trace of as lost."""
        now = self.context.clock()
        await self._observe()
        reports = self._by_workload(self._unrecorded)
        orders: list[Order] = []
        for id, entry in self.board.entries.items():
            known = {report.pod_id for report in reports.get(id, ())}
            lost = [pod for pod in entry.pods if is_lost(pod, known, self._has_node)]
            reports.setdefault(id, []).extend(map(report_lost, lost))
            orders += self._unfinished(entry, known)
        drafts = self._decide_each(list(self.board.entries), reports, now)
        self.scheduler.needed = True
        await self._schedule(drafts, now)
        # An object may have changed while no server ran, or just before the last one ended.
        self._orders += [*orders, *find_mounting(self.board.entries.values(), self._pod_spec)]
        self._unrecorded = [report for id in await self._record(drafts) for report in reports[id]]

    def _unfinished(self, entry: WorkloadEntry, known: set[str]) -> list[Order]:
        """Orders that were durable but perhaps never given: a start without a trace, and every stop."""
        orders: list[Order] = []
        for pod in entry.pods:
            podset = next(podset for podset in entry.podsets if podset.role == pod.role)
            is_unknown = pod.id not in known and self._has_node(pod.node)
            if pod.phase is PodPhase.STARTING and pod.restart_at is None and is_unknown:
                orders.append(Start(self._pod_spec(entry.workload, pod, podset)))
            elif pod.phase is PodPhase.STOPPING:
                orders.append(Stop(pod.id, pod.attempt, podset.container.termination_grace_seconds))
        return orders

    async def _record_nodes(self) -> None:
        """Write down the nodes that the engine has now, so that they are read from the store like everything else.

        One that is no longer declared goes; while pods are left on it, it stays and takes no new ones.
        """
        known = self.context.directory.nodes
        found = {node.id: node for node in await self.engine.capacity()}
        used = {pod.node for entry in self.board.entries.values() for pod in entry.pods}
        writes: list[Put | Delete] = []
        for node in known.values():
            if node.id not in found and node.name not in used:
                writes.append(Delete(NODES, node.id))
            elif node.id not in found:
                found[node.id] = msgspec.structs.replace(node, ready=False)
        for node in found.values():
            before = known.get(node.id)
            if before is None or msgspec.structs.replace(before, version=node.version) != node:
                version = before.version + 1 if before else 1
                writes.append(Put(NODES, msgspec.structs.replace(node, version=version)))
        if writes:
            try:
                await self.context.store.commit(Change(writes=tuple(writes)))
            except Conflict:
                # They were recorded before, unknown to us.
                await self.context.directory.load()
                raise
        await self.context.directory.load()
        self._has_other_nodes = False
