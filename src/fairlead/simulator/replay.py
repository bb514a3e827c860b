"""Plays a history on a cluster: arrivals and ends in the order of their times, and cycles after each that matters.

The reference way is `decide` on the whole cluster after every arrival and end, until nothing changes. An incremental
cluster makes the same decisions and keeps its model in between. Two kinds of cycle are skipped, because they would
change nothing: when nothing waits, and when jobs equal to the new ones already wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.foresight.outlook import step
from fairlead.scheduling.cycle import decide
from fairlead.scheduling.incremental import IncrementalCluster, can_decide_incrementally
from fairlead.scheduling.model.decisions import Decisions
from fairlead.scheduling.model.snapshot import Job, Snapshot, Task
from fairlead.simulator.history import Arrival

#: Placed tasks with all of the state that a cycle changes.
_Places = frozenset[tuple[float | None, float | None, str, str]]


class ReplayedWorkload(NamedTuple):
    """When one workload started and ended, and how often it was evicted."""

    arrival: Arrival
    #: When it first started; None if it never did.
    start: float | None
    end: float | None
    evictions: int


class ReplayResult(NamedTuple):
    workloads: tuple[ReplayedWorkload, ...]
    #: GPU seconds in use, and those that there were, from the first arrival to the last end.
    gpu_seconds_used: float
    gpu_seconds: float
    #: Cycles.
    decisions: int
    #: Moments at which evicted workloads evicted each other in turn.
    repeats: int
    #: When a project got or lost GPUs, and how many (negative if it lost them), in the order of the times.
    gpu_changes: tuple[tuple[float, str, float], ...]


#: Gets the time, the ids of workloads that did not start in their first cycle, and all jobs that have not ended.
Watch = Callable[[float, Sequence[str], Mapping[str, Job]], None]


def replay(
    cluster: Snapshot, history: Sequence[Arrival], *, is_reference: bool = False, watch: Watch | None = None
) -> ReplayResult:
    """`cluster`: nodes, queues and settings; its own jobs are left out. Queues are named as the projects are.

    `is_reference` skips no cycle; tests compare both ways.
    """
    return _Replay(cluster, history, is_reference, watch).run()


class _Replay:
    def __init__(
        self, cluster: Snapshot, history: Sequence[Arrival], is_reference: bool, watch: Watch | None = None
    ) -> None:
        self.watch = watch
        self.cluster: Snapshot = replace(cluster, jobs=())
        self.arrivals = [make_job(arrival) for arrival in history]
        self.history = history
        self.incremental: IncrementalCluster | None = None
        if not is_reference and can_decide_incrementally(self.cluster, self.arrivals):
            self.incremental = IncrementalCluster(self.cluster)
        self.jobs: dict[str, Job] = {} if self.incremental is None else self.incremental.jobs
        self.waiting: set[str] = set()
        self.by_id = {arrival.id: arrival for arrival in history}
        #: End time, id, and the number of the start that it belongs to.
        self.ends: list[tuple[float, str, int]] = []
        self.starts: dict[str, int] = {}
        self.first_start: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.evictions: dict[str, int] = {}
        self.decisions = self.repeats = 0
        self.next_change: float | None = None
        self.used = 0.0
        self.gpu_changes: list[tuple[float, str, float]] = []

    def run(self) -> ReplayResult:
        position, count = 0, len(self.history)
        while position < count or self.ends:
            now = min(
                self.history[position].at if position < count else float("inf"),
                self.ends[0][0] if self.ends else float("inf"),
            )
            has_ended = self._end(now)
            newcomers = []
            while position < count and self.history[position].at <= now:
                newcomers.append(self.arrivals[position])
                position += 1
            for job in newcomers:
                self._put(job)
            self.waiting.update(job.id for job in newcomers)
            if self.waiting and (newcomers or has_ended) and not self._can_skip_cycle(now, newcomers):
                self._cycle(now)
            if self.watch is not None:
                still = [job.id for job in newcomers if job.id in self.waiting]
                if still:
                    self.watch(now, still, self.jobs)
        return self._result()

    def _put(self, job: Job) -> None:
        if self.incremental is None:
            self.jobs[job.id] = job
        else:
            self.incremental.put(job)

    def _end(self, now: float) -> bool:
        has_ended = False
        while self.ends and self.ends[0][0] <= now:
            at, id, number = heapq.heappop(self.ends)
            if self.starts.get(id) == number and id in self.jobs and id not in self.waiting:
                if self.incremental is None:
                    del self.jobs[id]
                else:
                    self.incremental.remove(id)
                self.ended[id] = at
                self._count_gpus(id, at, -1)
                self.used += self.by_id[id].duration * self.by_id[id].gpus * self.by_id[id].pods
                has_ended = True
        return has_ended

    def _can_skip_cycle(self, now: float, newcomers: Sequence[Job]) -> bool:
        if self.incremental is None or (self.next_change is not None and self.next_change <= now):
            return False
        return self.incremental.would_change_nothing([job.id for job in newcomers])

    def _cycle(self, now: float) -> None:
        """Cycles at this moment until nothing changes, or until workloads that swap places are where they were."""
        seen: set[_Places] = set()
        while True:
            decisions = self._decide(now)
            self.decisions += 1
            self.next_change = decisions.next_change_at
            self._note(decisions, now)
            if self.incremental is not None and self.incremental.is_settled:
                return
            if not decisions.starts and not decisions.evictions:
                return
            # Without an eviction there is less to place each time, so only evictions can lead back.
            if decisions.evictions:
                places = self._places()
                if places in seen:
                    self.repeats += 1
                    return
                seen.add(places)

    def _decide(self, now: float) -> Decisions:
        if self.incremental is not None:
            return self.incremental.decide(now)
        snapshot: Snapshot = replace(self.cluster, jobs=tuple(self.jobs.values()), now=now)
        decisions = decide(snapshot)
        for job in step(snapshot, decisions, now).jobs:
            self.jobs[job.id] = job
        return decisions

    def _places(self) -> _Places:
        return frozenset(
            (job.last_start, job.last_eviction, task.id, task.node)
            for job in self.jobs.values()
            for task in job.tasks
            if task.node is not None
        )

    def _note(self, decisions: Decisions, now: float) -> None:
        """Who lost a place, and who starts with all pods."""
        for id in {eviction.job for eviction in decisions.evictions if not eviction.never_started}:
            self.evictions[id] = self.evictions.get(id, 0) + 1
            self.starts[id] = self.starts.get(id, 0) + 1
            if id not in self.waiting:
                self._count_gpus(id, now, -1)
            self.waiting.add(id)
        for id in {bind.job for bind in decisions.starts}:
            if all(task.node is not None for task in self.jobs[id].tasks):
                if id in self.waiting:
                    self._count_gpus(id, now, 1)
                self.waiting.discard(id)
                self.starts[id] = number = self.starts.get(id, 0) + 1
                self.first_start.setdefault(id, now)
                heapq.heappush(self.ends, (now + self.by_id[id].duration, id, number))

    def _count_gpus(self, id: str, now: float, sign: int) -> None:
        arrival = self.by_id[id]
        if arrival.gpus:
            self.gpu_changes.append((now, arrival.project, sign * arrival.gpus * arrival.pods))

    def _result(self) -> ReplayResult:
        began = self.history[0].at
        finished = max(self.ended.values(), default=began)
        gpus = sum(node.gpu for node in self.cluster.nodes)
        return ReplayResult(
            workloads=tuple(
                ReplayedWorkload(
                    each, self.first_start.get(each.id), self.ended.get(each.id), self.evictions.get(each.id, 0)
                )
                for each in self.history
            ),
            gpu_seconds_used=self.used,
            gpu_seconds=gpus * (finished - began),
            decisions=self.decisions,
            repeats=self.repeats,
            gpu_changes=tuple(self.gpu_changes),
        )


def make_job(arrival: Arrival) -> Job:
    """The job of an arrival, as it waits for its start."""
    whole = int(arrival.gpus) if arrival.gpus >= 1 else 0
    portion = 0.0 if whole else arrival.gpus
    tasks = tuple(
        Task(
            id=f"{arrival.id}-{number}",
            gpu=whole,
            gpu_portion=portion,
            cpu_milli=arrival.cpu_milli,
            memory_bytes=arrival.memory_bytes,
        )
        for number in range(arrival.pods)
    )
    return Job(
        id=arrival.id,
        queue=arrival.project,
        tasks=tasks,
        min_available=arrival.pods,
        created=arrival.at,
        priority=arrival.priority,
        preemptible=arrival.preemptible,
    )
