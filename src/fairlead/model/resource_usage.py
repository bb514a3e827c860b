"""Measured resource usage: engines observe it, telemetry stores it."""

import msgspec


class MeasuredUsage(msgspec.Struct, frozen=True):
    """The usage of a pod (by its id) or of a node (by `node/` and its name) at one moment."""

    id: str
    #: CPU time since the start, and memory in use now; not a number if that is not known yet.
    cpu_seconds: float
    memory_bytes: float
    #: How busy its GPUs are on average, in percent, and how much of their memory is in use; None if not measured.
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None


def node_key(name: str) -> str:
    return f"node/{name}"
