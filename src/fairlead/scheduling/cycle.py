"""One cycle: build the live model of every node pool, run the actions in order, write down what was decided.

A job with several node pools is tried in the first; what got no place there goes on to the next, within the same cycle.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from operator import attrgetter

from fairlead.scheduling.actions.allocate import allocate
from fairlead.scheduling.actions.consolidate import consolidate
from fairlead.scheduling.actions.evict_stale import evict_stale
from fairlead.scheduling.actions.preempt import preempt
from fairlead.scheduling.actions.reclaim import reclaim
from fairlead.scheduling.model.decisions import Decisions, Failure, Notice, Reason
from fairlead.scheduling.model.live import LiveJob
from fairlead.scheduling.model.queues import build_queues
from fairlead.scheduling.model.snapshot import ALL_ACTIONS, DEFAULT_POOL, Action, Job, Settings, Snapshot
from fairlead.scheduling.outcome import write_down
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession

#: A task in these states has left its node.
_ENDED = frozenset({"Succeeded", "Failed", "Deleted"})

ACTIONS: dict[Action, Callable[[SchedulingSession, Record], None]] = {
    "allocate": allocate,
    "consolidation": consolidate,
    "reclaim": reclaim,
    "preempt": preempt,
    "stalegangeviction": evict_stale,
}


def decide(snapshot: Snapshot) -> Decisions:
    """What to bind, what to evict, what to keep for whom, and why the rest waits."""
    # The model is many small objects in reference cycles, which `SchedulingSession.close` breaks. A collector would
    # walk them for nothing, a quarter of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return Cycle(snapshot).run()
    finally:
        if collects:
            gc.enable()


def actions_of(settings: Settings) -> tuple[Action, ...]:
    if settings.actions is not None:
        return settings.actions
    if "spread" in (settings.placement.gpu, settings.placement.cpu):
        return tuple(action for action in ALL_ACTIONS if action != "consolidation")
    return ALL_ACTIONS


def decide_without_shortcuts(snapshot: Snapshot) -> Decisions:
    """The same without indexes, bounds and forecasts: slow; tests compare `decide` with it."""
    return Cycle(snapshot, plain=True).run()


class Cycle:
    """Sessions of all pools, and for every job the pools that it may still be tried in."""

    def __init__(self, snapshot: Snapshot, plain: bool = False) -> None:
        self.snapshot = snapshot
        self.plain = plain
        self.record = Record()
        self.notices: list[Notice] = []
        self.sessions: dict[str, SchedulingSession] = {}
        #: Jobs without a place, by id, to the pools not tried yet.
        self.further: dict[str, list[str]] = {}
        #: Why a pool cannot take jobs of a queue; None if it can.
        self.problems: dict[tuple[str, str], Reason | None] = {}

    def run(self) -> Decisions:
        self._open()
        arrivals = self._first_pools()
        self._account_for_foreign_tasks(arrivals)
        while arrivals:
            for pool in sorted(arrivals):
                self._run_actions(pool, arrivals[pool])
            arrivals = self._next_pools()
        self._note_overbooked_nodes()
        decisions = write_down(self.snapshot, self.sessions, self.record, self.notices)
        for session in self.sessions.values():
            session.close()
        return decisions

    def _open(self) -> None:
        pools = {node.node_pool for node in self.snapshot.nodes} | {queue.node_pool for queue in self.snapshot.queues}
        for pool in sorted(pools or {DEFAULT_POOL}):
            queues, dropped = build_queues(self.snapshot, pool)
            for name in dropped:
                message = f"Queue {name} in node pool {pool} was left out: one of its parents does not exist."
                self.notices.append(Notice(code="QueueDropped", subject=name, message=message))
            session = self.sessions[pool] = SchedulingSession(self.snapshot, pool, queues)
            session.plain = self.plain

    def _note_overbooked_nodes(self) -> None:
        """Real clusters have nodes on which more is in use than there is; no decision books one so."""
        for node in (node for session in self.sessions.values() for node in session.nodes if node.idle_gpu < 0):
            message = (
                f"Node {node.name} has {node.spec.gpu} GPUs, and {node.spec.gpu - node.idle_gpu} are in use on it."
            )
            self.notices.append(Notice(code="NodeOverbooked", subject=node.name, message=message))

    def _first_pools(self) -> dict[str, list[Job]]:
        """Every job in the pool where it holds something, or in the first that it names and that knows its queue."""
        node_pools = {node.name: node.node_pool for node in self.snapshot.nodes}
        arrivals: dict[str, list[Job]] = {pool: [] for pool in self.sessions}
        for job in sorted(self.snapshot.jobs, key=attrgetter("id")):
            home = None
            for task in job.tasks:
                if task.node is not None and task.status not in _ENDED:
                    home = node_pools.get(task.node)
                    break
            pools = [home] if home is not None else list(job.node_pools or (DEFAULT_POOL,))
            self._send(job, pools, arrivals)
        return arrivals

    def _account_for_foreign_tasks(self, arrivals: dict[str, list[Job]]) -> None:
        """Tasks on nodes of a pool that does not schedule their job still hold their place there."""
        if len(self.sessions) == 1 and sum(map(len, arrivals.values())) == len(self.snapshot.jobs):
            return
        node_pools = {node.name: node.node_pool for node in self.snapshot.nodes}
        scheduled_in = {job.id: pool for pool, jobs in arrivals.items() for job in jobs}
        for job in self.snapshot.jobs:
            own = scheduled_in.get(job.id)
            placed = (node_pools[task.node] for task in job.tasks if task.node in node_pools)
            for pool in sorted({pool for pool in placed if pool != own}):
                self.sessions[pool].book_foreign_tasks(job)

    def _send(self, job: Job, pools: list[str], arrivals: dict[str, list[Job]]) -> None:
        """Into the first of these pools that can take the job; the rest is kept for later."""
        while pools:
            pool = pools.pop(0)
            key = (pool, job.queue)
            if key not in self.problems:
                self.problems[key] = self._problem(job, pool)
            problem = self.problems[key]
            if problem is None:
                arrivals.setdefault(pool, []).append(job)
                if pools:
                    self.further[job.id] = pools
                return
            self.record.reasons.setdefault(job.id, {})[pool] = problem
            message = f"Job {job.id} is not scheduled in node pool {pool}: {problem.code} {job.queue}."
            self.notices.append(Notice(code=problem.code, subject=job.id, message=message))

    def _problem(self, job: Job, pool: str) -> Reason | None:
        session = self.sessions.get(pool)
        if session is None:
            return Reason(code="NoSuchNodePool", detail=f"Node pool {pool} does not exist.")
        queue = session.queues.get(job.queue)
        if queue is None:
            return Reason(code="QueueDoesNotExist", queue=job.queue)
        if queue.children:
            return Reason(code="QueueIsNotALeaf", queue=job.queue)
        return None

    def _run_actions(self, pool: str, arrivals: list[Job]) -> None:
        """All actions in one pool, on what earlier rounds left there."""
        session = self.sessions[pool]
        for spec in arrivals:
            self._admit(session, spec)
        session.divide_fair_shares()
        for action in actions_of(session.settings):
            self.run_action(session, action)

    def _admit(self, session: SchedulingSession, spec: Job) -> None:
        """Add a job; an invalid one is reported and left out."""
        try:
            session.add_job(spec)
        except (LookupError, TypeError, ValueError) as error:
            message = f"{type(error).__name__}: {error}"
            self.record.failures.append(Failure(job=spec.id, action="admission", error=message))
            self.record.reasons.setdefault(spec.id, {})[session.pool] = Reason(code="Failed", detail=message)

    def run_action(self, session: SchedulingSession, action: Action) -> None:
        ACTIONS[action](session, self.record)

    def _next_pools(self) -> dict[str, list[Job]]:
        arrivals: dict[str, list[Job]] = {}
        for session in self.sessions.values() if self.further else ():
            for job in list(session.jobs.values()):
                if job.id in self.further and _has_nothing(job):
                    self.record.explain(session, job)
                    session.remove_job(job)
                    self._send(job.spec, self.further.pop(job.id), arrivals)
        return arrivals


def _has_nothing(job: LiveJob) -> bool:
    return job.pending > 0 and not any(pod_set.used for pod_set in job.pod_sets)
