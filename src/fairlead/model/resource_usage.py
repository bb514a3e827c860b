"""Measured resource usage: engines observe it, telemetry stores it."""

import msgspec


class MeasuredUsage(msgspec.Struct, frozen=True):
    """The usage of a pod (by its id) or of a node (by `node/` and its name) at one moment."""

    id: str
    #: CPU time since the start.
    cpu_seconds: float
    #: Memory in use now.
    memory_bytes: int


def node_key(name: str) -> str:
    return f"node/{name}"
