"""What a replayed history looks like: waits by project, allocation, evictions, winners and losers; and capacity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from fairlead.foresight.changes import AddNodes, Change, SetNode, SetShare, apply
from fairlead.foresight.runtimes import quantile
from fairlead.foresight.workloads import UnknownName
from fairlead.scheduling.model.snapshot import DEFAULT_POOL, Plain, Queue, QueueShares, Share, Snapshot, SnapshotNode
from fairlead.simulator.history import Arrival
from fairlead.simulator.lending import Lending, find_lending, project_queues
from fairlead.simulator.replay import ReplayedWorkload, ReplayResult, replay


class ProjectReport(Plain, frozen=True, kw_only=True, omit_defaults=False):
    project: str
    #: 0 for a project that submitted nothing; it may still have lent.
    workloads: int
    #: Seconds from submission to the first start.
    wait_p50: float
    wait_p90: float
    gpu_hours: float
    #: Above its quota, the time that evicted workloads lost included.
    borrowed_gpu_hours: float
    #: Of its quota, while it did not use it.
    lent_gpu_hours: float
    evictions: int
    never_started: int


class HistoryReport(Plain, frozen=True, kw_only=True, omit_defaults=False):
    projects: tuple[ProjectReport, ...]
    workloads: int
    wait_p50: float
    wait_p90: float
    #: Part of the GPU time that was in use.
    allocation: float
    #: What projects borrowed, and what others lent of it; the rest was in nobody's quota.
    borrowed_gpu_hours: float
    lent_gpu_hours: float
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


def name_projects(cluster: Snapshot, projects: Collection[str]) -> Snapshot:
    """The cluster with projects called as users call them, except those whose queue's own name is in the history."""
    known, taken = project_queues(cluster), {queue.name for queue in cluster.queues}
    shown = Counter(queue.display_name for queue in known.values())
    names = {
        name: queue.display_name
        for name, queue in known.items()
        if name not in projects and shown[queue.display_name] == 1 and queue.display_name not in taken | {""}
    }
    queues = tuple(replace(queue, name=names.get(queue.name, queue.name)) for queue in cluster.queues)
    with_names: Snapshot = replace(cluster, queues=queues, jobs=())
    return with_names


def ask_history(cluster: Snapshot, history: Sequence[Arrival], changes: Sequence[Change] = ()) -> HistoryAnswer:
    """Replay it as it was and with the changes; raises UnknownName if a change is not one of a history."""
    for change in changes:
        if not isinstance(change, SetShare | AddNodes | SetNode):
            raise UnknownName("A history can be replayed with other quotas, limits, weights and nodes only.")
    changed = apply(cluster, changes)
    before = summarize(cluster, replay(cluster, history))
    if not changes:
        return HistoryAnswer(before=before)
    after = summarize(changed, replay(changed, history))
    was = {project.project: project.wait_p90 for project in before.projects}
    return HistoryAnswer(
        before=before,
        after=after,
        winners=tuple(each.project for each in after.projects if each.wait_p90 < was[each.project]),
        losers=tuple(each.project for each in after.projects if each.wait_p90 > was[each.project]),
    )


def summarize(cluster: Snapshot, played: ReplayResult) -> HistoryReport:
    lending = find_lending(cluster, played)
    by_project: dict[str, list[ReplayedWorkload]] = {name: [] for name in lending}
    for workload in played.workloads:
        by_project[workload.arrival.project].append(workload)
    waits = [wait_of(workload) for workload in played.workloads]
    return HistoryReport(
        projects=tuple(_project(name, by_project[name], lending[name]) for name in sorted(by_project)),
        workloads=len(played.workloads),
        wait_p50=quantile(waits, 0.5),
        wait_p90=quantile(waits, 0.9),
        allocation=round(played.gpu_seconds_used / played.gpu_seconds, 6) if played.gpu_seconds else 0,
        borrowed_gpu_hours=_hours(sum(each.borrowed for each in lending.values())),
        lent_gpu_hours=_hours(sum(each.lent for each in lending.values())),
        evictions=sum(workload.evictions for workload in played.workloads),
        decisions=played.decisions,
    )


def wait_of(workload: ReplayedWorkload) -> float:
    """Seconds until its first start; infinite if it never started."""
    return float("inf") if workload.start is None else workload.start - workload.arrival.at


def _hours(seconds: float) -> float:
    return round(seconds / 3600, 3)


def _project(name: str, workloads: Sequence[ReplayedWorkload], lending: Lending) -> ProjectReport:
    waits = [wait_of(workload) for workload in workloads] or [0.0]
    used = sum(each.arrival.duration * each.arrival.gpus * each.arrival.pods for each in workloads)
    return ProjectReport(
        project=name,
        workloads=len(workloads),
        wait_p50=quantile(waits, 0.5),
        wait_p90=quantile(waits, 0.9),
        gpu_hours=_hours(used),
        borrowed_gpu_hours=_hours(lending.borrowed),
        lent_gpu_hours=_hours(lending.lent),
        evictions=sum(workload.evictions for workload in workloads),
        never_started=sum(workload.start is None for workload in workloads),
    )


class WaitTarget(NamedTuple):
    """A quantile of the waits of a project that is not to exceed so many seconds."""

    #: None for all projects.
    project: str | None
    part: float
    seconds: float


def more_nodes(cluster: Snapshot, like: str) -> Callable[[int], Change]:
    """Nodes like this one; raises UnknownName if there is no such node."""
    apply(cluster, [AddNodes(like=like, count=1)])
    return lambda count: AddNodes(like=like, count=count)


def more_quota(cluster: Snapshot, project: str) -> Callable[[int], SetShare]:
    """GPUs more than the project's quota; raises UnknownName if the quota is unlimited already."""
    quota = project_queues(cluster)[project].resources.gpu.quota
    if quota < 0:
        raise UnknownName(f"The GPU quota of '{project}' is unlimited already.")
    return lambda count: SetShare(queue=project, field="quota", value=quota + count, node_pool=DEFAULT_POOL)


def find_capacity(
    cluster: Snapshot, history: Sequence[Arrival], target: WaitTarget, more: Callable[[int], Change], max_count: int
) -> tuple[int | None, Mapping[int, float]]:
    """The smallest number for `more` that reaches the target, 0 if nothing is needed; None beyond `most`.

    Also the waits of all numbers that were tried. One less was tried and does not reach it.
    """
    tried: dict[int, float] = {}

    def reaches(count: int) -> bool:
        changed = apply(cluster, [more(count)]) if count else cluster
        played = replay(changed, history)
        chosen = [each for each in played.workloads if target.project in (None, each.arrival.project)]
        tried[count] = quantile([wait_of(each) for each in chosen], target.part)
        return tried[count] <= target.seconds

    low, high = -1, 0
    while not reaches(high):
        if high >= max_count:
            return None, tried
        low, high = high, min(max(1, 2 * high), max_count)
    while high - low > 1:
        middle = (low + high) // 2
        if reaches(middle):
            high = middle
        else:
            low = middle
    return high, tried
