"""Nodes of the cluster as our records describe them. Pure."""

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.labels import GPU
from fairlead.model.quantity import thousandths, whole
from fairlead.model.records.organization import GpuDevice, Node, Taint

_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage", GPU})


def render_node(node: objects.Node) -> Node:
    labels = node.metadata.labels
    has = {name: str(value) for name, value in node.status.allocatable.items()}
    memory = labels.get("nvidia.com/gpu.memory", "")
    device = GpuDevice(
        index=0,
        model=labels.get("nvidia.com/gpu.product", ""),
        memory_mib=int(memory) if memory.isdecimal() else 0,
    )
    is_ready = objects.condition(node.status.conditions, "Ready") is not None
    return Node(
        id=node.metadata.uid,
        name=node.metadata.name,
        cpu_milli=thousandths(has.get("cpu", "0")),
        memory_bytes=whole(has.get("memory", "0")),
        pods=int(has.get("pods", "110")),
        gpus=tuple(_numbered(device, index) for index in range(int(has.get(GPU, "0")))),
        extended={name: whole(value) for name, value in has.items() if name not in _PLAIN and "/" in name},
        labels=labels,
        taints=tuple(
            Taint(taint.get("key", ""), taint.get("value", ""), taint.get("effect", "NoSchedule"))
            for taint in node.spec.taints
        ),
        ready=is_ready,
        not_ready_since=None if is_ready else _since(node),
        cordoned=node.spec.unschedulable,
        created_at=objects.millis(node.metadata.creation_timestamp) or 0,
    )


def _since(node: objects.Node) -> int | None:
    """When its condition Ready changed last."""
    times = (one.last_transition_time for one in node.status.conditions if one.type == "Ready")
    return objects.millis(next(times, None))


def _numbered(device: GpuDevice, index: int) -> GpuDevice:
    return GpuDevice(index=index, model=device.model, memory_mib=device.memory_mib)
