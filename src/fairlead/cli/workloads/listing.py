"""The table of workloads that `list` shows."""

import time

from fairlead.cli.terminal.output import Listing
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age, span
from fairlead.client.json_object import Json
from fairlead.client.phases import ENDED

_COLOURS = {
    "Running": "green",
    "Completed": "blue",
    "Failed": "red",
    "Degraded": "red",
    "Unknown": "red",
    "Pending": "yellow",
}


def workload_listing() -> Listing:
    """How workloads are listed."""
    now = time.time()
    columns = (
        TableColumn("NAME", lambda row: row["name"], shrinks=True),
        TableColumn("TYPE", lambda row: row["type"], spare=True),
        TableColumn("STATUS", _status, colour=lambda text: _COLOURS.get(text, "")),
        TableColumn("PROJECT", lambda row: row["projectName"], shrinks=True, spare=True),
        TableColumn("PODS", _pods),
        TableColumn("GPU", _gpus),
        TableColumn("AGE", lambda row: age(row.get("createdAt"), now)),
        TableColumn("RAN", lambda row: span(row.get("totalRunningTimeSeconds")), spare=True),
        TableColumn("PRIORITY", lambda row: row.get("priorityClassName") or "", wide=True),
        TableColumn(
            "PREEMPTIBLE", lambda row: "" if row.get("preemptible") is None else _yes(row["preemptible"]), wide=True
        ),
        TableColumn("NODE POOLS", lambda row: ",".join(row.get("currentNodePools") or ()), wide=True),
        TableColumn("SUBMITTED BY", lambda row: row.get("submittedBy") or "", wide=True),
        TableColumn("IMAGE", lambda row: ",".join(row.get("images") or ()), wide=True),
        TableColumn("ID", lambda row: row["id"], wide=True),
        TableColumn("MESSAGE", lambda row: row.get("phaseMessage") or "", shrinks=True, narrowest=40),
    )
    return Listing(columns, lambda row: str(row["name"]), "No workloads found.")


def _status(row: Json) -> str:
    """Its phase; the interface has none for what has been deleted and has no pods left."""
    return "Deleted" if row.get("deletedAt") and not row.get("runningPods") else str(row["phase"])


def _pods(row: Json) -> str:
    """Running and requested pods. An ended workload has none running, so only the number that it had is of interest."""
    requested = row.get("requestedPods") or {}
    if row["phase"] == "Completed":
        return f"{requested.get('completions') or requested.get('number', 0)} done"
    return _held_of(row, row.get("runningPods", 0), requested.get("number"))


def _gpus(row: Json) -> str:
    """GPUs that its pods hold, and that they request."""
    requested = ((row.get("workloadRequestedResources") or {}).get("gpu") or {}).get("request")
    return _held_of(row, (row.get("allocatedResources") or {}).get("gpu") or 0, requested)


def _held_of(row: Json, allocated: object, requested: object) -> str:
    if not requested:
        return _number(allocated)
    return _number(requested) if row["phase"] in ENDED else f"{_number(allocated)}/{_number(requested)}"


def _number(value: object) -> str:
    return "" if value is None else f"{value:g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
