"""What nodes have and what is allocated of it, from the server's telemetry. Used by `node list` and `top`."""

from fairlead.client import Client
from fairlead.client.json_object import Json

#: The member of a row, and the telemetry that fills it.
_FIGURES = {
    "gpus": "TOTAL_GPUS",
    "allocatedGpus": "ALLOCATED_GPUS",
    "freeGpus": "FREE_GPUS",
    "cpus": "TOTAL_CPU_CORES",
    "allocatedCpus": "ALLOCATED_CPU_CORES",
    "memory": "TOTAL_CPU_MEMORY_BYTES",
    "allocatedMemory": "ALLOCATED_CPU_MEMORY_BYTES",
}


def load_nodes(client: Client) -> list[Json]:
    """Every node, with its capacity and what is allocated as numbers."""
    rows: dict[str, Json] = {node["name"]: dict(node) for node in client.nodes()}
    for member, figure in _FIGURES.items():
        for cluster in client.clusters():
            answer = client.request(
                "GET", "/api/v1/nodes/telemetry", clusterId=cluster["uuid"], groupBy="Node", telemetryType=figure
            )
            for value in answer["values"]:
                names = [group["value"] for group in value["groups"] if group["key"] == "Node"]
                if names and names[0] in rows:
                    rows[names[0]][member] = float(value["value"])
    return list(rows.values())


def node_status(row: Json) -> str:
    """As `Ready`, with a note if it takes no new pods."""
    note = ", draining" if row.get("draining") else ", cordoned" if row.get("cordoned") else ""
    return f"{row.get('status') or ''}{note}"


def used_of_whole(row: Json, used: str, whole: str, scale: float = 1) -> str:
    """A part and its whole, as `3/8`."""
    return f"{row.get(used, 0) / scale:.3g}/{row.get(whole, 0) / scale:.3g}"
