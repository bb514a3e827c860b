"""Nodes without a kubelet: Node objects that are said to be ready, for scheduling at sizes this machine has not.

Made and removed by `python -m deploy.cluster nodes`, by tests and benches; `stand_in.py` looks after them.
"""

from dataclasses import dataclass, field
from typing import Any

from deploy.cluster.api import Api

#: On a Node: nobody runs its pods, the stand-in plays their life.
MARK = "cluster.fairlead/no-kubelet"
POOL = "kai.scheduler/node-pool"
GPUS, GPU_MEMORY, GPU_PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"


@dataclass(frozen=True)
class Shape:
    gpus: int = 8
    cpu: str = "64"
    memory: str = "512Gi"
    #: of one GPU
    gpu_memory_mib: int = 81920
    pool: str = ""
    labels: dict[str, str] = field(default_factory=dict)


def gpu_labels(count: int, memory_mib: int) -> dict[str, str]:
    """As NVIDIA's feature discovery writes them; KAI reads count and memory."""
    return {GPUS: str(count), GPU_MEMORY: str(memory_mib), GPU_PRODUCT: "Fake-GPU"} if count else {}


def render_node(name: str, shape: Shape = Shape()) -> dict[str, Any]:  # noqa: B008 - frozen
    amounts = {"cpu": shape.cpu, "memory": shape.memory, "ephemeral-storage": "1Ti", "pods": "500"}
    if shape.gpus:
        amounts["nvidia.com/gpu"] = str(shape.gpus)
    labels = {
        MARK: "true",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **({POOL: shape.pool} if shape.pool else {}),
        **gpu_labels(shape.gpus, shape.gpu_memory_mib),
        **shape.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def add_nodes(api: Api, names: list[str], shape: Shape = Shape()) -> None:  # noqa: B008 - frozen
    for name in names:
        api.call("POST", "/api/v1/nodes", render_node(name, shape))


def remove_nodes(api: Api, names: list[str]) -> None:
    for name in names:
        api.call("DELETE", f"/api/v1/nodes/{name}")


def observe_nodes(api: Api) -> list[str]:
    """The names of those without a kubelet."""
    return [one["metadata"]["name"] for one in api.call("GET", f"/api/v1/nodes?labelSelector={MARK}")["items"]]
