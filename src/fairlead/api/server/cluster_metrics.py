"""Metrics of nodes, queues, people and workloads for `/metrics`, from the memory of the loop.

The number of series is bounded: of users and workloads, only those that hold the most GPUs are shown one by one.
"""

from collections import Counter
from collections.abc import Iterator

from fairlead.api.server.metrics import HistogramSample, Sample
from fairlead.control.context import Context
from fairlead.control.decide.draft import WorkloadEntry
from fairlead.control.loop.board import Board
from fairlead.control.loop.reconcile import LoopMetrics
from fairlead.control.organization.inventory import pool_name
from fairlead.foresight.kai.agreement import Agreement
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Pod

#: The most users, and the most workloads, that have series of their own.
MAX_SHOWN = 100
OTHERS = "others"


def cluster_samples(context: Context, board: Board, metrics: LoopMetrics) -> Iterator[Sample | HistogramSample]:
    """All of them; each name in one piece."""
    entries = list(board.entries.values())
    yield from _node_samples(context, entries)
    yield from _owner_samples(context, entries)
    yield from _user_samples(entries)
    yield from _phase_samples(context, entries)
    yield from _workload_samples(context, entries)
    yield from _counter_samples(board, metrics)
    yield from _agreement_samples(context.agreement)


def _gpus(pod: Pod) -> float:
    return len(pod.gpu_devices) * pod.gpu_thousandths / 1000


def _node_samples(context: Context, entries: list[WorkloadEntry]) -> Iterator[Sample]:
    gpus_in_use: dict[str, float] = {}
    for entry in entries:
        for pod in entry.pods:
            gpus_in_use[pod.node] = gpus_in_use.get(pod.node, 0.0) + _gpus(pod)
    nodes = sorted(context.directory.nodes.values(), key=lambda node: node.name)
    labels = {node.name: {"node": node.name, "node_pool": pool_name(context, node)} for node in nodes}
    for node in nodes:
        yield Sample("fairlead_node_gpus", len(node.gpus), labels[node.name], "GPUs of a node")
    for node in nodes:
        text = "GPUs of a node that pods hold, parts included"
        yield Sample("fairlead_node_gpus_allocated", gpus_in_use.get(node.name, 0.0), labels[node.name], text)
    for node in nodes:
        yield Sample("fairlead_node_ready", float(node.ready), labels[node.name], "1 if a node is ready, otherwise 0")


def _owner_labels(owner: Department) -> dict[str, str]:
    if isinstance(owner, Project):
        return {"department": owner.department_name, "project": owner.name}
    return {"department": owner.name}


def _owner_samples(context: Context, entries: list[WorkloadEntry]) -> Iterator[Sample]:
    directory = context.directory
    gpus_in_use: dict[tuple[str, str], float] = {}
    for entry in entries:
        for pod in entry.pods:
            for queue in (f"project-{entry.workload.project_id}", f"department-{entry.workload.department_id}"):
                gpus_in_use[queue, pod.node_pool] = gpus_in_use.get((queue, pod.node_pool), 0.0) + _gpus(pod)
    shares = {(share.queue, share.node_pool): share.fair_share[0] for share in context.fair_shares}
    for what, owners in (("project", directory.projects), ("department", directory.departments)):
        rows = [
            (f"{what}-{owner.id}", quota, {**_owner_labels(owner), "node_pool": quota.node_pool_name})
            for owner in owners.values()
            for quota in owner.resources
        ]
        for _, quota, labels in rows:
            if quota.gpu.deserved is not None:
                text = f"Guaranteed GPUs of a {what}; a {what} with an unlimited quota has no series"
                yield Sample(f"fairlead_{what}_gpu_quota", quota.gpu.deserved, labels, text)
        for queue, quota, labels in rows:
            text = f"GPUs that pods of a {what} hold, parts included"
            yield Sample(
                f"fairlead_{what}_gpus_allocated", gpus_in_use.get((queue, quota.node_pool_name), 0.0), labels, text
            )
        for queue, quota, labels in rows:
            if (queue, quota.node_pool_name) in shares:
                text = f"The fair share of a {what} in GPUs, as of the last scheduling cycle"
                yield Sample(f"fairlead_{what}_gpu_fair_share", shares[queue, quota.node_pool_name], labels, text)


def _user_samples(entries: list[WorkloadEntry]) -> Iterator[Sample]:
    gpus_in_use: dict[str, float] = {}
    for entry in entries:
        gpus = sum(_gpus(pod) for pod in entry.pods)
        if gpus:
            gpus_in_use[entry.workload.created_by] = gpus_in_use.get(entry.workload.created_by, 0.0) + gpus
    ranked = sorted(gpus_in_use.items(), key=lambda item: (-item[1], item[0]))
    text = f"GPUs that a user's pods hold; users beyond the first {MAX_SHOWN} are summed up as `{OTHERS}`"
    for user, gpus in ranked[:MAX_SHOWN]:
        yield Sample("fairlead_user_gpus_allocated", gpus, {"user": user}, text)
    if ranked[MAX_SHOWN:]:
        rest = sum(gpus for _, gpus in ranked[MAX_SHOWN:])
        yield Sample("fairlead_user_gpus_allocated", rest, {"user": OTHERS}, text)


def _phase_samples(context: Context, entries: list[WorkloadEntry]) -> Iterator[Sample]:
    phases = Counter(entry.workload.phase.value for entry in entries)
    for phase, number in sorted(phases.items()):
        yield Sample("fairlead_workloads", number, {"phase": phase}, "Unfinished workloads by phase")
    waiting = Counter(entry.workload.project_id for entry in entries if entry.workload.phase is Phase.PENDING)
    projects = list(context.directory.projects.values())
    for project in projects:
        text = "Workloads of a project that wait to start"
        yield Sample("fairlead_queue_length", waiting[project.id], _owner_labels(project), text)
    oldest: dict[str, int] = {}
    now = context.clock()
    for entry in entries:
        workload = entry.workload
        if workload.phase is Phase.PENDING:
            waited = now - workload.phase_updated_at
            oldest[workload.project_id] = max(oldest.get(workload.project_id, 0), waited)
    for project in projects:
        text = "How long the longest-waiting workload of a project has waited, in seconds; 0 if none waits"
        yield Sample(
            "fairlead_queue_longest_wait_seconds", oldest.get(project.id, 0) / 1000, _owner_labels(project), text
        )


def _workload_samples(context: Context, entries: list[WorkloadEntry]) -> Iterator[Sample]:
    running = [entry for entry in entries if entry.pods]
    running.sort(key=lambda entry: (-sum(_gpus(pod) for pod in entry.pods), entry.workload.id))
    shown = [
        (entry, {"project": entry.workload.project_name, "workload": entry.workload.name})
        for entry in running[:MAX_SHOWN]
    ]
    which = f"of the {MAX_SHOWN} workloads with the most GPUs"
    for entry, labels in shown:
        gpus = sum(_gpus(pod) for pod in entry.pods)
        yield Sample("fairlead_workload_gpus_allocated", gpus, labels, f"GPUs that pods hold, {which}")
    usage_samples, now = context.all_clusters.usage_samples, context.clock()
    if usage_samples is None:
        return
    for entry, labels in shown:
        cores = [usage_samples.of(pod.id).cores(now) for pod in entry.pods]
        used = [value for value in cores if value is not None]
        if used:
            yield Sample("fairlead_workload_cpu_cores", sum(used), labels, f"CPU cores in use, {which}")
    for entry, labels in shown:
        sizes = [usage_samples.of(pod.id).memory(now) for pod in entry.pods]
        used = [value for value in sizes if value is not None]
        if used:
            yield Sample("fairlead_workload_memory_bytes", sum(used), labels, f"Memory in use, {which}")
    for entry, labels in shown:
        busy = [usage_samples.of(pod.id).gpu_percent(now) for pod in entry.pods if pod.gpu_devices]
        used = [value for value in busy if value is not None]
        if used:
            text = f"How busy its GPUs are, from 0 to 1, {which}"
            yield Sample("fairlead_workload_gpu_utilization", sum(used) / len(used) / 100, labels, text)


def _agreement_samples(agreement: Agreement) -> Iterator[Sample]:
    text = "Workloads that KAI and Fairlead's scheduler both decided on, by whether they decided the same"
    for what, number, agreed in (
        ("placement", agreement.placements, agreement.equal_placements),
        ("victim", agreement.victims, agreement.equal_victims),
    ):
        if number:
            for result, value in (("agree", agreed), ("differ", number - agreed)):
                labels = {"what": what, "result": result}
                yield Sample("fairlead_kai_comparisons_total", value, labels, text, "counter")


def _counter_samples(board: Board, metrics: LoopMetrics) -> Iterator[Sample | HistogramSample]:
    counters = board.counters
    yield HistogramSample(
        "fairlead_workload_wait_seconds", counters.waits, "Time that workloads waited before their first start"
    )
    yield HistogramSample("fairlead_scheduling_cycle_seconds", metrics.scheduling, "Duration of scheduling cycles")
    for rule, number in sorted(counters.evictions.items()):
        yield Sample("fairlead_evictions_total", number, {"rule": rule}, "Evictions by rule", "counter")
    for phase, number in sorted(counters.ended.items()):
        yield Sample("fairlead_workloads_ended_total", number, {"phase": phase}, "Workloads that ended", "counter")
