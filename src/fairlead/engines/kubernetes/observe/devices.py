"""GPUs that drivers of dynamic resource allocation (DRA) offer, from the ResourceSlices of nodes. Pure.

KAI counts devices as GPUs if the name of their driver contains `gpu`. The capacity of nodes and the doctor read them.
"""

from collections.abc import Iterable

from fairlead.engines.kubernetes.client import objects
from fairlead.model.quantity import whole
from fairlead.model.records.organization import GpuDevice

_MEBIBYTE = 1024 * 1024
#: NVIDIA's driver also offers the parts of a GPU, which would be counted twice.
_PART = "mig"


def find_gpus(slices: Iterable[objects.ResourceSlice]) -> dict[str, list[GpuDevice]]:
    """Whole GPUs by node."""
    by_node: dict[str, list[GpuDevice]] = {}
    for slice in _newest(slices):
        for device in slice.spec.devices if "gpu" in slice.spec.driver.lower() else ():
            gpus = by_node.setdefault(slice.spec.node_name, [])
            if _attribute(device, "type") != _PART:
                model, memory = _attribute(device, "productName"), device.capacity.get("memory", {}).get("value", "0")
                gpus.append(GpuDevice(index=len(gpus), model=model, memory_mib=whole(memory) // _MEBIBYTE))
    return {node: gpus for node, gpus in by_node.items() if node and gpus}


def _newest(slices: Iterable[objects.ResourceSlice]) -> list[objects.ResourceSlice]:
    """A driver that changes its pool writes slices of a new generation before it deletes the old ones."""
    known = sorted(slices, key=lambda slice: slice.metadata.name)
    newest: dict[tuple[str, str], int] = {}
    for one in known:
        pool = one.spec.driver, one.spec.pool.name
        newest[pool] = max(newest.get(pool, 0), one.spec.pool.generation)
    return [one for one in known if one.spec.pool.generation == newest[one.spec.driver, one.spec.pool.name]]


def _attribute(device: objects.Device, name: str) -> str:
    return str(device.attributes.get(name, {}).get("string", ""))
