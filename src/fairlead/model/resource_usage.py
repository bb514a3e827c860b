"""How much of a machine something has used: what engines observe and telemetry keeps."""

import msgspec


class MeasuredUsage(msgspec.Struct, frozen=True):
    """A moment's figures of a pod, by its id, or of a node, by `node/` and its name."""

    id: str
    #: Since it began.
    cpu_seconds: float
    #: Now.
    memory_bytes: int


def node_key(name: str) -> str:
    return f"node/{name}"
