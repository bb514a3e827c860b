"""Whether a node can take a task, apart from score: what never changes in a cycle, and what placements change.

`static_cause` is judged once per request class and node, `fits_now` and `fits_later` with every placement.
"""

from __future__ import annotations

from fairlead.scheduling.model import snapshot as plain
from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_CPU, KIND_MEMORY, KIND_MIG, KIND_PORTION, KIND_WHOLE
from fairlead.scheduling.placement import gpus


def static_cause(task: LiveTask, node: LiveNode) -> str | None:
    """None if the node may take such tasks at all, else why not."""
    request_class = task.request_class
    if request_class.undemanding and node.open_to_all:
        return None
    try:
        return request_class.static[node.index]
    except KeyError:
        cause = request_class.static[node.index] = _static_cause(task, node)
        return cause


def _static_cause(task: LiveTask, node: LiveNode) -> str | None:
    spec = node.spec
    if not spec.ready:
        return "notReady"
    if spec.unschedulable:
        return "cordoned"
    if not _tolerates(task.spec, spec):
        return "taint"
    if any(spec.labels.get(key) != value for key, value in task.spec.node_selector.items()):
        return "nodeSelector"
    if task.spec.node_affinity and not any(
        all(matches(requirement, spec.labels) for requirement in term) and term for term in task.spec.node_affinity
    ):
        return "nodeAffinity"
    if task.spec.legacy_mig or not _kind_allowed(task, node):
        return "mig"
    if task.kind == KIND_MEMORY and not node.gpu_memory_known:
        return "gpuMemoryUnknown"
    if not gpus.share_is_valid(node, task):
        return "gpuMemory"
    return None


def _kind_allowed(task: LiveTask, node: LiveNode) -> bool:
    """MIG nodes: mixed takes MIG tasks only, single whole GPUs only; tasks without GPUs go anywhere."""
    if task.kind == KIND_CPU:
        return True
    if not node.is_mig:
        return task.kind != KIND_MIG
    if task.kind == KIND_MIG and node.spec.mig_strategy == "single":
        return False
    if node.spec.mig_strategy == "single":
        return task.kind == KIND_WHOLE
    if node.spec.mig_strategy == "mixed":
        return task.kind == KIND_MIG
    return True


def _tolerates(task: plain.Task, node: plain.SnapshotNode) -> bool:
    for taint in node.taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(_tolerated(toleration, taint) for toleration in task.tolerations):
            return False
    return True


def _tolerated(toleration: plain.TaskToleration, taint: plain.NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def matches(requirement: plain.Requirement, labels: dict[str, str]) -> bool:
    """One match expression against labels, as Kubernetes reads it."""
    value = labels.get(requirement.key)
    operator = requirement.operator
    if operator == "In":
        return value is not None and value in requirement.values
    if operator == "NotIn":
        return value is None or value not in requirement.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or len(requirement.values) != 1:
        return False
    try:
        number, bound = int(value), int(requirement.values[0])
    except ValueError:
        return False
    return number > bound if operator == "Gt" else number < bound


def fits_now(task: LiveTask, node: LiveNode) -> bool:
    """Enough is idle at this moment. For shared GPUs, room in a used one counts even if it is still being released."""
    if task.cpu > node.idle_cpu or task.memory > node.idle_memory or node.idle_pods < 1:
        return False
    if task.ext:
        idle = node.idle_ext
        for name, amount in task.ext:
            if amount > idle.get(name, 0):
                return False
    if task.devices:
        return gpus.has_room(node, task, node.idle_gpu)
    return task.gpu <= node.idle_gpu


def fits_later(task: LiveTask, node: LiveNode) -> bool:
    """Enough is idle or being released and not promised to others."""
    if (
        task.cpu > node.idle_cpu + node.releasing_cpu
        or task.memory > node.idle_memory + node.releasing_memory
        or node.idle_pods + node.releasing_pods < 1
    ):
        return False
    whole = node.idle_gpu + node.releasing_gpu
    if task.ext:
        if node.legacy_mig and task.kind == KIND_MIG:
            return False
        for name, amount in task.ext:
            if amount > node.idle_ext.get(name, 0) + node.releasing_ext.get(name, 0):
                return False
    if task.devices:
        return gpus.has_room(node, task, whole) and _has_pod_slots(task, node)
    return task.gpu <= whole


def could_stay(task: LiveTask) -> bool:
    """Whether a task that is being released still has room where it is: others may have been promised its place."""
    return fits_later(task, task.home) and gpus.could_stay(task.home, task)


def _has_pod_slots(task: LiveTask, node: LiveNode) -> bool:
    """A shared GPU needs a slot for the pod that reserves it too.

    KAI takes every group whose id is not a plain number for a new one, so only numbered groups do with one slot.
    """
    if node.idle_pods + node.releasing_pods >= 2:
        return True
    return all(group is not None and group.id.isdigit() for group in gpus.pick(node, task, spread=False))


def lacking(task: LiveTask, node: LiveNode, free_gpus: float) -> tuple[str, float, float, float]:
    """First resource that keeps a fitting task off: name, asked, free (idle and released), and what the node has."""
    if task.kind in (KIND_WHOLE, KIND_PORTION, KIND_MEMORY):
        whole = node.idle_gpu + node.releasing_gpu
        if task.devices:
            if task.devices > node.gpu_count:
                return ("gpu", task.devices, free_gpus, node.gpu_count)
            if not gpus.has_room(node, task, whole):
                requested = task.portion if task.kind == KIND_PORTION else task.gpu_memory / node.gpu_memory
                return ("gpu", requested * task.devices, free_gpus, node.gpu_count)
        elif task.gpu > whole:
            return ("gpu", task.gpu, free_gpus, node.gpu_count)
    for name, amount in task.ext:
        free = node.idle_ext.get(name, 0) + node.releasing_ext.get(name, 0)
        if amount > free:
            return (name, amount, free, _extended_total(node, name))
    free_cpu = node.idle_cpu + node.releasing_cpu
    if task.cpu > free_cpu:
        return ("cpu", task.cpu, free_cpu, node.allocatable_cpu)
    free_memory = node.idle_memory + node.releasing_memory
    if task.memory > free_memory:
        return ("memory", task.memory, free_memory, node.allocatable_memory)
    return ("pods", 1, node.idle_pods + node.releasing_pods, node.allocatable_pods)


def _extended_total(node: LiveNode, name: str) -> int:
    if name.startswith("nvidia.com/mig-"):
        return node.spec.mig.get(name.removeprefix("nvidia.com/mig-"), 0)
    return node.spec.extended.get(name, 0)
