"""The sentences of answers. Names that a caller may not see never get here."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.foresight.changes import (
    AddJobs,
    AddNodes,
    Change,
    DropConstraint,
    RemoveWorkload,
    SetNode,
    SetNodePools,
    SetPreemptible,
    SetPriority,
    SetRequest,
    SetShare,
    SetWorkers,
    find_queue,
)
from fairlead.foresight.workloads import Concerned, SnapshotWorkloads
from fairlead.model.english import enumerate_names
from fairlead.model.priority import PRIORITIES
from fairlead.scheduling.messages import format_amount
from fairlead.scheduling.model.snapshot import Snapshot

_SHOWN = 4
_CONSTRAINTS = {
    "nodeSelector": "the node selector {}",
    "nodeAffinity": "the required node affinity",
    "podAffinity": "the pod affinity",
    "podAntiAffinity": "the pod anti-affinity",
    "requiredTopology": "the required topology level",
    "resource": "the device type {}",
}
_NODE_ACTIONS = {
    "cordon": "Cordon {node}",
    "uncordon": "Uncordon {node}",
    "drain": "Drain {node}",
    "remove": "Remove {node}",
    "makeReady": "Make {node} ready again",
    "untaint": "Remove the taint {taint} from {node}",
}
_RESOURCES = {"gpu": "GPU", "cpu": "CPU", "memory": "memory"}
_UNITS = {"gpu": "GPUs", "cpu": "CPU cores", "memory": "GB memory"}


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_concerned(concerned: Concerned) -> str:
    """Names, at most a few, then how many more there are and how many of other projects."""
    names = [ref.workload for ref in concerned.workloads[:_SHOWN]]
    more = len(concerned.workloads) - len(names)
    if more:
        names.append(f"{more} more")
    if concerned.hidden:
        names.append(plural(concerned.hidden, "workload") + " of other projects")
    return enumerate_names(names)


def format_changes(snapshot: Snapshot, workloads: SnapshotWorkloads, changes: Sequence[Change]) -> str:
    """One sentence; equal verbs are said once."""
    sentences = [format_change(snapshot, workloads, change) for change in changes]
    first = sentences[0].split(" ", 1)[0]
    if len(sentences) > 1 and all(sentence.startswith(f"{first} ") for sentence in sentences):
        shown = [sentence.split(" ", 1)[1] for sentence in sentences[:_SHOWN]]
        more = len(sentences) - len(shown)
        return f"{first} {enumerate_names([*shown, *([f'{more} more'] if more else [])])}"
    return "; ".join(sentences)


def format_change(snapshot: Snapshot, workloads: SnapshotWorkloads, change: Change) -> str:
    if isinstance(change, SetShare):
        return _format_share(snapshot, workloads, change)
    if isinstance(change, AddNodes):
        gpus = next((node.gpu for node in snapshot.nodes if node.name == change.like), 0)
        return f"Add {plural(change.count, 'node')} like {change.like} ({plural(gpus, 'GPU')} each)"
    if isinstance(change, SetNode):
        return _NODE_ACTIONS[change.action].format(node=change.node, taint=change.taint)
    if isinstance(change, AddJobs):
        return f"Submit {plural(len(change.jobs), 'job')}"
    return _format_of_workload(workloads, change)


def _format_of_workload(
    workloads: SnapshotWorkloads,
    change: SetRequest | SetWorkers | SetNodePools | SetPriority | SetPreemptible | DropConstraint | RemoveWorkload,
) -> str:
    if isinstance(change, SetRequest):
        return _format_request(workloads, change)
    if isinstance(change, SetWorkers):
        jobs = workloads.jobs[workloads.find(change.workload)]
        size = max(sum(task.pod_set == change.pod_set for task in job.tasks) for job in jobs)
        kind = "" if change.pod_set == "default" else f"{change.pod_set} "
        return f"Use {plural(change.value, kind + 'pod')} instead of {size}"
    if isinstance(change, SetNodePools):
        return f"Use node pool {enumerate_names(change.node_pools)}"
    if isinstance(change, SetPriority):
        current = workloads.jobs[workloads.find(change.workload)][0].priority
        verb = "Lower" if change.value < current else "Raise"
        return f"{verb} its priority to {_priority_name(change.value)}"
    if isinstance(change, SetPreemptible):
        return "Make it preemptible" if change.value else "Make it non-preemptible"
    if isinstance(change, DropConstraint):
        kind, _, name = change.constraint.partition(":")
        return f"Leave out {_CONSTRAINTS[kind].format(name)}"
    return f"Suspend {workloads.name(workloads.find(change.workload))}"


def _format_request(workloads: SnapshotWorkloads, change: SetRequest) -> str:
    jobs = workloads.jobs[workloads.find(change.workload)]
    tasks = [task for job in jobs for task in job.tasks if task.status == "Pending"]
    value = int(change.value)
    if change.amount == "gpu":
        return f"Request {plural(value, 'GPU')} instead of {max(task.gpu for task in tasks)}"
    if change.amount == "gpuPortion":
        present = max(task.gpu_portion for task in tasks) or 1
        return f"Request {change.value:g} of a GPU instead of {present:g}"
    if change.amount == "gpuMemoryMib":
        return f"Request {value} MiB of GPU memory instead of {max(task.gpu_memory_mib for task in tasks)}"
    if change.amount == "cpuMilli":
        present = max(task.cpu_milli for task in tasks)
        return f"Request {format_amount(value, 'cpu')} CPU cores instead of {format_amount(present, 'cpu')}"
    present = max(task.memory_bytes for task in tasks)
    return f"Request {value >> 30} GiB memory instead of {present / (1 << 30):.3g}"


def _format_share(snapshot: Snapshot, workloads: SnapshotWorkloads, change: SetShare) -> str:
    known = find_queue(snapshot, change.queue)
    queue = next((q for q in snapshot.queues if q.name == known and change.node_pool in (None, q.node_pool)), None)
    name = workloads.projects.get(known, known)
    where = f" in node pool {change.node_pool}" if change.node_pool not in (None, "default") else ""
    field = "over_quota_weight" if change.field == "weight" else change.field
    present = getattr(getattr(queue.resources, change.resource), field) if queue is not None else 0
    if change.field == "weight":
        return f"Set the over-quota weight of {name}{where} to {change.value:g} (now {present:g})"
    unit, value = _UNITS[change.resource], format_amount(change.value, change.resource)
    verb = "Raise" if present >= 0 and (change.value > present or change.value < 0) else "Set"
    return (
        f"{verb} the {_RESOURCES[change.resource]} {change.field} of {name}{where} to {value} {unit} "
        f"(now {format_amount(present, change.resource)})"
    )


def _priority_name(value: int) -> str:
    name = next((name for name, known in PRIORITIES.items() if known == value), "")
    return f"{name} ({value})" if name else str(value)
