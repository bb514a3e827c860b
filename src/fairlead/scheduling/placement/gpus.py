"""Shared GPUs of a node: which can take a task, in which order, and whether now or only later."""

from __future__ import annotations

import math

from fairlead.scheduling.model.live import LiveNode, LiveTask
from fairlead.scheduling.model.requests import KIND_CPU, KIND_MEMORY, KIND_MIG, KIND_PORTION, mig_resource, mig_weight
from fairlead.scheduling.model.shared_gpu import GpuGroup

#: Stands for a GPU that nobody shares yet.
WHOLE = ""


def takes(node: LiveNode, group: GpuGroup, memory: int) -> bool:
    """A group in use that has room, counting what leaves it; one that is leaving entirely is not taken again."""
    releasing = group.releasing - group.pipelined
    return (
        group.allocated + group.pipelined != 0
        and node.gpu_memory - group.allocated + releasing - memory >= 0
        and group.allocated != releasing
    )


def candidates(node: LiveNode, task: LiveTask) -> list[GpuGroup]:
    memory = node.shared_memory(task)
    return [group for group in node.groups.values() if takes(node, group, memory)]


def has_candidate(node: LiveNode, task: LiveTask) -> bool:
    """Whether a used GPU has room. Tasks without GPUs ask for nothing of it, so any with room will do, as in KAI."""
    if not node.groups:
        return False
    if task.kind == KIND_CPU or task.kind == KIND_MIG:
        memory = 0
    elif task.kind == KIND_PORTION or task.kind == KIND_MEMORY:
        memory = node.shared_memory(task)
    else:
        return False
    return any(takes(node, group, memory) for group in node.groups.values())


def share_is_valid(node: LiveNode, task: LiveTask) -> bool:
    """GPU memory above one device is refused unless it comes to a whole number of devices."""
    if task.kind != KIND_MEMORY:
        return True
    share = math.ceil(100 * task.gpu_memory / node.gpu_memory)
    return share <= 100 or share % 100 == 0


def has_room(node: LiveNode, task: LiveTask, whole: int) -> bool:
    """Whether enough devices can be found among `whole` unshared GPUs and the shared ones with room."""
    missing = task.devices - whole
    if missing <= 0:
        return True
    # No more groups than devices count, so that fewer than no GPUs are never made up for.
    if not node.groups or whole < 0:
        return False
    memory = node.shared_memory(task)
    for group in node.groups.values():
        if takes(node, group, memory):
            missing -= 1
            if missing == 0:
                return True
    return False


def could_stay(node: LiveNode, task: LiveTask) -> bool:
    """Whether a task that is being released from shared GPUs of a node could stay on them."""
    memory, whole = node.shared_memory(task), 0
    for name in task.groups:
        group = node.groups[name]
        releasing = group.releasing - group.pipelined
        if node.gpu_memory - group.allocated + releasing - memory < 0:
            return False
        whole += group.allocated == releasing
    return whole <= max(0, node.idle_gpu + node.releasing_gpu)


def pick(node: LiveNode, task: LiveTask, spread: bool) -> list[GpuGroup | None]:
    """One entry per device, None for a new shared GPU: the fullest that fits first, or the emptiest when spreading."""
    shared = candidates(node, task)
    whole: list[GpuGroup | None] = [None] * max(0, node.idle_gpu + node.releasing_gpu)
    if spread:
        ordered: list[GpuGroup | None] = [*whole, *sorted(shared, key=_fill)]
    else:
        ordered = [*sorted(shared, key=lambda group: (-_used(group), group.device or 0, group.id)), *whole]
    return ordered[: task.devices]


def _used(group: GpuGroup) -> int:
    return group.allocated + group.pipelined


def _fill(group: GpuGroup) -> tuple[int, int, str]:
    return (_used(group), group.device or 0, group.id)


def is_ready(node: LiveNode, group: GpuGroup, task: LiveTask) -> bool:
    """Whether the task can start on the group now: a settled task opened it, and there is room without what leaves.

    As in KAI it stays opened for the cycle, even if that task was made to wait for the rest of its gang.
    """
    return group.opened and node.gpu_memory - group.allocated - node.shared_memory(task) >= 0


def free_gpus(node: LiveNode) -> float:
    """Idle and releasing GPUs with parts of shared ones and MIG weights: what filters and pre-checks see."""
    return idle_sum(node) + releasing_sum(node)


def idle_sum(node: LiveNode) -> float:
    """Idle GPUs, and of every shared one in use what is left, its use rounded up to hundredths."""
    total: float = node.idle_gpu
    for group in node.groups.values():
        if group.allocated > 0:
            total += 1 - math.ceil(100 * group.allocated / node.gpu_memory) / 100
    return total + _mig_sum(node, node.idle_ext) if node.mig_weight else total


def releasing_sum(node: LiveNode) -> float:
    """Releasing GPUs, and the releasing parts of shared ones; one that leaves entirely is among the former."""
    total: float = node.releasing_gpu
    for group in node.groups.values():
        releasing = group.releasing - group.pipelined
        if releasing > 0 and releasing != group.allocated + group.pipelined:
            total += math.ceil(100 * releasing / node.gpu_memory) / 100
    return total + _mig_sum(node, node.releasing_ext) if node.mig_weight else total


def at_most_free(node: LiveNode) -> float:
    """No less than what tasks could get of the node's GPUs: nothing rounded, and what promises leave open counted in.

    A shared GPU that is only promised takes a whole one away, but gives it back when the promise goes.
    """
    total: float = node.idle_gpu + node.releasing_gpu
    for group in node.groups.values():
        in_use = group.allocated or group.pipelined
        total += (node.gpu_memory - in_use + max(0, group.releasing - group.pipelined)) / node.gpu_memory
    return total + (_mig_sum(node, node.idle_ext) + _mig_sum(node, node.releasing_ext) if node.mig_weight else 0)


def free_memory(node: LiveNode) -> int:
    """Idle and releasing GPU memory in MiB."""
    total = (node.idle_gpu + node.releasing_gpu) * node.gpu_memory
    for group in node.groups.values():
        if group.allocated > 0:
            total += node.gpu_memory - group.allocated
        releasing = group.releasing - group.pipelined
        if releasing > 0 and releasing != group.allocated + group.pipelined:
            total += releasing
    return total


def _mig_sum(node: LiveNode, amounts: dict[str, int]) -> int:
    return sum(mig_weight(profile) * amounts.get(mig_resource(profile), 0) for profile in node.spec.mig)
