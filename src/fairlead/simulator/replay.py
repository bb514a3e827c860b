"""Plays a history on a cluster: arrivals and ends in the order of their times, `decide` after each that matters.

The plain way is `decide` on the whole cluster after every arrival and end. Two calls are spared, because their result
is known: an end while nothing waits changes nothing; and newcomers for whom there is room while nothing waits take it
by `allocate` alone, which looks at nodes and not at who runs on them.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.foresight.outlook import step
from fairlead.scheduling.cycle import decide
from fairlead.scheduling.model.decisions import Bind, Decisions
from fairlead.scheduling.model.snapshot import ForeignUsage, Job, Snapshot, Task
from fairlead.simulator.history import Arrival

_Places = frozenset[tuple[float | None, float | None, str, str, tuple[int, ...]]]


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
    #: Calls of `decide` on the whole cluster, and on newcomers alone.
    decisions: int
    quick_decisions: int
    #: Moments at which evicted workloads evicted each other in turn.
    repeats: int


def replay(cluster: Snapshot, history: Sequence[Arrival], *, is_plain: bool = False) -> ReplayResult:
    """`cluster`: nodes, queues and settings; its own jobs are left out. Queues are named as the projects are.

    `is_plain` spares no call of `decide`; tests compare both ways.
    """
    played = _Replay(cluster, history)
    played.is_simple = played.is_simple and not is_plain
    return played.run()


class _Replay:
    def __init__(self, cluster: Snapshot, history: Sequence[Arrival]) -> None:
        self.cluster: Snapshot = replace(cluster, jobs=())
        self.history = history
        self.jobs: dict[str, Job] = {}
        self.waiting: set[str] = set()
        self.by_id = {arrival.id: arrival for arrival in history}
        #: End time, id, and the number of the start that it belongs to.
        self.ends: list[tuple[float, str, int]] = []
        self.starts: dict[str, int] = {}
        self.first_start: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.evictions: dict[str, int] = {}
        self.usage = {node.name: [0, 0, 0, 0] for node in cluster.nodes}
        #: Portions of GPUs make nodes differ by more than sums, and limits stop newcomers although there is room.
        self.is_simple = all(arrival.gpus == int(arrival.gpus) for arrival in history) and not any(
            share.limit >= 0
            for queue in cluster.queues
            for share in (queue.resources.gpu, queue.resources.cpu, queue.resources.memory)
        )
        self.decisions = self.quick_decisions = self.repeats = 0
        self.used = 0.0

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
                newcomers.append(_job(self.history[position]))
                position += 1
            self._settle(now, newcomers, has_ended)
        return self._result()

    def _end(self, now: float) -> bool:
        has_ended = False
        while self.ends and self.ends[0][0] <= now:
            at, id, number = heapq.heappop(self.ends)
            if self.starts.get(id) == number and id in self.jobs and id not in self.waiting:
                job = self.jobs.pop(id)
                self._book(job, -1)
                self.ended[id] = at
                self.used += self.by_id[id].duration * self.by_id[id].gpus * self.by_id[id].pods
                has_ended = True
        return has_ended

    def _settle(self, now: float, newcomers: list[Job], has_ended: bool) -> None:
        """Place newcomers quickly if nothing waits; else, or if one finds no room, ask about the whole cluster."""
        if not self.waiting and newcomers and self.is_simple and self._place_quickly(now, newcomers):
            return
        for job in newcomers:
            self.jobs[job.id] = job
            self.waiting.add(job.id)
        if self.waiting and (newcomers or has_ended):
            self._cycle(now)

    def _place_quickly(self, now: float, newcomers: list[Job]) -> bool:
        nodes = tuple(
            replace(node, foreign=ForeignUsage(gpu=used[0], cpu_milli=used[1], memory_bytes=used[2], pods=used[3]))
            for node in self.cluster.nodes
            if (used := self.usage[node.name])
        )
        settings = replace(self.cluster.settings, actions=("allocate",))
        decisions = decide(replace(self.cluster, nodes=nodes, jobs=tuple(newcomers), now=now, settings=settings))
        self.quick_decisions += 1
        if len(decisions.binds) < sum(len(job.tasks) for job in newcomers):
            return False
        for job in newcomers:
            self.jobs[job.id] = job
        self._start(now, decisions.binds)
        return True

    def _cycle(self, now: float) -> None:
        """Cycles at this moment until nothing changes, or until workloads that swap places are where they were."""
        seen: set[_Places] = set()
        while True:
            snapshot: Snapshot = replace(self.cluster, jobs=tuple(self.jobs.values()), now=now)
            decisions = decide(snapshot)
            self.decisions += 1
            if not decisions.binds and not decisions.evictions:
                return
            self._carry_out(snapshot, decisions, now)
            # Without an eviction there is less to place each time, so only evictions can lead back.
            if decisions.evictions:
                places = self._places()
                if places in seen:
                    self.repeats += 1
                    return
                seen.add(places)

    def _places(self) -> _Places:
        """All of the state that a cycle changes."""
        return frozenset(
            (job.last_start, job.last_eviction, task.id, task.node, task.devices)
            for job in self.jobs.values()
            for task in job.tasks
            if task.node is not None
        )

    def _carry_out(self, snapshot: Snapshot, decisions: Decisions, now: float) -> None:
        lost = {eviction.job for eviction in decisions.evictions if not eviction.never_started}
        for id in lost:
            self._book(self.jobs[id], -1)
            self.evictions[id] = self.evictions.get(id, 0) + 1
        for job in step(snapshot, decisions, now).jobs:
            self.jobs[job.id] = job
        for id in lost:
            self._book(self.jobs[id], 1)
            self.starts[id] = self.starts.get(id, 0) + 1
            self.waiting.add(id)
        self._start(now, decisions.binds)

    def _start(self, now: float, binds: Sequence[Bind]) -> None:
        places: dict[str, dict[str, Bind]] = {}
        for bind in binds:
            places.setdefault(bind.job, {})[bind.task] = bind
        for id, of_job in places.items():
            self.jobs[id] = job = _placed(self.jobs[id], of_job, now)
            self._book(job, 1, of_job)
            if all(task.node is not None for task in job.tasks):
                self.waiting.discard(id)
                self.starts[id] = number = self.starts.get(id, 0) + 1
                self.first_start.setdefault(id, now)
                heapq.heappush(self.ends, (now + self.by_id[id].duration, id, number))

    def _book(self, job: Job, sign: int, only: dict[str, Bind] | None = None) -> None:
        for task in job.tasks:
            if task.node is not None and (only is None or task.id in only):
                used = self.usage[task.node]
                for place, amount in enumerate((task.gpu, task.cpu_milli, task.memory_bytes, 1)):
                    used[place] += sign * amount

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
            quick_decisions=self.quick_decisions,
            repeats=self.repeats,
        )


def _job(arrival: Arrival) -> Job:
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


def _placed(job: Job, binds: dict[str, Bind], now: float) -> Job:
    tasks = tuple(
        replace(
            task,
            status="Running",
            node=binds[task.id].node,
            devices=binds[task.id].devices,
            gpu_groups=binds[task.id].gpu_groups,
        )
        if task.id in binds
        else task
        for task in job.tasks
    )
    placed: Job = replace(job, tasks=tasks, last_start=now)
    return placed
