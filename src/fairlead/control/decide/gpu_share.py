"""The part of a GPU that a pod holds. Pure; used for pods that we place and for those of a cluster."""

from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Node


def share_of(podset: PodSet, node: Node | None) -> int:
    """The part of each device that a pod holds, in thousandths; memory is rounded up to hundredths of the device."""
    request = podset.request
    device = min((gpu.memory_mib for gpu in node.gpus), default=0) if node else 0
    if not request.gpu_memory_bytes or not device:
        return request.gpu_portion
    return -(-100 * request.gpu_memory_mib // device) * 10
