"""Input of the use cases on departments, projects and node pools, in the units of the records.

The API builds it from a request. Left out (UNSET), null (None) and a value differ.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from fairlead.model.clock import Millis
from fairlead.model.errors import ComplianceIssue
from fairlead.model.records.organization import Department, NodePool, PoolQuota, Quota

#: Another way to write unlimited, for places that do not allow null.
UNLIMITED = -1.0


class QuotaInput(msgspec.Struct, frozen=True, kw_only=True):
    """Devices, millicores or bytes; None means unlimited (for the weight: the default)."""

    deserved: float | UnsetType | None = UNSET
    limit: float | UnsetType | None = UNSET
    over_quota_weight: float | UnsetType | None = UNSET


class PoolQuotaInput(msgspec.Struct, frozen=True, kw_only=True):
    #: Its path in the request, for issues.
    path: str
    #: None means the default pool.
    node_pool_id: str | None = None
    node_pool_name: str = ""
    gpu: QuotaInput = QuotaInput()
    #: None sets back to unlimited.
    cpu: QuotaInput | None = QuotaInput()
    memory: QuotaInput | None = QuotaInput()
    memory_units: str = ""
    priority: str | UnsetType | None = UNSET


class OwnerInput(msgspec.Struct, frozen=True, kw_only=True):
    """The desired state of a department or a project. Unset members stay as they are."""

    name: str = ""
    cluster_id: str = ""
    parent_id: str = ""
    requested_namespace: str = ""
    enforce_scheduler: bool | UnsetType = UNSET
    description: str | UnsetType = UNSET
    resources: tuple[PoolQuotaInput, ...] | UnsetType = UNSET
    #: Whether pools and values that are not given stay, instead of getting the defaults of a new project.
    is_merge: bool = False
    default_node_pools: tuple[str, ...] | UnsetType | None = UNSET
    scheduling_rules: dict[str, int | None] | UnsetType | None = UNSET
    node_types: dict[str, object] | UnsetType | None = UNSET


class NodePoolInput(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    cluster_id: str = ""
    label_key: str | UnsetType = UNSET
    label_value: str | UnsetType = UNSET
    placement_gpu: str | UnsetType = UNSET
    placement_cpu: str | UnsetType = UNSET
    min_guaranteed_runtime_seconds: int | UnsetType = UNSET
    network_topology_id: str | UnsetType = UNSET
    settings: dict[str, Any] = {}


def apply_quota_input(input: QuotaInput | None, before: Quota, path: str, issues: list[ComplianceIssue]) -> Quota:
    """The quota with the input applied."""
    if input is None:
        return Quota(deserved=None)
    members = {}
    for name, value in (("deserved", input.deserved), ("limit", input.limit)):
        if value is UNSET:
            continue
        if isinstance(value, float | int) and value < 0 and value != UNLIMITED:
            issues.append(ComplianceIssue(f"{path}.{name}", f"is {value:g}; it must be 0 or more, or -1 for unlimited"))
        members[name] = None if value == UNLIMITED else value
    if input.over_quota_weight is not UNSET:
        weight = input.over_quota_weight
        if weight is not None and weight < 0:
            issues.append(ComplianceIssue(f"{path}.overQuotaWeight", f"is {weight:g}; it must be 0 or more"))
        members["over_quota_weight"] = Quota().over_quota_weight if weight is None else weight
    quota: Quota = msgspec.structs.replace(before, **members)
    if quota.limit is not None and quota.deserved is not None and quota.limit < quota.deserved:
        issues.append(ComplianceIssue(f"{path}.limit", f"is {quota.limit:g}, below the quota of {quota.deserved:g}"))
    return quota


def apply_pool_input(
    input: PoolQuotaInput, before: PoolQuota, ranks: tuple[str, ...], issues: list[ComplianceIssue]
) -> PoolQuota:
    priority = before.priority
    if input.priority is None:
        priority = PoolQuota(node_pool_id="", node_pool_name="").priority
    elif input.priority is not UNSET:
        priority = input.priority
        if priority not in ranks:
            issues.append(
                ComplianceIssue(f"{input.path}.priority", f"is '{priority[:40]}'; allowed are {', '.join(ranks)}")
            )
    return PoolQuota(
        node_pool_id=before.node_pool_id,
        node_pool_name=before.node_pool_name,
        gpu=apply_quota_input(input.gpu, before.gpu, f"{input.path}.gpu", issues),
        cpu=apply_quota_input(input.cpu, before.cpu, f"{input.path}.cpu", issues),
        memory=apply_quota_input(input.memory, before.memory, f"{input.path}.memory", issues),
        priority=priority,
        memory_units=input.memory_units or before.memory_units,
    )


def apply_resource_inputs(
    input: OwnerInput,
    before: Department | None,
    pools: dict[str, NodePool],
    ranks: tuple[str, ...],
    issues: list[ComplianceIssue],
) -> tuple[PoolQuota, ...]:
    """An owner's quotas in every pool, the default pool first. In a pool that is not named it may only borrow."""
    known = {quota.node_pool_id: quota for quota in before.resources} if before else {}
    quotas = {id: PoolQuota(node_pool_id=id, node_pool_name=pool.name) for id, pool in pools.items()}
    if input.is_merge or input.resources is UNSET:
        quotas |= {id: quota for id, quota in known.items() if id in pools}
    seen: set[str] = set()
    for each in input.resources if input.resources is not UNSET else ():
        pool = _pool_named(each, pools, issues)
        if pool is None:
            continue
        if pool.id in seen:
            issues.append(ComplianceIssue(f"{each.path}.nodePool.id", f"names node pool {pool.id} twice"))
        seen.add(pool.id)
        quotas[pool.id] = apply_pool_input(each, quotas[pool.id], ranks, issues)
    return tuple(quotas[id] for id in sorted(quotas, key=int))


def _pool_named(input: PoolQuotaInput, pools: dict[str, NodePool], issues: list[ComplianceIssue]) -> NodePool | None:
    default = min(pools.values(), key=lambda pool: int(pool.id))
    pool = default if input.node_pool_id is None else pools.get(input.node_pool_id)
    known = ", ".join(f"{one.id} ({one.name})" for one in pools.values())
    if pool is None:
        issues.append(
            ComplianceIssue(
                f"{input.path}.nodePool.id", f"there is no node pool {input.node_pool_id}; known are {known}"
            )
        )
    elif input.node_pool_name and input.node_pool_name != pool.name:
        issues.append(
            ComplianceIssue(
                f"{input.path}.nodePool.name", f"node pool {pool.id} is named {pool.name}; known are {known}"
            )
        )
        return None
    return pool


def owner_members(input: OwnerInput, caller: str, now: Millis) -> dict[str, object]:
    """The members of the record that the input sets, without quotas."""
    members: dict[str, object] = {"updated_at": now, "updated_by": caller}
    if input.description is not UNSET:
        members["description"] = input.description
    if input.default_node_pools is not UNSET:
        members["default_node_pools"] = tuple(dict.fromkeys(input.default_node_pools or ()))
    if input.scheduling_rules is not UNSET:
        rules = input.scheduling_rules or {}
        members["scheduling_rules"] = {name: limit for name, limit in rules.items() if limit is not None}
    if input.node_types is not UNSET:
        members["node_types"] = input.node_types or {}
    return members
