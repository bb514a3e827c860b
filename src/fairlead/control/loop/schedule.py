"""Between the pod driver and `scheduling`: when to ask it, with which snapshot, and writing its decisions into drafts.

The plain way is to ask in every turn. That is skipped if the answer cannot differ (`is_needed`,
`decide/placement/equivalence.py`), and postponed for a moment if asking takes long, so that a large cluster's scheduler
leaves time for everything else.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

import msgspec

from fairlead.control.context import Context
from fairlead.control.cycles.recorder import CycleRecorder
from fairlead.control.decide.draft import Draft, WorkloadEntry, podset_of
from fairlead.control.decide.placement.equivalence import KnownBlockers
from fairlead.control.decide.placement.eviction_notices import name_pods, note_eviction
from fairlead.control.decide.placement.gpu_numbers import number_devices
from fairlead.control.decide.placement.missing_pods import count_missing_pods
from fairlead.control.decide.placement.placements import evict, explain, place
from fairlead.control.decide.placement.snapshot import (
    HELD,
    constrain,
    label_topologies,
    preferred_levels,
    render_jobs,
    render_node,
    render_queues,
)
from fairlead.control.directory import Directory
from fairlead.control.loop.board import Board
from fairlead.model.clock import SECOND, Millis
from fairlead.model.records.cycle import CyclePiece
from fairlead.model.records.organization import NodePool
from fairlead.model.records.workload import Workload
from fairlead.scheduling import decide
from fairlead.scheduling.model.decisions import Bind, Decisions, Eviction, Pending
from fairlead.scheduling.model.snapshot import (
    Job,
    Placement,
    PoolSettings,
    Queue,
    Settings,
    Snapshot,
    SnapshotNode,
    Strategy,
    Topology,
    TopologyConstraint,
)

log = logging.getLogger(__name__)

#: Snapshots of up to so many jobs are decided on the event loop; larger ones in a thread.
_INLINE_JOBS = 100
#: A decision that took longer than this many milliseconds is followed by a pause as long as itself.
_BRIEF = 20
#: How long room that has become free may stay undecided if nobody waits for it. Short jobs end and start more often.
_UNWANTED: Millis = 1 * SECOND


class _Frame(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a snapshot has beside its jobs, as of a revision of the directory."""

    revision: int
    nodes: tuple[SnapshotNode, ...]
    queues: tuple[Queue, ...]
    topologies: tuple[Topology, ...]
    near: dict[str, TopologyConstraint]
    settings: Settings


def _render_frame(directory: Directory) -> _Frame:
    pools = list(directory.node_pools.values())
    owners = [*directory.departments.values(), *directory.projects.values()]
    topologies = directory.cluster.network_topologies
    return _Frame(
        revision=directory.revision,
        nodes=tuple(render_node(node, pools) for node in directory.nodes.values()),
        queues=tuple(render_queues(owners, pools)),
        topologies=tuple(Topology(name=topology.name, levels=topology.levels) for topology in topologies),
        near=preferred_levels(pools, topologies) if topologies else {},
        settings=_settings(pools),
    )


class Scheduler:
    def __init__(self, context: Context, board: Board, recorder: CycleRecorder | None = None) -> None:
        self._context = context
        #: None if it is only asked for snapshots.
        self._recorder = recorder
        self._board = board
        self._waiting = KnownBlockers(context.pending_equivalents)
        #: Set when something outside the workloads changed (nodes, quotas, pools), or when asking was postponed.
        self.needed = True
        #: When the answer may change by time alone, or to when asking was postponed.
        self.next_change_at: Millis | None = None
        self._not_before: Millis = 0
        #: Whether the last decision left somebody waiting for room.
        self._has_waiting = True
        self._known_frame: _Frame | None = None
        #: Since when a gang lacks members, by job; in seconds, as in `scheduling`.
        self._stale: dict[str, float] = {}

    def is_needed(self, drafts: Mapping[str, Draft], now: Millis) -> bool:
        """Whether anything that scheduling reads has changed: a pod is missing, or one has ended and others wait."""
        due = self.next_change_at is not None and self.next_change_at <= now
        is_needed = self.needed or due
        has_other_room = any(draft.has_other_pods() for draft in drafts.values())
        if is_needed or has_other_room:
            self._waiting.clear()
        is_needed |= has_other_room and self._has_waiting
        for draft in drafts.values():
            after = draft.entry_after()
            if pending := self._waiting.reason(after, now):
                explain(draft, pending)
            elif count_missing_pods(after, now):
                is_needed = True
        if is_needed and now < self._not_before:
            self.needed, self.next_change_at = True, self._not_before
            return False
        if has_other_room and not is_needed:
            self._decide_again_by(now + _UNWANTED)
        return is_needed

    def _decide_again_by(self, at: Millis) -> None:
        self.next_change_at = at if self.next_change_at is None else min(at, self.next_change_at)

    def note(self, workload: Workload) -> None:
        """A workload was recorded: equal newcomers may wait for the same reason."""
        self._waiting.note(workload)

    def snapshot(self, entries: Iterable[WorkloadEntry], now: Millis) -> Snapshot:
        frame = self._frame()
        jobs: list[Job] = []
        for entry in entries:
            jobs += self._board.jobs(entry, lambda entry: self._render(entry, now))
        # Records of cycles are differences of snapshots, so their order should not depend on who was changed last.
        jobs.sort(key=attrgetter("id"))
        if self._stale:
            jobs = [self._marked(job) for job in jobs]
        if frame.topologies:
            jobs = [constrain(job, frame.near) for job in jobs]
        return Snapshot(
            now=now / 1000,
            nodes=frame.nodes,
            queues=frame.queues,
            jobs=tuple(jobs),
            topologies=(*frame.topologies, *label_topologies(jobs)),
            settings=frame.settings,
        )

    def _frame(self) -> _Frame:
        """Rendered again only when a record of the organization changes, which is rare compared with workloads."""
        directory = self._context.directory
        if self._known_frame is None or self._known_frame.revision != directory.revision:
            self._known_frame = _render_frame(directory)
        return self._known_frame

    def _marked(self, job: Job) -> Job:
        since = self._stale.get(job.id)
        return job if since is None else msgspec.structs.replace(job, stale_since=since)

    def _render(self, entry: WorkloadEntry, now: Millis) -> list[Job]:
        project = self._context.directory.projects.get(entry.workload.project_id)
        return render_jobs(entry, project.namespace if project else "", now)

    async def decide(self, drafts: dict[str, Draft], now: Millis) -> Decisions:
        """Decide on the whole cluster as it will be when the drafts are recorded."""
        entries = {id: entry for id, entry in self._board.entries.items() if id not in drafts}
        entries |= {id: draft.entry_after() for id, draft in drafts.items()}
        snapshot = self.snapshot(entries.values(), now)
        decisions = await self._decide(snapshot)
        self.needed = False
        self.next_change_at = None if decisions.next_change_at is None else int(decisions.next_change_at * 1000) + 1
        finished = self._context.clock()
        self._not_before = finished + (finished - now if finished - now > _BRIEF else 0)
        self._remember_stale(decisions, snapshot)
        for failure in decisions.failures:
            log.error("scheduling of job %s failed in action %s: %s", failure.job, failure.action, failure.error)
        self._has_waiting = bool(decisions.pending or decisions.pipelined)
        self._waiting.learn(entries, decisions)
        self._context.fair_shares = decisions.fair_shares
        self._write(decisions, drafts, now)
        return decisions

    async def _decide(self, snapshot: Snapshot) -> Decisions:
        """Decide, and record the cycle before anything that follows from it."""
        recorder = self._recorder
        if recorder is not None:
            await recorder.open()

        def decide_and_encode() -> tuple[Decisions, tuple[CyclePiece, ...]]:
            decisions = decide(snapshot)
            return decisions, recorder.encode(snapshot, decisions) if recorder is not None else ()

        # Pure functions on frozen data may run beside the requests.
        is_large = len(snapshot.jobs) > _INLINE_JOBS
        decisions, pieces = await asyncio.to_thread(decide_and_encode) if is_large else decide_and_encode()
        if recorder is not None:
            for piece in pieces:
                recorder.submit(piece)
        return decisions

    def _remember_stale(self, decisions: Decisions, snapshot: Snapshot) -> None:
        for mark in decisions.stale:
            self._stale.pop(mark.job, None)
            if mark.since is not None:
                self._stale[mark.job] = mark.since
        if self._stale:
            existing = {job.id for job in snapshot.jobs}
            self._stale = {job: since for job, since in self._stale.items() if job in existing}

    def _write(self, decisions: Decisions, drafts: dict[str, Draft], now: Millis) -> None:
        def draft_of(workload_id: str) -> Draft:
            if workload_id not in drafts:
                drafts[workload_id] = Draft(self._board.entries[workload_id], now)
            return drafts[workload_id]

        for bind in decisions.starts:
            self._bind(bind, draft_of)
        for eviction in decisions.evictions:
            if not eviction.never_started:
                self._evict(eviction, draft_of(self._board.pods[eviction.task]))
        explained: set[str] = set()
        for pending in decisions.pending:
            workload_id = pending.tasks[0].split("/")[0]
            if workload_id not in explained and "/" in pending.tasks[0]:
                explained.add(workload_id)
                due = explain(draft_of(workload_id), self._with_names(pending), len(decisions.pending))
                if due is not None:
                    self._decide_again_by(due)

    def _bind(self, bind: Bind, draft_of: Callable[[str], Draft]) -> None:
        workload_id, role, group, slot = bind.task.split("/")
        if slot.startswith(HELD):
            # There is room for it and it does not start yet: others may use that room in the meantime.
            self.needed = True
            return
        draft = draft_of(workload_id)
        node = self._context.directory.nodes.get(bind.node)
        place(draft, podset_of(draft.entry.podsets, role), int(group), self._context.new_id(), bind, node)

    def _evict(self, eviction: Eviction, draft: Draft) -> None:
        pod = draft.pods[eviction.task]
        note = note_eviction(eviction, draft.workload, pod, self._workload_of(eviction.by_job), draft.now)
        evict(draft, pod, eviction, note)

    def _workload_of(self, job: str | None) -> Workload | None:
        """The workload behind a job of the snapshot, whose id names its workload, its pod or its task."""
        if job is None:
            return None
        entry = self._board.entries.get(self._board.pods.get(job, job.split("/")[0]))
        return entry.workload if entry else None

    def _with_names(self, pending: Pending) -> Pending:
        """With names of pods instead of ids. Only pods of its own project are named, because its readers are there."""
        if not pending.reason.waits_for:
            return pending
        entry = self._board.entries.get(pending.tasks[0].split("/")[0])
        own = frozenset({entry.workload.project_id} if entry else ())
        reason = name_pods(pending.reason, self._board.pods, self._board.entries, own)
        return msgspec.structs.replace(pending, reason=reason)


def render_snapshot(context: Context, board: Board, now: Millis) -> Snapshot:
    """The snapshot of a board on which a decision would be based now, with GPUs for pods that a cluster placed."""
    snapshot = Scheduler(context, board).snapshot(board.entries.values(), now)
    # Of a cluster's pods the number of devices is recorded, not which ones.
    placed_elsewhere = {pod.id for entry in board.entries.values() for pod in entry.pods if pod.cluster_phase}
    return number_devices(snapshot, placed_elsewhere)


def _settings(pools: Iterable[NodePool]) -> Settings:
    """The scheduler's settings, with those of each node pool."""
    return Settings(
        staleness_grace=60,
        pools=tuple(
            PoolSettings(
                name=pool.name,
                placement=Placement(gpu=_strategy(pool.placement_gpu), cpu=_strategy(pool.placement_cpu)),
                preempt_min_runtime=pool.min_guaranteed_runtime_seconds,
                reclaim_min_runtime=pool.min_guaranteed_runtime_seconds,
            )
            for pool in pools
        ),
    )


def _strategy(name: str) -> Strategy:
    return "spread" if name == "spread" else "defragment" if name == "defragment" else "binpack"
