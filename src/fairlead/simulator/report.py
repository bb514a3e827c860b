"""What a replayed history looks like: waits by project, allocation, evictions, winners and losers; and capacity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fairlead.foresight.changes import AddNodes, Change, SetNode, SetShare, apply
from fairlead.foresight.runtimes import quantile
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling.model.snapshot import Plain, Queue, QueueShares, Share, Snapshot, SnapshotNode
from fairlead.simulator.history import Arrival
from fairlead.simulator.replay import ReplayedWorkload, ReplayResult, replay


class ProjectReport(Plain, frozen=True, kw_only=True, omit_defaults=False):
    project: str
    workloads: int
    #: Seconds from submission to the first start.
    wait_p50: float
    wait_p90: float
    gpu_hours: float
    evictions: int
    never_started: int


class HistoryReport(Plain, frozen=True, kw_only=True, omit_defaults=False):
    projects: tuple[ProjectReport, ...]
    workloads: int
    wait_p50: float
    wait_p90: float
    #: Part of the GPU time that was in use.
    allocation: float
    evictions: int
    decisions: int


class HistoryAnswer(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """The same history without and with changes; projects that wait less at p90 win."""

    before: HistoryReport
    after: HistoryReport | None = None
    winners: tuple[str, ...] = ()
    losers: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = (
        "Workloads are submitted at the recorded times and run as long as recorded; evicted ones start over.",
        "Pods start and stop at once.",
    )


def make_cluster(history: Sequence[Arrival], nodes: int, gpus: int) -> Snapshot:
    """Equal nodes, and a queue for each project with an equal share of the GPUs as its quota."""
    free = Share(limit=-1, quota=-1)
    projects = sorted({arrival.project for arrival in history})
    quota = Share(limit=-1, quota=nodes * gpus / len(projects), over_quota_weight=1)
    return Snapshot(
        now=0,
        nodes=tuple(
            SnapshotNode(
                name=f"node-{number:04d}",
                gpu=gpus,
                cpu_milli=128_000,
                memory_bytes=1 << 40,
                gpu_memory_mib=80_000,
            )
            for number in range(1, nodes + 1)
        ),
        queues=tuple(
            Queue(name=name, resources=QueueShares(gpu=quota, cpu=free, memory=free), created=number)
            for number, name in enumerate(projects)
        ),
    )


def ask_history(cluster: Snapshot, history: Sequence[Arrival], changes: Sequence[Change] = ()) -> HistoryAnswer:
    """Replay it as it was and with the changes; raises UnknownName if a change is not one of a history."""
    for change in changes:
        if not isinstance(change, SetShare | AddNodes | SetNode):
            raise UnknownName("A history can be replayed with other quotas, limits, weights and nodes only.")
    changed = apply(cluster, changes)
    before = summarize(replay(cluster, history))
    if not changes:
        return HistoryAnswer(before=before)
    after = summarize(replay(changed, history))
    was = {project.project: project.wait_p90 for project in before.projects}
    return HistoryAnswer(
        before=before,
        after=after,
        winners=tuple(each.project for each in after.projects if each.wait_p90 < was[each.project]),
        losers=tuple(each.project for each in after.projects if each.wait_p90 > was[each.project]),
    )


def summarize(played: ReplayResult) -> HistoryReport:
    by_project: dict[str, list[ReplayedWorkload]] = defaultdict(list)
    for workload in played.workloads:
        by_project[workload.arrival.project].append(workload)
    waits = [wait_of(workload) for workload in played.workloads]
    return HistoryReport(
        projects=tuple(_project(name, by_project[name]) for name in sorted(by_project)),
        workloads=len(played.workloads),
        wait_p50=quantile(waits, 0.5),
        wait_p90=quantile(waits, 0.9),
        allocation=round(played.gpu_seconds_used / played.gpu_seconds, 6) if played.gpu_seconds else 0,
        evictions=sum(workload.evictions for workload in played.workloads),
        decisions=played.decisions,
    )


def wait_of(workload: ReplayedWorkload) -> float:
    """Seconds until its first start; infinite if it never started."""
    return float("inf") if workload.start is None else workload.start - workload.arrival.at


def _project(name: str, workloads: Sequence[ReplayedWorkload]) -> ProjectReport:
    waits = [wait_of(workload) for workload in workloads]
    hours = sum(each.arrival.duration * each.arrival.gpus * each.arrival.pods for each in workloads) / 3600
    return ProjectReport(
        project=name,
        workloads=len(workloads),
        wait_p50=quantile(waits, 0.5),
        wait_p90=quantile(waits, 0.9),
        gpu_hours=round(hours, 3),
        evictions=sum(workload.evictions for workload in workloads),
        never_started=sum(workload.start is None for workload in workloads),
    )


def find_capacity(
    cluster: Snapshot, history: Sequence[Arrival], project: str | None, part: float, most_wait: float, most: int
) -> tuple[int | None, Mapping[int, float]]:
    """The fewest nodes like the first one to add so that the wait's quantile is at most this; None beyond `most`.

    Also the waits of all numbers that were tried. One node less was tried and does not reach it.
    """
    tried: dict[int, float] = {}

    def reaches(count: int) -> bool:
        like = cluster.nodes[0].name
        changed = apply(cluster, [AddNodes(like=like, count=count)]) if count else cluster
        played = replay(changed, history)
        chosen = [each for each in played.workloads if project in (None, each.arrival.project)]
        tried[count] = quantile([wait_of(each) for each in chosen], part)
        return tried[count] <= most_wait

    low, high = -1, 0
    while not reaches(high):
        if high >= most:
            return None, tried
        low, high = high, min(max(1, 2 * high), most)
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high, tried
