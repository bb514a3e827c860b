"""What tasks ask of a node. Equal requests form one class: nodes are judged and ranked once for all its tasks."""

from __future__ import annotations

import math

from fairlead.scheduling.model import snapshot as plain
from fairlead.scheduling.model.queues import Amounts

# What a task asks of GPUs.
KIND_CPU = 0
KIND_WHOLE = 1
KIND_PORTION = 2
KIND_MEMORY = 3
KIND_MIG = 4


class RequestClass:
    __slots__ = (
        "constraints",
        "cpu",
        "devices",
        "ext",
        "gpu",
        "gpu_memory",
        "index",
        "kind",
        "memory",
        "optimistic",
        "portion",
        "request",
        "spec",
        "static",
        "undemanding",
    )

    def __init__(self, spec: plain.Task, index: int, smallest_gpu: int | None, largest_gpu: int | None) -> None:
        #: The first task of the class stands for all.
        self.spec = spec
        self.index = index
        self.cpu = spec.cpu_milli
        self.memory = spec.memory_bytes
        self.gpu = spec.gpu
        self.portion = spec.gpu_portion
        self.gpu_memory = spec.gpu_memory_mib
        self.kind = _kind(spec)
        #: Number of shared devices.
        self.devices = spec.gpu_devices if self.kind in (KIND_PORTION, KIND_MEMORY) else 0
        extended = dict(spec.extended)
        for profile, count in spec.mig.items():
            extended[mig_resource(profile)] = extended.get(mig_resource(profile), 0) + count
        self.ext = tuple(sorted(extended.items()))
        #: For queue arithmetic before a task is placed; GPU memory is measured by the smallest GPU of the pool.
        self.request: Amounts = (self.cpu, self.memory, self._gpus(smallest_gpu))
        #: The same by the largest GPU: what checks before a search go by.
        self.optimistic: Amounts = (self.cpu, self.memory, self._gpus(largest_gpu))
        #: Verdict per node that no placement can change: None passes, else the cause.
        self.static: dict[int, str | None] = {}
        #: Asks for nothing special of a node; requests by memory look at each node's GPUs.
        self.undemanding = self.kind not in (KIND_MEMORY, KIND_MIG) and not (
            spec.node_selector or spec.node_affinity or spec.legacy_mig
        )
        #: What constrains such tasks, apart from amounts.
        self.constraints = repr(
            (
                sorted(spec.node_selector.items()),
                spec.node_affinity,
                spec.preferred_node_affinity,
                spec.pod_affinity,
                spec.preferred_pod_affinity,
                spec.pod_anti_affinity,
                spec.tolerations,
            )
        )

    def _gpus(self, device_memory: int | None) -> float:
        """Thousandths of GPUs. A portion counts in hundredths; GPU memory is not rounded before it is placed."""
        if self.kind == KIND_PORTION:
            return math.floor(self.portion * 100 + 0.5) * 10 * self.devices
        if self.kind == KIND_MEMORY:
            return self.devices * self.gpu_memory * 1000 / device_memory if device_memory else 0
        return 1000 * (self.gpu + sum(mig_weight(profile) * n for profile, n in self.spec.mig.items()))


class RequestClasses:
    """The classes of one pool."""

    def __init__(self, smallest_gpu: int | None, largest_gpu: int | None) -> None:
        self.smallest_gpu = smallest_gpu
        self.largest_gpu = largest_gpu
        self.known: dict[object, RequestClass] = {}
        #: Requests by GPU memory cost differently from node to node, which spoils sums over nodes.
        self.has_memory_requests = False
        #: Requests for parts of GPUs count in hundredths, which may be more than they take of a GPU.
        self.has_shared_requests = False

    def of(self, spec: plain.Task) -> RequestClass:
        key = _key(spec)
        request_class = self.known.get(key)
        if request_class is None:
            request_class = RequestClass(spec, len(self.known), self.smallest_gpu, self.largest_gpu)
            self.known[key] = request_class
            self.has_memory_requests = self.has_memory_requests or request_class.kind == KIND_MEMORY
            self.has_shared_requests = self.has_shared_requests or request_class.kind in (KIND_PORTION, KIND_MEMORY)
        return request_class


def _key(spec: plain.Task) -> object:
    """Tasks with equal keys are judged alike by every node, apart from what pod affinity says of their labels."""
    amounts = (
        spec.cpu_milli,
        spec.memory_bytes,
        spec.gpu,
        spec.gpu_portion,
        spec.gpu_memory_mib,
        spec.gpu_devices,
    )
    if not (
        spec.mig
        or spec.extended
        or spec.node_selector
        or spec.node_affinity
        or spec.tolerations
        or spec.nominated_node
        or spec.legacy_mig
        or spec.pod_affinity
        or spec.preferred_pod_affinity
        or spec.pod_anti_affinity
        or spec.preferred_node_affinity
    ):
        return amounts
    return (
        amounts,
        tuple(sorted(spec.mig.items())),
        tuple(sorted(spec.extended.items())),
        spec.legacy_mig,
        spec.nominated_node,
        tuple(sorted(spec.node_selector.items())),
        repr((spec.node_affinity, spec.preferred_node_affinity, spec.tolerations)),
        repr((spec.pod_affinity, spec.preferred_pod_affinity, spec.pod_anti_affinity)),
    )


def _kind(spec: plain.Task) -> int:
    if spec.gpu_portion:
        return KIND_PORTION
    if spec.gpu_memory_mib:
        return KIND_MEMORY
    if spec.mig:
        return KIND_MIG
    return KIND_WHOLE if spec.gpu else KIND_CPU


def mig_resource(profile: str) -> str:
    return f"nvidia.com/mig-{profile}"


def mig_weight(profile: str) -> int:
    """GPUs of quota that an instance counts as: the number before the g of <n>g.<m>gb, other names count nothing."""
    size, _, rest = profile.partition("g.")
    return int(size) if size.isdigit() and rest.endswith("gb") and rest[:-2].isdigit() else 0
