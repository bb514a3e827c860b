"""A cluster whose live model is kept from cycle to cycle, for replays of many thousand cycles.

The plain way is `decide` on a new snapshot of everything in each cycle. Here jobs come, change and go one by one, and
only they are built anew. The decisions are the same; reasons, states and device indices are not made. One node pool,
whole GPUs, no affinity and no topology: `can_decide_incrementally` checks this.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from fairlead.scheduling.actions.allocate import alike_key
from fairlead.scheduling.actions.evict_stale import is_stale
from fairlead.scheduling.cycle import ACTIONS, actions_of
from fairlead.scheduling.model.decisions import Decisions, StaleMark
from fairlead.scheduling.model.live import Alike, LiveJob
from fairlead.scheduling.model.queues import Amounts, build_queues
from fairlead.scheduling.model.snapshot import Action, Job, Snapshot, Task
from fairlead.scheduling.outcome import changed_tasks, render_binds, render_last_starts, render_promises
from fairlead.scheduling.session.record import Record
from fairlead.scheduling.session.session import SchedulingSession
from fairlead.scheduling.simulate import advance

#: Lines of a session's journals after which it is built anew, so that they do not grow for ever.
_MAX_LINES = 1_000_000
#: A task of an incremental cluster has these members as it likes, and all others as this one.
_PLAIN = Task(id="")
_FREE = (
    *("id", "name", "namespace", "pod_set", "status", "node", "devices", "created", "priority", "leader"),
    *("cpu_milli", "memory_bytes", "gpu", "labels", "node_selector", "node_affinity", "tolerations"),
)
_STATES = frozenset({"Pending", "Running"})


def can_decide_incrementally(cluster: Snapshot, jobs: Iterable[Job]) -> bool:
    """Whether an incremental cluster decides as `decide` does for these nodes, queues and jobs."""
    pools = {node.node_pool for node in cluster.nodes} | {queue.node_pool for queue in cluster.queues}
    leaves = {name for pool in pools for name, queue in build_queues(cluster, pool)[0].items() if not queue.children}
    settings = cluster.settings
    placements = [settings.placement, *(pool.placement for pool in settings.pools if pool.placement is not None)]
    return (
        len(pools) == 1
        and all("defragment" not in (placement.gpu, placement.cpu) for placement in placements)
        and all(job.queue in leaves and set(job.node_pools) == pools and _is_plain(job) for job in jobs)
    )


def _is_plain(job: Job) -> bool:
    if job.groups or job.pod_sets or job.topology is not None or job.preemption_delay or job.deleting:
        return False
    return all(
        task.status in _STATES and task == replace(_PLAIN, **{name: getattr(task, name) for name in _FREE})
        for task in job.tasks
    )


class IncrementalCluster:
    """`put` and `remove` jobs, then `decide`; `jobs` is what the next cycle would find in its snapshot."""

    def __init__(self, cluster: Snapshot) -> None:
        self.cluster: Snapshot = replace(cluster, jobs=())
        self.jobs: dict[str, Job] = {}
        #: Whether another cycle after the last one would change nothing but for what was put since.
        self.is_settled = False
        self._priorities: set[int] = set()
        self.actions: tuple[Action, ...] = actions_of(cluster.settings)
        self._open()

    def _open(self) -> None:
        [pool] = {node.node_pool for node in self.cluster.nodes} | {queue.node_pool for queue in self.cluster.queues}
        queues, _ = build_queues(self.cluster, pool)
        self.session = SchedulingSession(self.cluster, pool, queues)
        self.session.is_explained = False
        #: Jobs of several tasks: only they can be stale.
        self._gangs: dict[str, LiveJob] = {}
        #: How many jobs wait that would be refused alike.
        self._waiting: Counter[Alike | None] = Counter()
        self._shares: list[tuple[Amounts, Amounts]] = []
        for job in self.jobs.values():
            self._add(job)

    def put(self, job: Job) -> None:
        """Add a job, or replace the one with its id."""
        if job.id in self.jobs:
            self._take_out(job.id)
        self.jobs[job.id] = job
        self._priorities.add(job.priority)
        self._add(job)

    def remove(self, job_id: str) -> None:
        self._take_out(job_id)
        del self.jobs[job_id]
        self.is_settled = False

    def _add(self, job: Job) -> None:
        session = self.session
        live = session.add_job(job)
        for index in (session.pending_jobs(), session.possible_victims(), session.ready_jobs()):
            index.refresh(live)
        if len(job.tasks) > 1:
            self._gangs[job.id] = live
        elif live.pending:
            self._waiting[alike_key(session, live)] += 1

    def _take_out(self, job_id: str) -> None:
        live = self.session.jobs[job_id]
        if not self._gangs.pop(job_id, None) and self.jobs[job_id].tasks[0].status == "Pending":
            self._waiting[alike_key(self.session, live)] -= 1
        self.session.take_out(live)
        live.cut()

    def would_change_nothing(self, newcomers: Sequence[str]) -> bool:
        """Whether a cycle after these jobs were put would change nothing, as the one before did.

        True if equal jobs already wait for each new job, the new jobs come after them, and no queue's share changes.
        With one priority for all jobs, their order among the others does not matter either.
        """
        if not self.is_settled or len(self._priorities) > 1:
            return False
        alike = Counter(self._alike(job) for job in newcomers)
        if None in alike or any(self._waiting[key] <= count for key, count in alike.items()):
            return False
        self.session.count_arrivals()
        return self._shares == self._divided()

    def _alike(self, job_id: str) -> Alike | None:
        return None if job_id in self._gangs else alike_key(self.session, self.session.jobs[job_id])

    def _divided(self) -> list[tuple[Amounts, Amounts]]:
        return [(queue.fair, queue.share) for queue in self.session.queues.values()]

    def decide(self, now: float) -> Decisions:
        """One cycle, carried out at once: bound tasks run, evicted ones wait again."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._decide(now)
        finally:
            if collects:
                gc.enable()

    def _decide(self, now: float) -> Decisions:
        session = self.session
        session.now, session.next_change = now, None
        # What was known about the last cycle's jobs is not true for those that came since.
        session.commits += 1
        session.changed.clear()
        session.count_arrivals()
        self._shares = self._divided()
        record = Record()
        for action in self.actions:
            if action != "stalegangeviction" or any(map(_may_be_stale, self._gangs.values())):
                ACTIONS[action](session, record)
        changed = changed_tasks(session)
        binds, early = render_binds(session, changed, record, with_devices=False)
        decisions = Decisions(
            binds=tuple(binds),
            early_binds=tuple(early),
            evictions=tuple(record.evictions[task] for task in sorted(record.evictions)),
            pipelined=tuple(render_promises(session.pool, changed, record)),
            stale=tuple(StaleMark(job=job, since=record.stale[job]) for job in sorted(record.stale)),
            last_starts=render_last_starts(record),
            failures=tuple(record.failures),
            next_change_at=session.next_change,
        )
        self.is_settled = self._is_final(decisions)
        self._carry_out(decisions, session.changed | record.stale.keys() | record.last_starts.keys())
        if len(session.touched) + len(session.used_queues) > _MAX_LINES:
            session.close()
            self._open()
        return decisions

    def _is_final(self, decisions: Decisions) -> bool:
        """After a cycle that only bound, what was refused is refused again: there is less room, and all else is equal.

        Unless only so many jobs of a queue are looked at in a cycle.
        """
        if decisions.evictions or decisions.pipelined:
            return False
        return not decisions.binds or not self.cluster.settings.queue_depth

    def _carry_out(self, decisions: Decisions, changed: set[str]) -> None:
        ids = sorted(changed)
        before: Snapshot = replace(self.cluster, jobs=tuple(self.jobs[id] for id in ids), now=self.session.now)
        for job in advance(before, decisions, self.session.now).jobs:
            self.put(job)


def _may_be_stale(job: LiveJob) -> bool:
    return job.stale_since is not None or is_stale(job)
