"""Nodes of the cluster as our records describe them. Pure.

The labels are those of NVIDIA's GPU operator. With MIG's strategy single, slices are offered and labelled as GPUs; with
mixed they are extended resources. Of a GPU that pods share by time slicing or MPS, each replica counts as a GPU.
"""

from collections.abc import Iterable, Mapping, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.labels import GPU
from fairlead.model.quantity import thousandths, whole
from fairlead.model.records.organization import GpuDevice, Node, Taint

_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage", GPU})


class RenderedNodes:
    """The nodes as they were rendered last: of thousands, few change at a time."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[objects.Node, Sequence[GpuDevice], Node]] = {}

    def render(self, nodes: Iterable[objects.Node], claimable: Mapping[str, Sequence[GpuDevice]]) -> list[Node]:
        """The same record for a node of which nothing has changed."""
        rendered: dict[str, tuple[objects.Node, Sequence[GpuDevice], Node]] = {}
        for node in nodes:
            offered = claimable.get(node.metadata.name, ())
            last = self._last.get(node.metadata.uid)
            if last is None or last[0] is not node or last[1] != offered:
                last = (node, offered, render_node(node, offered))
            rendered[node.metadata.uid] = last
        self._last = rendered
        return [node for _, _, node in rendered.values()]


def render_node(node: objects.Node, claimable: Sequence[GpuDevice] = ()) -> Node:
    """`claimable`: GPUs of the node that a driver of dynamic resource allocation offers."""
    labels = node.metadata.labels
    has = {name: str(value) for name, value in node.status.allocatable.items()}
    device = GpuDevice(index=0, model=labels.get("nvidia.com/gpu.product", ""), memory_mib=_memory_mib(labels))
    is_ready = objects.condition(node.status.conditions, "Ready") is not None
    return Node(
        id=node.metadata.uid,
        name=node.metadata.name,
        cpu_milli=thousandths(has.get("cpu", "0")),
        memory_bytes=whole(has.get("memory", "0")),
        pods=int(has.get("pods", "110")),
        gpus=tuple(_numbered(device, index) for index in range(int(has.get(GPU, "0")))) or tuple(claimable),
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


def _memory_mib(labels: dict[str, str]) -> int:
    """Of one GPU. MPS gives each replica an equal part of the memory; with time slicing every pod sees all of it."""
    memory, replicas = (labels.get(f"nvidia.com/gpu.{name}", "") for name in ("memory", "replicas"))
    is_divided = labels.get("nvidia.com/gpu.sharing-strategy") == "mps" and replicas.isdecimal() and int(replicas)
    return (int(memory) if memory.isdecimal() else 0) // (int(replicas) if is_divided else 1)


def _numbered(device: GpuDevice, index: int) -> GpuDevice:
    return GpuDevice(index=index, model=device.model, memory_mib=device.memory_mib)
