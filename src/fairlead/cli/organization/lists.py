"""Lists of projects, departments, clusters, nodes, node pools and workload types. `set` chooses a default."""

import time
from collections.abc import Callable
from typing import Any

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import OK
from fairlead.cli.flags import OUTPUT
from fairlead.cli.organization.node_usage import load_nodes, node_status
from fairlead.cli.session.session import ServerSession
from fairlead.cli.session.settings import record_setting
from fairlead.cli.terminal.output import Listing, chosen_format
from fairlead.cli.terminal.tables import TableColumn
from fairlead.cli.terminal.times import age
from fairlead.client import Client, NameNotFound
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest

LOADERS: dict[str, Callable[[Client], list[Json]]] = {
    "project": lambda client: client.projects(),
    "department": lambda client: client.departments(),
    "cluster": lambda client: client.clusters(),
    "node": load_nodes,
    "nodepool": lambda client: client.node_pools(),
    "workload-type": lambda client: client.workload_types(),
}
#: Nouns that can have a default.
_SETTABLE = ("project", "cluster")
TITLES = {
    "project": "projects",
    "department": "departments",
    "cluster": "clusters",
    "node": "nodes",
    "nodepool": "node pools",
    "workload-type": "types of workloads",
}


def commands(noun: str) -> tuple[Command, ...]:
    listed = Command("list", f"List {TITLES[noun]}", lambda call: _list(call, noun), OUTPUT, aliases=("ls",))
    if noun not in _SETTABLE:
        return (listed,)
    chosen = Command(
        "set",
        f"Set the default {noun} for commands",
        lambda call: _set(call, noun),
        usage="NAME",
        min_names=1,
        max_names=1,
        completes=noun,
    )
    return (listed, chosen)


def _list(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    rows = LOADERS[noun](session.client)
    listing = Listing(_columns(session, noun), lambda row: str(row["name"]), f"No {TITLES[noun]} found.")
    form = chosen_format(invocation, session.settings)
    listing.show(session.console, form, rows, not invocation.get("no-headers"))
    session.close()
    return OK


def _set(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    name = invocation.names[0]
    known = [str(row["name"]) for row in LOADERS[noun](session.client)]
    if name not in known:
        raise NameNotFound(f"There is no {noun} '{name}'.{suggest(name, known)}")
    record_setting(invocation, noun, name)
    session.console.say(f"Commands now use {noun} {name} by default.")
    session.close()
    return OK


def _columns(session: ServerSession, noun: str) -> tuple[TableColumn, ...]:
    now = time.time()
    configured = session.settings.get(noun)
    name = TableColumn("NAME", lambda row: row["name"] + (" *" if row["name"] == configured else ""), shrinks=True)
    id = TableColumn("ID", lambda row: _text(row.get("uuid" if noun == "cluster" else "id")), wide=True)
    if noun == "workload-type":
        return (name, *_COLUMNS[noun], id)
    age_column = TableColumn("AGE", lambda row: age(row.get("createdAt"), now))
    if noun == "project":
        departments = {str(row["id"]): row["name"] for row in session.client.departments()}
        status = TableColumn("STATUS", lambda row: _text(_get(row, "status", "phase")))
        parent = TableColumn("DEPARTMENT", lambda row: departments.get(str(row.get("parentId")), ""))
        namespace = TableColumn("NAMESPACE", lambda row: _text(_get(row, "status", "namespace")), wide=True)
        return (name, status, parent, *_COLUMNS["department"], namespace, id, age_column)
    return (name, *_COLUMNS[noun], id, age_column)


#: The columns of each noun besides name, id and age.
_COLUMNS: dict[str, tuple[TableColumn, ...]] = {
    "department": (
        TableColumn("GPU QUOTA", lambda row: _quota(row, "gpu")),
        TableColumn("GPU USED", lambda row: _used(row, "allocated")),
        TableColumn("GPU REQUESTED", lambda row: _used(row, "requested")),
        TableColumn("CPU QUOTA", lambda row: _quota(row, "cpu")),
    ),
    "cluster": (
        TableColumn("STATUS", lambda row: _text(_get(row, "status", "state"))),
        TableColumn("VERSION", lambda row: _text(row.get("version"))),
        TableColumn("DOMAIN", lambda row: _text(row.get("domain")), wide=True),
    ),
    "node": (
        TableColumn("STATUS", node_status),
        TableColumn("NODE POOL", lambda row: _text(row.get("nodePool"))),
        TableColumn("GPUS", lambda row: _text(_get(row, "gpuInfo", "gpuCount")) or "0"),
        TableColumn("FREE GPUS", lambda row: f"{row.get('freeGpus', 0):g}"),
        TableColumn("GPU TYPE", lambda row: _text(_get(row, "gpuInfo", "gpuType"))),
    ),
    "nodepool": (
        TableColumn("STATUS", lambda row: _text(_get(row, "status", "phase") or row.get("phase"))),
        TableColumn("NODES", lambda row: ",".join(_get(row, "status", "nodes") or row.get("nodes") or ())),
        TableColumn("LABEL", lambda row: "=".join(filter(None, (row.get("labelKey"), row.get("labelValue"))))),
    ),
    "workload-type": (
        TableColumn("CATEGORY", lambda row: _text(row.get("categoryName"))),
        TableColumn("PRIORITY", lambda row: _text(row.get("priorityName"))),
        TableColumn("PREEMPTIBILITY", lambda row: _text(row.get("preemptibility"))),
    ),
}


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _get(row: Json, *path: str) -> Any:
    value: Any = row
    for member in path:
        value = value.get(member) if isinstance(value, dict) else None
    return value


def _used(row: Json, what: str) -> str:
    amount = _get(row, "status", "quotaStatus", what, "gpu")
    return "" if amount is None else f"{amount:g}"


def _quota(row: Json, resource: str) -> str:
    """The sum of the quotas of all node pools, blank if none is set. CPU in cores."""
    scale = 1000 if resource == "cpu" else 1
    shares = [_get(pool, resource, "deserved") for pool in row.get("resources") or ()]
    known = [share for share in shares if isinstance(share, int | float)]
    if any(share < 0 for share in known):
        return "unlimited"
    return f"{sum(known) / scale:g}" if known else ""
