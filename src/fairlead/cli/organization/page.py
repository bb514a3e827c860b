"""The pages of a project, department, node pool or node."""

from collections.abc import Sequence

from fairlead.cli.organization.node_usage import node_status
from fairlead.cli.session.session import ServerSession
from fairlead.cli.terminal.amounts import amount
from fairlead.cli.terminal.facts import show_facts
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.cli.terminal.times import shown_time, span
from fairlead.client.json_object import Json

_RULES = {
    "trainingJobTimeLimitSeconds": "Training time limit",
    "trainingJobMaxIdleDurationSeconds": "Training idle limit",
    "interactiveJobTimeLimitSeconds": "Workspace time limit",
    "interactiveJobMaxIdleDurationSeconds": "Workspace idle limit",
    "interactiveJobPreemptIdleDurationSeconds": "Preemptible workspace idle limit",
}


def show_owner(session: ServerSession, owner: Json, facts: Sequence[tuple[str, str]]) -> None:
    """A project or department: its facts, its quota and usage per node pool, its rules."""
    console = session.console
    effective = owner.get("effective") or owner
    rules = effective.get("schedulingRules") or {}
    types = effective.get("nodeTypes") or {}
    shown = [
        *facts,
        ("Description", owner.get("description") or ""),
        ("Node pools", ", ".join(effective.get("defaultNodePools") or ())),
        *((_RULES[name], span(limit)) for name, limit in rules.items() if name in _RULES and limit),
        *((f"Node types ({name})", ", ".join(values)) for name, values in types.items() if isinstance(values, list)),
        ("Created", shown_time(owner.get("createdAt"))),
        ("Created by", owner.get("createdBy") or ""),
    ]
    show_facts(session.console, shown)
    statuses = {one["nodePoolName"]: one for one in (owner.get("status") or {}).get("nodePoolQuotaStatuses") or ()}
    rows = [
        (pool, resource, statuses.get(pool["nodePool"]["name"]) or {})
        for pool in owner.get("resources") or ()
        for resource in ("gpu", "cpu", "memory")
    ]
    console.data("")
    for line in render_table(_QUOTAS, rows, width=console.width(), headers=True, paint=console.paint):
        console.data(line)


def _used(row: tuple[Json, str, Json], what: str) -> str:
    _, resource, status = row
    used = (status.get(what) or {}).get(resource)
    return "" if used is None else amount(used, resource, "MB")


def _granted(row: tuple[Json, str, Json], what: str) -> str:
    pool, resource, _ = row
    quota = pool.get(resource) or {}
    return amount(quota.get(what), resource, quota.get("units") or "")


_QUOTAS = (
    TableColumn("NODE POOL", lambda row: row[0]["nodePool"]["name"]),
    TableColumn("RESOURCE", lambda row: {"gpu": "GPU", "cpu": "CPU cores", "memory": "memory"}[row[1]]),
    TableColumn("QUOTA", lambda row: _granted(row, "deserved")),
    TableColumn("LIMIT", lambda row: _granted(row, "limit")),
    TableColumn("WEIGHT", lambda row: f"{(row[0].get(row[1]) or {}).get('overQuotaWeight') or 0:g}"),
    TableColumn("RANK", lambda row: row[0].get("priority") or "" if row[1] == "gpu" else ""),
    TableColumn("USED", lambda row: _used(row, "allocated")),
    TableColumn("NON-PREEMPTIBLE", lambda row: _used(row, "allocatedNonPreemptible")),
    TableColumn("REQUESTED", lambda row: _used(row, "requested")),
)


def pool_facts(pool: Json) -> list[tuple[str, str]]:
    configuration = pool.get("schedulingConfiguration") or {}
    placement = configuration.get("placementStrategy") or {}
    label = "" if pool.get("isDefault") else f"{pool.get('labelKey')}={pool.get('labelValue')}"
    return [
        ("Name", pool["name"]),
        ("Id", str(pool["id"])),
        ("Status", pool.get("phase") or ""),
        ("Label", label or "none: it has the nodes that are in no other pool"),
        ("Nodes", ", ".join((pool.get("status") or {}).get("nodes") or ())),
        ("GPU placement", placement.get("gpu") or ""),
        ("CPU placement", placement.get("cpu") or ""),
        ("Guaranteed runtime", configuration.get("minGuaranteedRuntime") or ""),
        ("Created", shown_time(pool.get("createdAt"))),
        ("Created by", pool.get("createdBy") or ""),
    ]


def node_facts(node: Json, pods: Sequence[Json]) -> list[tuple[str, str]]:
    gpus = node.get("gpuInfo") or {}
    taints = [f"{one['key']}={one.get('value') or ''}:{one['effect']}" for one in node.get("taints") or ()]
    gpus_in_use = sum((pod.get("allocatedResources") or {}).get("gpu") or 0 for pod in pods)
    return [
        ("Name", node["name"]),
        ("Id", str(node["id"])),
        ("Status", node_status(node)),
        ("Node pool", node.get("nodePool") or ""),
        ("GPUs", f"{gpus['gpuCount']} ({gpus['gpuType']}), {gpus_in_use:g} in use" if gpus else "none"),
        ("Taints", ", ".join(taints)),
        ("Created", shown_time(node.get("createdAt"))),
    ]
