"""Request bodies of departments, projects and node pools, and their conversion to inputs of use cases.

The API's description is generated from these declarations, and `read_json` reports everything in a body that they
do not allow.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from fairlead.api.http.body import DURATION_PATTERN, DURATION_RULE, read_duration, read_json
from fairlead.control.organization.inputs import NodePoolInput, OwnerInput, PoolQuotaInput, QuotaInput
from fairlead.model.spec.fields import INT32_MAX, Given, Maybe, QuantityText, Spec, Text, UpTo63, UpTo250, UpTo253

_LARGEST = 1e15
Amount = Annotated[float, Meta(ge=-1, le=_LARGEST)]
Seconds = Annotated[int, Meta(ge=1, le=INT32_MAX)]
Names = Annotated[tuple[UpTo253, ...], Meta(max_length=1000)]
#: Bytes per unit.
UNITS = {"Mib": 2**20, "MB": 10**6, "GB": 10**9}


class ResourceBody(Spec, frozen=True, kw_only=True):
    """One resource; null is unlimited."""

    deserved: Maybe[Amount] = UNSET
    limit: Maybe[Amount] = UNSET
    over_quota_weight: Maybe[Amount] = UNSET


class GpuBody(Spec, frozen=True, kw_only=True):
    deserved: Given[Amount] = UNSET
    limit: Maybe[Amount] = UNSET
    over_quota_weight: Maybe[Amount] = UNSET


class MemoryBody(ResourceBody, frozen=True, kw_only=True):
    units: Literal["Mib", "MB", "GB"]


class PoolBody(Spec, frozen=True, kw_only=True):
    id: str
    name: Given[str] = UNSET


class PoolQuotaBody(Spec, frozen=True, kw_only=True):
    """The quota of a project or department in one node pool: GPU devices, CPU in millicores, memory in `units`."""

    gpu: Given[GpuBody] = UNSET
    cpu: Maybe[ResourceBody] = UNSET
    memory: Maybe[MemoryBody] = UNSET
    node_pool: Maybe[PoolBody] = UNSET
    priority: Maybe[str] = UNSET


Resources = Annotated[tuple[PoolQuotaBody, ...], Meta(max_length=1000)]


class SchedulingRulesBody(Spec, frozen=True, kw_only=True):
    interactive_job_time_limit_seconds: Maybe[Seconds] = UNSET
    interactive_job_max_idle_duration_seconds: Maybe[Seconds] = UNSET
    interactive_job_preempt_idle_duration_seconds: Maybe[Seconds] = UNSET
    training_job_time_limit_seconds: Maybe[Seconds] = UNSET
    training_job_max_idle_duration_seconds: Maybe[Seconds] = UNSET


class NodeTypesBody(Spec, frozen=True, kw_only=True):
    training: Maybe[Names] = UNSET
    workspace: Maybe[Names] = UNSET
    names: Maybe[dict[str, str]] = UNSET


class OwnerUpdate(Spec, frozen=True, kw_only=True):
    """Changes to a department; fields that are left out stay as they are."""

    resources: Resources
    description: Given[UpTo250] = UNSET
    default_node_pools: Maybe[Names] = UNSET
    scheduling_rules: Maybe[SchedulingRulesBody] = UNSET
    node_types: Maybe[NodeTypesBody] = UNSET


class ProjectUpdate(OwnerUpdate, frozen=True, kw_only=True):
    """Changes to a project; fields that are left out stay as they are."""

    enforce_runai_scheduler: Maybe[bool] = UNSET


class DepartmentCreation(OwnerUpdate, frozen=True, kw_only=True):
    """A new department."""

    name: str
    cluster_id: str
    #: Part of the contract, but without effect in a request.
    overtime_data: Maybe[dict[str, Any]] = UNSET


class ProjectCreation(ProjectUpdate, frozen=True, kw_only=True):
    """A new project; without parentId it belongs to the department named default."""

    name: str
    cluster_id: str
    parent_id: Maybe[str] = UNSET
    requested_namespace: Given[UpTo63] = UNSET


class PlacementBody(Spec, frozen=True, kw_only=True):
    cpu: Maybe[Literal["spread", "binpack"]] = UNSET
    gpu: Maybe[Literal["spread", "binpack"]] = UNSET


class SchedulingBody(Spec, frozen=True, kw_only=True):
    placement_strategy: Maybe[PlacementBody] = UNSET
    min_guaranteed_runtime: Maybe[
        Annotated[str, Meta(max_length=63, pattern=DURATION_PATTERN, extra={"rule": DURATION_RULE})]
    ] = UNSET


class GpuOptimizationBody(Spec, frozen=True, kw_only=True):
    swap_enabled: Maybe[bool] = UNSET
    cpu_swap_memory_size: Maybe[QuantityText] = UNSET
    reserved_gpu_memory_for_swap_operations: Maybe[QuantityText] = UNSET
    node_level_scheduler_enabled: Maybe[bool] = UNSET


class NodePoolUpdate(Spec, frozen=True, kw_only=True):
    """Changes to a node pool; fields that are left out or null stay as they are."""

    label_key: Maybe[Text] = UNSET
    label_value: Maybe[Text] = UNSET
    scheduling_configuration: Maybe[SchedulingBody] = UNSET
    placement_strategy: Maybe[PlacementBody] = UNSET
    gpu_resource_optimization: Maybe[GpuOptimizationBody] = UNSET
    gpu_network_acceleration_detection: Maybe[Literal["Use", "DontUse", "Auto"]] = UNSET
    gpu_network_acceleration_label_key: Maybe[str] = UNSET
    network_topology_id: Maybe[str] = UNSET
    over_provisioning_ratio: Maybe[Annotated[int, Meta(ge=1, le=5)]] = UNSET


class NodePoolCreation(NodePoolUpdate, frozen=True, kw_only=True):
    """A new node pool: the nodes that carry its label."""

    name: Text
    label_key: Text
    label_value: Text
    cluster_id: str


class _Listed(Spec, frozen=True, kw_only=True):
    """Gives the items of a list without a name a path in error messages."""

    resources: Resources


def read_resources(body: bytes) -> tuple[PoolQuotaBody, ...]:
    """The body of `…/resources`, which is a list."""
    return read_json(_Listed, b'{"resources":' + body + b"}").resources


def owner_input(body: OwnerUpdate) -> OwnerInput:
    """The input of a use case from the body of a department or a project."""
    rules, types = body.scheduling_rules, body.node_types
    members: dict[str, Any] = {}
    if isinstance(body, ProjectUpdate) and isinstance(body.enforce_runai_scheduler, bool):
        members["enforce_scheduler"] = body.enforce_runai_scheduler
    if isinstance(body, DepartmentCreation | ProjectCreation):
        members |= {"name": body.name, "cluster_id": body.cluster_id}
    if isinstance(body, ProjectCreation):
        members |= {"parent_id": body.parent_id or "", "requested_namespace": body.requested_namespace or ""}
    return OwnerInput(
        description=body.description,
        resources=pool_quota_inputs(body.resources),
        default_node_pools=body.default_node_pools,
        scheduling_rules=msgspec.to_builtins(rules) if isinstance(rules, SchedulingRulesBody) else rules,
        node_types=msgspec.to_builtins(types) if isinstance(types, NodeTypesBody) else types,
        **members,
    )


def resources_input(resources: tuple[PoolQuotaBody, ...], *, is_merge: bool) -> OwnerInput:
    return OwnerInput(resources=pool_quota_inputs(resources), is_merge=is_merge)


def pool_quota_inputs(resources: tuple[PoolQuotaBody, ...]) -> tuple[PoolQuotaInput, ...]:
    return tuple(_pool_quota_input(body, f"resources[{place}]") for place, body in enumerate(resources))


def _pool_quota_input(body: PoolQuotaBody, path: str) -> PoolQuotaInput:
    pool, memory = body.node_pool, body.memory
    units = memory.units if isinstance(memory, MemoryBody) else ""
    return PoolQuotaInput(
        path=path,
        node_pool_id=pool.id if isinstance(pool, PoolBody) else None,
        node_pool_name=(pool.name or "") if isinstance(pool, PoolBody) else "",
        gpu=_quota_input(body.gpu) or QuotaInput(),
        cpu=_quota_input(body.cpu),
        memory=_quota_input(memory, UNITS.get(units, 1)),
        memory_units=units,
        priority=body.priority,
    )


def _quota_input(body: Maybe[GpuBody | ResourceBody], scale: int = 1) -> QuotaInput | None:
    if body is None or body is UNSET:
        return None if body is None else QuotaInput()

    def scaled(value: object) -> Any:
        return value * scale if isinstance(value, float | int) and value >= 0 else value

    return QuotaInput(
        deserved=scaled(body.deserved), limit=scaled(body.limit), over_quota_weight=body.over_quota_weight
    )


_KEPT = (
    "gpu_resource_optimization",
    "gpu_network_acceleration_detection",
    "gpu_network_acceleration_label_key",
    "over_provisioning_ratio",
)


def node_pool_input(body: NodePoolUpdate) -> NodePoolInput:
    members: dict[str, Any] = {}
    if isinstance(body, NodePoolCreation):
        members |= {"name": body.name, "cluster_id": body.cluster_id}
    for name in ("label_key", "label_value", "network_topology_id"):
        if getattr(body, name) not in (UNSET, None):
            members[name] = getattr(body, name)
    scheduling = body.scheduling_configuration
    placements = [body.placement_strategy]
    if isinstance(scheduling, SchedulingBody):
        placements.append(scheduling.placement_strategy)
        if isinstance(scheduling.min_guaranteed_runtime, str):
            members["min_guaranteed_runtime_seconds"] = read_duration(scheduling.min_guaranteed_runtime)
    for placement in placements:
        if isinstance(placement, PlacementBody):
            members |= {
                f"placement_{name}": value
                for name, value in (("gpu", placement.gpu), ("cpu", placement.cpu))
                if isinstance(value, str)
            }
    plain = msgspec.to_builtins({name: getattr(body, name) for name in _KEPT if getattr(body, name) is not UNSET})
    return NodePoolInput(settings=plain, **members)
