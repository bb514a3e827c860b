"""The nouns `project`, `department`, `nodepool` and `node`: list, describe, create, update, delete, drain.

`lists` lists them and sets defaults. Before a deletion that also deletes other things, the command lists them and asks
for confirmation; `--force` skips the question.
"""

from collections.abc import Callable

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import FAILED, OK
from fairlead.cli.flags import CLUSTER, OUTPUT, Flag
from fairlead.cli.nouns import load_module
from fairlead.cli.organization import lists
from fairlead.cli.organization.page import node_facts, pool_facts, show_owner
from fairlead.cli.organization.quota import QUOTA_FLAGS, RULE_FLAGS, apply_quotas, read_quotas, read_settings
from fairlead.cli.session.session import ServerSession, find_named
from fairlead.cli.terminal.console import is_terminal
from fairlead.cli.terminal.facts import show_facts
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.client.access.urls import quote
from fairlead.client.json_object import Json

_PATHS = {
    "project": "/api/v1/org-unit/projects",
    "department": "/api/v1/org-unit/departments",
    "nodepool": "/api/v1/node-pools",
}
_TITLES = {"project": "project", "department": "department", "nodepool": "node pool", "node": "node"}
_FORCE = Flag("force", "Do not ask for confirmation", "boolean", "f")
_DEPARTMENT = Flag("department", "Department of the project", placeholder="NAME", default="default")
_NAMESPACE = Flag("namespace", "Namespace of the project (default runai-NAME)", placeholder="NAME")
_POOL_FLAGS = (
    Flag("label", "Label of the nodes that belong to the pool", placeholder="KEY=VALUE"),
    Flag("gpu-placement", "Placement of pods with GPUs", choices=("binpack", "spread")),
    Flag("cpu-placement", "Placement of pods without GPUs", choices=("binpack", "spread")),
    Flag(
        "min-guaranteed-runtime", "Time that a workload runs before it can be evicted, such as 30m", placeholder="TIME"
    ),
)
_YES = Flag("yes", "Do not ask for confirmation", "boolean", "y")
_MAINTENANCE = {
    "cordon": "Place no new pods on a node; running pods stay",
    "uncordon": "Place pods on a node again",
    "drain": "Cordon a node and evict its pods, for example before a repair",
}
_DRAIN_DETAILS = """\
Evicted workloads wait again and start elsewhere, or on this node after
`fairlead node uncordon`. As after a preemption, a workload starts from its
beginning or its last checkpoint. On a cluster, pods that do not belong to
Fairlead stay: `kubectl drain` evicts them.
  fairlead node drain node-3"""
_SHOWN = 20


def commands(noun: str) -> tuple[Command, ...]:
    listed = lists.commands(noun)
    shown = _command(noun, "describe", f"Show a {_TITLES[noun]}", _describe, OUTPUT)
    if noun == "node":
        return (*listed, shown, *map(_maintenance_command, _MAINTENANCE))
    flags = _POOL_FLAGS if noun == "nodepool" else (*QUOTA_FLAGS, *RULE_FLAGS)
    extra = (_DEPARTMENT, _NAMESPACE) if noun == "project" else ()
    removal = _command(noun, "delete", f"Delete {_TITLES[noun]}s", _delete, (_FORCE,))
    return (
        *listed,
        shown,
        _command(noun, "create", f"Create a {_TITLES[noun]}", _create, (*extra, CLUSTER, *flags, *OUTPUT)),
        _command(
            noun, "update", f"Change a {_TITLES[noun]}; only the given flags are changed", _update, (*flags, *OUTPUT)
        ),
        removal._replace(usage="NAME...", max_names=None),
    )


def _maintenance_command(verb: str) -> Command:
    details = _DRAIN_DETAILS if verb == "drain" else ""

    def run(invocation: Invocation, _noun: str) -> int:
        code: int = load_module("scheduling.node_maintenance").run(invocation, verb)
        return code

    return _command("node", verb, _MAINTENANCE[verb], run, (_YES,))._replace(details=details)


def _command(
    noun: str, verb: str, summary: str, run: Callable[[Invocation, str], int], flags: tuple[Flag, ...]
) -> Command:
    return Command(verb, summary, lambda call: run(call, noun), flags, "NAME", 1, 1, completes=noun)


def _find(session: ServerSession, noun: str, name: str) -> Json:
    """The record with that name or id."""
    return find_named(lists.LOADERS[noun](session.client), name, _TITLES[noun])


def _describe(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    record = _find(session, noun, invocation.names[0])
    if not session.show(record, record["name"]):
        if noun == "nodepool":
            show_facts(session.console, pool_facts(record))
        elif noun == "node":
            _describe_node(session, record)
        else:
            show_owner(session, record, _owner_facts(session, noun, record))
    session.close()
    return OK


def _owner_facts(session: ServerSession, noun: str, owner: Json) -> list[tuple[str, str]]:
    facts = [("Name", owner["name"]), ("Id", str(owner["id"]))]
    if noun == "department":
        inside = session.client.projects(filterBy=[f"parentId=={owner['id']}"])
        return [*facts, ("Projects", ", ".join(project["name"] for project in inside))]
    status = owner.get("status") or {}
    departments = {str(row["id"]): str(row["name"]) for row in session.client.departments()}
    return [
        *facts,
        ("Status", ": ".join(word for word in (status.get("phase"), status.get("phaseMessage")) if word)),
        ("Department", departments.get(str(owner.get("parentId")), "")),
        ("Namespace", status.get("namespace") or ""),
    ]


def _describe_node(session: ServerSession, node: Json) -> None:
    pods = session.client.request(
        "GET", "/api/v1/workloads/pods", filterBy=[f"nodeName=={node['name']}"], completed="false", limit=500
    )["pods"]
    show_facts(session.console, node_facts(node, pods))
    if not pods:
        return
    console = session.console
    console.data("")
    columns = (
        TableColumn("POD", lambda row: row["name"], shrinks=True),
        TableColumn("WORKLOAD", lambda row: row.get("workloadName") or "", shrinks=True),
        TableColumn("PROJECT", lambda row: row.get("projectName") or "", shrinks=True),
        TableColumn("GPU", lambda row: f"{(row.get('allocatedResources') or {}).get('gpu') or 0:g}"),
    )
    for line in render_table(columns, pods, width=console.width(), headers=True, paint=console.paint):
        console.data(line)


def _create(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    cluster = session.cluster()
    body: Json = {"name": invocation.names[0], "clusterId": cluster["uuid"]}
    if noun == "nodepool":
        body |= _pool_members(invocation)
    else:
        pools = [pool for pool in session.client.node_pools() if pool["clusterId"] == cluster["uuid"]]
        body["resources"] = apply_quotas(read_quotas(invocation), (), pools)
        body |= read_settings(invocation, {})
    if noun == "project":
        if invocation.get("department"):
            body["parentId"] = str(_find(session, "department", invocation.get("department"))["id"])
        if invocation.get("namespace"):
            body["requestedNamespace"] = invocation.get("namespace")
    created = session.client.request("POST", _PATHS[noun], body)
    return _report_change(session, noun, created, "created")


def _update(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    record = _find(session, noun, invocation.names[0])
    if noun == "nodepool":
        body = _pool_members(invocation)
    else:
        pools = session.client.node_pools()
        body = {"resources": apply_quotas(read_quotas(invocation), record.get("resources") or (), pools)}
        body |= read_settings(invocation, record)
    changed = session.client.request("PUT", f"{_PATHS[noun]}/{quote(str(record['id']))}", body)
    return _report_change(session, noun, changed, "changed")


def _report_change(session: ServerSession, noun: str, record: Json, what: str) -> int:
    if not session.show(record, record["name"]):
        session.console.say(f"{_TITLES[noun].capitalize()} {record['name']} {what} (id {record['id']}).")
    session.close()
    return OK


def _pool_members(invocation: Invocation) -> Json:
    members: Json = {}
    label = invocation.get("label")
    if label:
        members["labelKey"], _, members["labelValue"] = label.partition("=")
    configuration: Json = {}
    placement = {name: invocation.get(f"{name}-placement") for name in ("gpu", "cpu")}
    if any(placement.values()):
        configuration["placementStrategy"] = {name: value for name, value in placement.items() if value}
    if invocation.get("min-guaranteed-runtime"):
        configuration["minGuaranteedRuntime"] = invocation.get("min-guaranteed-runtime")
    return members | ({"schedulingConfiguration": configuration} if configuration else {})


def _delete(invocation: Invocation, noun: str) -> int:
    session = ServerSession(invocation)
    records = [_find(session, noun, name) for name in invocation.names]
    if not invocation.get("force") and not _is_confirmed(session, noun, records):
        session.close()
        return FAILED
    for row in records:
        session.client.request("DELETE", f"{_PATHS[noun]}/{quote(str(row['id']))}")
        session.console.say(f"{_TITLES[noun].capitalize()} {row['name']}: deletion requested.")
    session.close()
    return OK


def _is_confirmed(session: ServerSession, noun: str, records: list[Json]) -> bool:
    """List what would be deleted too and ask for confirmation; without a terminal the answer is no."""
    for row in records:
        for line in _losses(session, noun, row):
            session.console.complain(line)
    names = ", ".join(row["name"] for row in records)
    if not is_terminal(session.invocation.environment.stdin):
        session.console.complain(f"Nothing was deleted. Use --force to delete {names} without confirmation.")
        return False
    session.console.complain(f"Delete {names}? [y/N]")
    answer = session.invocation.environment.stdin.readline().strip().lower()
    return answer in ("y", "yes")


def _losses(session: ServerSession, noun: str, row: Json) -> list[str]:
    if noun == "nodepool":
        nodes = (row.get("status") or {}).get("nodes") or ()
        moved = f"its nodes ({', '.join(nodes)}) move to another pool" if nodes else "it has no nodes"
        return [f"Node pool {row['name']}: {moved}, and all quotas in it are deleted."]
    projects = [row] if noun == "project" else session.client.projects(filterBy=[f"parentId=={row['id']}"])
    lines = []
    if noun == "department":
        inside = ", ".join(project["name"] for project in projects) or "none"
        lines.append(f"Department {row['name']} and its projects will be deleted: {inside}.")
    for project in projects:
        workloads = session.client.workloads(filterBy=[f"projectId=={project['id']}"], limit=_SHOWN)
        names = [f"{one['name']} ({one['phase']})" for one in workloads["workloads"]]
        more = " and more" if workloads.get("next") is not None else ""
        lines.append(
            f"Project {project['name']} and its workloads will be deleted: {', '.join(names) or 'none'}{more}."
        )
    return lines
