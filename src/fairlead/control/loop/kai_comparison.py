"""Compares what KAI decides on a cluster with what Fairlead's scheduler would have decided on the same state.

Called by the cluster driver in every turn of the loop. A comparison begins when the work or the nodes change, before
KAI knows of it, and ends when nothing has changed for some seconds and no pod is stopping. If something else changes in
between, it begins again. So both schedulers decide on the same state, and a busy moment is not compared.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.control.context import Context
from fairlead.control.decide.cluster.blockers import CLUSTER
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.snapshot import key_in_snapshot
from fairlead.control.loop.board import Board
from fairlead.control.loop.schedule import render_snapshot
from fairlead.foresight.kai.agreement import Agreement, compare_outcomes, find_waiting, observe_outcome, predict_outcome
from fairlead.model.clock import SECOND, Millis
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Workload
from fairlead.scheduling.model.snapshot import Snapshot

log = logging.getLogger(__name__)

#: KAI decides once a second. After so long without a change, it has decided.
_QUIET = 5 * SECOND
#: The next comparison begins so long after one, and so many times as long as that one took.
_APART = 10 * SECOND
_REST = 20

Entries = Mapping[str, WorkloadEntry]


class _Start(NamedTuple):
    at: Millis
    entries: Entries


class _ComparisonResult(NamedTuple):
    found: Agreement
    #: Workloads that both left waiting, by key.
    left: frozenset[str]


class KaiComparison:
    def __init__(self, context: Context, board: Board) -> None:
        self._context = context
        self._board = board
        #: When the outcome is to be looked at.
        self.due: Millis | None = None
        self._before: _Start | None = None
        #: By workload, what is asked of the scheduler; and the nodes, pools and quotas.
        self._work: dict[str, tuple[object, ...]] = {}
        self._revision = -1
        self._organization: tuple[object, ...] = ()
        self._not_before: Millis = 0
        #: Both left them waiting when they were compared last: that they still do is not counted again.
        self._left: frozenset[str] = frozenset()
        self._task: asyncio.Task[None] | None = None

    def note(self, drafts: Mapping[str, Draft], now: Millis) -> None:
        """Note what the loop is about to record."""
        changed = [draft for draft in drafts.values() if self._note_work(draft.workload)]
        if self._note_organization() or changed:
            self._begin(drafts, now)
        elif self._before is not None and any(draft.has_other_pods() for draft in drafts.values()):
            self.due = now + _QUIET
        if self.due is not None and now >= self.due:
            self._finish()

    def _note_work(self, workload: Workload) -> bool:
        """Whether something else is asked of the scheduler than when the workload was looked at last."""
        before = self._work.pop(workload.id, None)
        if not workload.is_active:
            return before is not None
        work = self._work[workload.id] = (
            bytes(workload.spec),
            workload.run,
            workload.revisions,
            workload.desired_phase,
            workload.deleted_at,
            workload.waits_for,
            workload.priority,
            workload.preemptible,
            workload.node_pools,
            workload.succeeded,
        )
        return work != before

    def _note_organization(self) -> bool:
        directory = self._context.directory
        if directory.revision == self._revision:
            return False
        self._revision, before = directory.revision, self._organization
        self._organization = (directory.nodes, directory.node_pools, directory.projects, directory.departments)
        return self._organization != before

    def _begin(self, drafts: Mapping[str, Draft], now: Millis) -> None:
        is_busy = self._task is not None and not self._task.done()
        if is_busy or now < self._not_before:
            self._before = self.due = None
            return
        entries = self._board.entries | {id: draft.entry_after() for id, draft in drafts.items()}
        self._before, self.due = _Start(now, entries), now + _QUIET

    def _finish(self) -> None:
        """While a pod stops, KAI waits for it; its end is a change, after which this is called again."""
        self.due = None
        after = dict(self._board.entries)
        is_stopping = any(pod.phase is PodPhase.STOPPING for entry in after.values() for pod in entry.pods)
        if self._before is not None and not is_stopping:
            compare = partial(_compare, self._context, self._before, after, self._left)
            self._before = None
            self._task = asyncio.create_task(self._run(compare), name="comparison with KAI")

    async def _run(self, compare: "partial[_ComparisonResult]") -> None:
        began = self._context.clock()
        try:
            compared = await asyncio.to_thread(compare)
            self._context.agreement += compared.found
            self._left = compared.left
        # Whatever it is: workloads are reconciled without comparisons too.
        except Exception:
            log.exception("a comparison with KAI failed")
        now = self._context.clock()
        self._not_before = now + max(_APART, _REST * (now - began))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def _compare(context: Context, before: _Start, after: Entries, left_before: frozenset[str]) -> _ComparisonResult:
    """Pure, on frozen data: it runs in a thread."""
    then, now = (_render(context, entries, before.at) for entries in (before.entries, after))
    waiting = find_waiting(then)
    if not waiting:
        return _ComparisonResult(Agreement(), frozenset())
    explained = {
        key_in_snapshot(entry.workload)
        for entry in after.values()
        if (entry.workload.blocked_by or {}).get("source") == CLUSTER
    }
    predicted, observed = predict_outcome(then), observe_outcome(then, now, _find_evicted(then, before.entries, after))
    placed = predicted.placed | observed.placed
    # KAI says why a workload waits. Until then it may not have seen all its pods.
    judged = {key for key in waiting if key in observed.placed or key in explained}
    both_wait = judged - placed
    return _ComparisonResult(
        compare_outcomes(judged - (both_wait & left_before), predicted, observed), frozenset(both_wait)
    )


def _find_evicted(then: Snapshot, before: Entries, after: Entries) -> set[str]:
    """Workloads that lost pods to others, by key. Pods on a node that is drained or lost leave without KAI."""
    in_use = {node.name for node in then.nodes if node.ready and not node.unschedulable}
    last = {id: entry.workload.last_eviction for id, entry in after.items() if id in before}
    return {
        key_in_snapshot(before[id].workload)
        for id, note in last.items()
        if note is not None and note != before[id].workload.last_eviction and note.node in in_use
    }


def _render(context: Context, entries: Entries, now: Millis) -> Snapshot:
    """With workloads of which no report has come yet: KAI may have seen them."""
    board = Board({})
    for id, entry in entries.items():
        if entry.workload.phase is Phase.CREATING:
            entry = replace(entry, workload=replace(entry.workload, phase=Phase.PENDING))
        board.entries[id] = entry
    return render_snapshot(context, board, now)
