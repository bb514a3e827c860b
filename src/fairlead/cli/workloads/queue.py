"""`queue` and `top`: who waits, in which order and why; and how full the nodes are, with who uses them."""

import time
from collections.abc import Iterator

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT, Flag
from fairlead.cli.organization.node_usage import load_nodes, used_of_whole
from fairlead.cli.scheduling.questions import add_suggestions
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.output import Listing, chosen_format, render
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import age
from fairlead.cli.workloads.listing import workload_listing
from fairlead.client import Client, ServerError
from fairlead.client.json_object import Json

_GIB = float(1 << 30)
_HIDDEN = "Nodes are shown to administrators only. Your workloads that run:"
_QUEUE_FLAGS = (Flag("project", "Show only this project", short="p", placeholder="NAME"), *OUTPUT)
_TOP_FLAGS = (
    Flag("watch", "Refresh until Ctrl-C", "boolean", "w"),
    Flag("interval", "Time between two refreshes", "duration", default="2s"),
    *OUTPUT,
)


def commands(noun: str) -> tuple[Command, ...]:
    if noun == "queue":
        details = (
            "A higher priority comes first, then who waits longer. Between projects, the one further below its fair "
            "share comes first. `fairlead why NAME` explains a wait in full."
        )
        return (
            Command("", "Show who waits, in which order, why and since when", _queue, _QUEUE_FLAGS, details=details),
        )
    return (Command("", "Show how full the nodes are, and which workloads use them", _top, _TOP_FLAGS),)


def _queue(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    filters = ["phase==Pending"]
    if invocation.get("project"):
        filters.append(f"projectId=={session.project()['id']}")
    rows = sort_by_turn(list(session.client.all_workloads(filterBy=filters)))
    form = chosen_format(invocation, session.settings)
    if form in ("table", "wide"):
        rows = add_suggestions(session.client.suggestions, rows)
    _queue_listing().show(session.console, form, rows, not invocation.get("no-headers"))
    session.close()
    return OK


def sort_by_turn(rows: list[Json]) -> list[Json]:
    """By priority, then by age, with the number of each in its row."""
    ordered = sorted(rows, key=lambda row: (-(row.get("priority") or 0), row["createdAt"], row["id"]))
    return [{**row, "position": number} for number, row in enumerate(ordered, start=1)]


def _queue_listing() -> Listing:
    now = time.time()
    columns = (
        TableColumn("#", lambda row: str(row["position"])),
        TableColumn("NAME", lambda row: row["name"], shrinks=True, narrowest=12),
        TableColumn("PROJECT", lambda row: row["projectName"], shrinks=True),
        TableColumn("USER", lambda row: row.get("submittedBy") or "", shrinks=True, spare=True),
        TableColumn("PRIORITY", lambda row: row.get("priorityClassName") or "", spare=True),
        TableColumn("WAITS", lambda row: age(row.get("phaseUpdatedAt"), now)),
        TableColumn("WHY", lambda row: row.get("phaseMessage") or "", shrinks=True, narrowest=40),
    )
    return Listing(columns, lambda row: str(row["name"]), "No workload waits.")


def _top(invocation: Invocation) -> int:
    session = ServerSession(invocation)
    form = chosen_format(invocation, session.settings)
    while True:
        nodes = load_visible_nodes(session.client)
        running = sorted(session.client.all_workloads(filterBy=["phase==Running"]), key=_size)
        if form in ("json", "yaml"):
            session.console.data(render(session.console, form, {"nodes": nodes, "workloads": running}))
        else:
            lines = list(_page(session, nodes)) if nodes else [_HIDDEN]
            if invocation.get("watch"):
                session.console.clear_screen()
            for line in lines:
                session.console.data(line)
            session.console.data("")
            workload_listing().show(session.console, form, running, not invocation.get("no-headers"))
        if not invocation.get("watch"):
            break
        time.sleep(invocation.get("interval", 2.0))
    session.close()
    return OK


def load_visible_nodes(client: Client) -> list[Json]:
    """The nodes; none if the user's roles do not show them."""
    try:
        return load_nodes(client)
    except ServerError as error:
        if error.status != 403:
            raise
        return []


def _size(row: Json) -> tuple[float, float, str]:
    allocated = row.get("allocatedResources") or {}
    return -(allocated.get("gpu") or 0), -(allocated.get("cpu") or 0), str(row["name"])


def _page(session: ServerSession, nodes: list[Json]) -> Iterator[str]:
    columns = (
        TableColumn("NODE", lambda row: row["name"], shrinks=True),
        TableColumn("STATUS", lambda row: str(row.get("status") or "")),
        TableColumn("GPU", lambda row: used_of_whole(row, "allocatedGpus", "gpus")),
        TableColumn("", lambda row: _bar(row.get("allocatedGpus", 0), row.get("gpus", 0))),
        TableColumn("CPU", lambda row: used_of_whole(row, "allocatedCpus", "cpus")),
        TableColumn("MEMORY GiB", lambda row: used_of_whole(row, "allocatedMemory", "memory", _GIB)),
        TableColumn("NODE POOL", lambda row: str(row.get("nodePool") or ""), spare=True),
    )
    console = session.console
    yield from render_table(columns, nodes, width=console.width(), headers=True, paint=console.paint)


def _bar(used: float, whole: float) -> str:
    """Ten characters that show how much is allocated."""
    filled = round(10 * used / whole) if whole else 0
    return "#" * filled + "." * (10 - filled) if whole else ""
