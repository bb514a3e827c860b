"""How good a node is for a task: a sum of scores, highest first, ties by name.

The plain way, for one task and a list of nodes. `index` keeps the same order for a request class without scoring
every node again.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_CPU
from fairlead.scheduling.model.snapshot import Placement
from fairlead.scheduling.placement import gpus
from fairlead.scheduling.placement.predicates import fits_now

NOMINATED = 10_000_000
GPU_SHARING = 10_000
AVAILABLE = 1_000
CPU_NODE = 10
DENSEST = 9


def base_score(task: LiveTask, node: LiveNode, placement: Placement) -> int:
    """Everything but topology, pod affinity and packing, of a node that has room now or later."""
    score = 0
    if task.spec.nominated_node == node.name:
        score += NOMINATED
    if node.groups and not placement.spreads_devices and gpus.has_candidate(node, task):
        score += GPU_SHARING
    if not node.unsettled or fits_now(task, node):
        score += AVAILABLE
    if task.kind == KIND_CPU and node.gpu_count == 0 and not node.spec.mig:
        score += CPU_NODE
    return score


def urgent_score(task: LiveTask, node: LiveNode) -> int:
    """What goes before any packing: the nominated node, and one where the task can start now; it has room in time."""
    score = AVAILABLE if not node.unsettled or fits_now(task, node) else 0
    return score + NOMINATED if task.spec.nominated_node == node.name else score


def free(task: LiveTask, node: LiveNode) -> int:
    """Idle and releasing amount of what the placement strategy looks at."""
    if task.kind == KIND_CPU:
        return node.idle_cpu + node.releasing_cpu
    return node.idle_gpu + node.releasing_gpu


def has_any(task: LiveTask, node: LiveNode) -> bool:
    return bool(node.allocatable_cpu if task.kind == KIND_CPU else node.gpu_count)


def packing_range(task: LiveTask, nodes: Sequence[LiveNode]) -> tuple[float, float]:
    """Least and most that is free among nodes that have the resource at all."""
    amounts = [free(task, node) for node in nodes if has_any(task, node)]
    return (min(amounts), max(0, *amounts)) if amounts else (0, 0)


def packing_score(task: LiveTask, node: LiveNode, low: float, high: float) -> float:
    """9 for the fullest node down to 0 for the emptiest."""
    if high == 0 or not has_any(task, node):
        return 0
    if low == high:
        return DENSEST
    return DENSEST * (1 - (free(task, node) - low) / (high - low))


def spreading_score(task: LiveTask, node: LiveNode) -> float:
    """Free part of the node, shared GPUs and MIG weights included."""
    if task.kind == KIND_CPU:
        return free(task, node) / node.allocatable_cpu if node.allocatable_cpu else 0
    count = gpu_count_label(node)
    return gpus.free_gpus(node) / count if count else 0


def gpu_count_label(node: LiveNode) -> int:
    label = node.spec.labels.get("nvidia.com/gpu.count")
    return int(label) if label is not None and label.isdigit() else node.gpu_count
