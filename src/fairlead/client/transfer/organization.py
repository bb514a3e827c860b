"""Writes node pools, departments and projects with their quotas."""

from typing import Any

from fairlead.client.json_object import Json
from fairlead.client.transfer.scopes import Scopes
from fairlead.client.transfer.writer import Writer

_POOL = (
    *("labelKey", "labelValue", "schedulingConfiguration", "placementStrategy", "gpuResourceOptimization"),
    *("gpuNetworkAccelerationDetection", "gpuNetworkAccelerationLabelKey", "overProvisioningRatio"),
)
_OWNER = ("description", "schedulingRules", "nodeTypes", "defaultNodePools")


def write_organization(writer: Writer) -> None:
    for pool in writer.bundle.node_pools:
        _write_pool(writer, pool)
    if not writer.is_dry:
        # A new node pool has given those that exist a quota in it.
        writer.scopes.load_owners()
    for department in writer.bundle.departments:
        _write_owner(writer, "department", department, {})
    for project in writer.bundle.projects:
        parent = writer.scopes.name_of("department", project.get("parentId"))
        parent_id = writer.scopes.id_of("department", parent)
        if parent_id is None:
            writer.report.lose("project", str(project["name"]), f"its department {parent} is not on the target")
            continue
        more = {"parentId": parent_id, "enforceRunaiScheduler": project.get("enforceRunaiScheduler")}
        _write_owner(writer, "project", project, more)
        if project.get("requestedNamespace"):
            reason = f"its namespace {project['requestedNamespace']} is chosen by the target's cluster"
            writer.report.lose("namespace of project", str(project["name"]), reason)


def _write_pool(writer: Writer, pool: Json) -> None:
    name = str(pool["name"])
    body = {member: pool[member] for member in _POOL if pool.get(member) is not None}
    if pool.get("networkTopologyId"):
        writer.report.lose("topology of node pool", name, "describe the network of the target's nodes there")
    if name in writer.scopes.there["node pool"] and pool.get("isDefault"):
        # Its label is the target's own.
        body = {member: value for member, value in body.items() if not member.startswith("label")}
    _write(writer, "node pool", name, "/api/v1/node-pools", body)


def _write_owner(writer: Writer, kind: str, owner: Json, more: Json) -> None:
    name = str(owner["name"])
    body = {member: owner[member] for member in _OWNER if owner.get(member)} | {
        member: value for member, value in more.items() if value is not None
    }
    body["resources"] = [_quota(writer, kind, name, row) for row in owner.get("resources") or ()]
    body["resources"] = [row for row in body["resources"] if row is not None]
    _write(writer, kind, name, f"/api/v1/org-unit/{kind}s", body)


def _quota(writer: Writer, kind: str, name: str, row: Json) -> Json | None:
    """The quota in one node pool, with the target's id of the pool."""
    pool = str((row.get("nodePool") or {}).get("name") or "default")
    pool_id = writer.scopes.id_of("node pool", pool)
    if pool_id is None:
        writer.report.lose(f"quota of {kind}", name, f"the target has no node pool {pool}")
        return None
    members = {member: row[member] for member in ("gpu", "cpu", "memory", "priority") if row.get(member) is not None}
    if members.get("gpu", {}).get("deserved") is None:
        members.pop("gpu", None)
    return {**members, "nodePool": {"id": pool_id, "name": pool}}


def _write(writer: Writer, kind: str, name: str, path: str, body: Json) -> None:
    """Create it; if it is there, change it if that was asked for."""
    there: Any = writer.scopes.there[kind].get(name)
    if there is None:
        created = writer.create(kind, name, path, {"name": name, "clusterId": writer.scopes.cluster_id, **body})
        if created is not None:
            writer.scopes.there[kind][name] = {**created, "name": name}
        return
    body.pop("parentId", None)
    differing = [member for member, value in body.items() if _comparable(value) != _comparable(there.get(member))]
    if not differing:
        writer.leave_unchanged(kind, name)
    elif writer.updates:
        writer.put(kind, name, f"{path}/{there['id']}", body)
    else:
        writer.leave_unchanged(kind, name, f"differs in {', '.join(differing)}; --update changes it")


def _comparable(value: object) -> Any:
    """As `_plain`; quotas in node pools that a dry run would create cannot be compared yet."""
    if isinstance(value, list):
        value = [one for one in value if not (isinstance(one, dict) and _is_new(one.get("nodePool")))]
    return _plain(value)


def _is_new(pool: object) -> bool:
    return isinstance(pool, dict) and pool.get("id") == Scopes.NEW


def _plain(value: object) -> Any:
    """A value without members that are null, with pools by name: ids differ between servers."""
    if isinstance(value, dict):
        pairs = {key: _plain(inner) for key, inner in value.items() if inner is not None and key != "id"}
        return {key: inner for key, inner in pairs.items() if inner != {}}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
