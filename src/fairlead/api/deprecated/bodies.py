"""Bodies and views of projects, departments and node pools in the older API, and their conversion.

Ids are numbers there, -1 is unlimited, and quotas of memory are in MiB, or in MB if the query says so.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.api.organization.bodies import Amount, Names, NodeTypesBody, PlacementBody, Seconds
from fairlead.control.organization.inputs import UNLIMITED, NodePoolInput, OwnerInput, PoolQuotaInput, QuotaInput
from fairlead.control.organization.inventory import Usages
from fairlead.model.clock import iso
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.model.records.organization import Cluster, Department, NodePool, PoolQuota, Project, Quota
from fairlead.model.spec.fields import Given, Spec, Text

#: Bytes per unit of memory, and the name of that unit in quotas of today.
MIB, MB = (2**20, "Mib"), (10**6, "MB")
#: The time limits by their older names.
_RULES = {
    "interactiveJobTimeLimitSeconds": "interactive_job_time_limit_secs",
    "interactiveJobMaxIdleDurationSeconds": "interactive_job_max_idle_duration_secs",
    "interactiveJobPreemptIdleDurationSeconds": "interactive_preemptible_job_max_idle_duration_secs",
    "trainingJobTimeLimitSeconds": "training_job_time_limit_secs",
    "trainingJobMaxIdleDurationSeconds": "training_job_max_idle_duration_secs",
}


class AssignedResource(Spec, frozen=True, kw_only=True):
    """One resource; -1 is unlimited."""

    deserved: Given[Amount] = UNSET
    max_allowed: Given[Amount] = UNSET
    over_quota_weight: Given[Amount] = UNSET


class AssignedBody(Spec, frozen=True, kw_only=True):
    """Quotas: GPU devices, millicores, and MiB or MB of memory."""

    id: Given[int] = UNSET
    gpu: Given[AssignedResource] = UNSET
    cpu: Given[AssignedResource] = UNSET
    memory: Given[AssignedResource] = UNSET


class PoolReference(Spec, frozen=True, kw_only=True):
    id: int
    name: Given[str] = UNSET


class PoolAssignedBody(AssignedBody, frozen=True, kw_only=True):
    node_pool: PoolReference


class NodeTypeReference(Spec, frozen=True, kw_only=True):
    id: Given[int] = UNSET
    name: Given[str] = UNSET


class AffinityBody(Spec, frozen=True, kw_only=True):
    affinity_type: Given[Literal["no_limit", "only_selected"]] = UNSET
    selected_types: Given[tuple[NodeTypeReference, ...]] = UNSET


class JobsAffinityBody(Spec, frozen=True, kw_only=True):
    interactive: Given[AffinityBody] = UNSET
    train: Given[AffinityBody] = UNSET


class PermissionsBody(Spec, frozen=True, kw_only=True):
    applications: Given[tuple[str, ...]] = UNSET
    groups: Given[tuple[str, ...]] = UNSET
    users: Given[tuple[str, ...]] = UNSET


class DeprecatedProjectUpdate(Spec, frozen=True, kw_only=True):
    """Changes to a project; fields that are left out stay as they are."""

    node_pools_resources: Given[tuple[PoolAssignedBody, ...]] = UNSET
    resources: Given[AssignedBody] = UNSET
    deserved_gpus: Given[Amount] = UNSET
    max_allowed_gpus: Given[Amount] = UNSET
    gpu_over_quota_weight: Given[Annotated[float, Meta(ge=0, le=3)]] = UNSET
    default_node_pools: Given[Names] = UNSET
    interactive_job_time_limit_secs: Given[Seconds] = UNSET
    interactive_job_max_idle_duration_secs: Given[Seconds] = UNSET
    interactive_preemptible_job_max_idle_duration_secs: Given[Seconds] = UNSET
    training_job_time_limit_secs: Given[Seconds] = UNSET
    training_job_max_idle_duration_secs: Given[Seconds] = UNSET
    node_affinity: Given[JobsAffinityBody] = UNSET
    permissions: Given[PermissionsBody] = UNSET


class DeprecatedProjectCreation(DeprecatedProjectUpdate, frozen=True, kw_only=True):
    """A new project."""

    name: str
    department_id: int
    namespace: Given[str] = UNSET


class DeprecatedNodePoolLabels(Spec, frozen=True, kw_only=True):
    label_key: Given[Text] = UNSET
    label_value: Given[Text] = UNSET


class DeprecatedNodePoolUpdate(DeprecatedNodePoolLabels, frozen=True, kw_only=True):
    placement_strategy: Given[PlacementBody] = UNSET
    over_provisioning_ratio: Given[Annotated[int, Meta(ge=1, le=5)]] = UNSET


class DeprecatedNodePoolCreation(DeprecatedNodePoolUpdate, frozen=True, kw_only=True):
    """A new node pool: the nodes that carry its label."""

    name: Text


class ResourceView(Shape):
    deserved: float
    max_allowed: float
    over_quota_weight: float


class PoolView(Shape):
    id: int
    name: str


class PoolAssignedView(Shape):
    id: int
    node_pool: PoolView
    gpu: ResourceView
    cpu: ResourceView
    memory: ResourceView


class AmountsView(Shape):
    gpu: float
    cpu: float
    memory: float


class PoolStatusView(Shape):
    node_pool_name: str
    allocated: AmountsView
    allocated_non_preemptible: AmountsView


class DeprecatedProjectStatus(Shape):
    namespace: str
    message: str
    quota_statuses: list[PoolStatusView]


class DeprecatedProject(Shape):
    """A project with its quotas by node pool; numbers of GPUs over all pools."""

    id: int
    name: str
    cluster_uuid: Uuid
    tenant_id: int
    department_id: int
    department_name: str
    namespace: str
    created_at: Instant
    phase: str
    deserved_gpus: float
    max_allowed_gpus: float
    default_node_pools: tuple[str, ...]
    node_pools_resources: list[PoolAssignedView]
    status: DeprecatedProjectStatus
    interactive_job_time_limit_secs: int | msgspec.UnsetType = UNSET
    interactive_job_max_idle_duration_secs: int | msgspec.UnsetType = UNSET
    interactive_preemptible_job_max_idle_duration_secs: int | msgspec.UnsetType = UNSET
    training_job_time_limit_secs: int | msgspec.UnsetType = UNSET
    training_job_max_idle_duration_secs: int | msgspec.UnsetType = UNSET


class DeprecatedDepartment(Shape):
    """A department with its quotas by node pool and its projects."""

    id: int
    name: str
    cluster_uuid: str
    tenant_id: int
    created_at: Instant
    deserved_gpus: float
    max_allowed_gpus: float
    node_pools_resources: list[PoolAssignedView]
    projects: list[DeprecatedProject]


class DeprecatedNodePool(Shape):
    id: int
    name: str
    cluster_id: Uuid
    label_key: str
    label_value: str
    is_default: bool
    nodes: str
    status: Literal["Ready", "Empty"]
    status_message: str
    over_provisioning_ratio: int
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str


def project_input(body: DeprecatedProjectUpdate, cluster_id: str, unit: tuple[int, str] = MIB) -> OwnerInput:
    """The input of a use case; raises `Invalid` for access that the body would give."""
    if body.permissions is not UNSET and any(msgspec.structs.astuple(body.permissions)):
        detail = "is not supported; give access with POST /api/v1/authorization/access-rules"
        raise Invalid(issues=(ComplianceIssue("permissions", detail),))
    rules = {name: getattr(body, older) for name, older in _RULES.items() if getattr(body, older) is not UNSET}
    given = _pool_inputs(body, unit)
    creation = body if isinstance(body, DeprecatedProjectCreation) else None
    return OwnerInput(
        name=creation.name if creation else "",
        cluster_id=cluster_id,
        parent_id=str(creation.department_id) if creation else "",
        requested_namespace=(creation.namespace or "") if creation else "",
        resources=given,
        is_merge=True,
        default_node_pools=body.default_node_pools,
        scheduling_rules=rules or UNSET,
        node_types=_node_types(body.node_affinity),
    )


def _pool_inputs(
    body: DeprecatedProjectUpdate, unit: tuple[int, str]
) -> tuple[PoolQuotaInput, ...] | msgspec.UnsetType:
    if body.node_pools_resources is not UNSET:
        return tuple(
            _pool_input(each, f"nodePoolsResources[{number}]", each.node_pool, unit)
            for number, each in enumerate(body.node_pools_resources)
        )
    if body.resources is not UNSET:
        return (_pool_input(body.resources, "resources", None, unit),)
    if (body.deserved_gpus, body.max_allowed_gpus, body.gpu_over_quota_weight) == (UNSET, UNSET, UNSET):
        return UNSET
    gpu = QuotaInput(
        deserved=body.deserved_gpus, limit=body.max_allowed_gpus, over_quota_weight=body.gpu_over_quota_weight
    )
    return (PoolQuotaInput(path="deservedGpus", gpu=gpu),)


def _pool_input(body: AssignedBody, path: str, pool: PoolReference | None, unit: tuple[int, str]) -> PoolQuotaInput:
    return PoolQuotaInput(
        path=path,
        node_pool_id=str(pool.id) if pool else None,
        node_pool_name=(pool.name or "") if pool else "",
        gpu=_quota_input(body.gpu),
        cpu=_quota_input(body.cpu),
        memory=_quota_input(body.memory, unit[0]),
        memory_units=unit[1] if body.memory is not UNSET else "",
    )


def _quota_input(body: Given[AssignedResource], scale: int = 1) -> QuotaInput:
    if body is UNSET:
        return QuotaInput()

    def scaled(value: Given[float]) -> Given[float]:
        return value * scale if value is not UNSET and value >= 0 else value

    return QuotaInput(
        deserved=scaled(body.deserved), limit=scaled(body.max_allowed), over_quota_weight=body.over_quota_weight
    )


def _node_types(body: Given[JobsAffinityBody]) -> dict[str, object] | msgspec.UnsetType:
    if body is UNSET:
        return UNSET
    types: dict[str, object] = msgspec.to_builtins(
        NodeTypesBody(training=_selected(body.train), workspace=_selected(body.interactive))
    )
    return types


def _selected(body: Given[AffinityBody]) -> Given[tuple[str, ...]]:
    if body is UNSET or body.affinity_type != "only_selected":
        return UNSET
    return tuple(each.name for each in body.selected_types or () if each.name)


def node_pool_input(body: DeprecatedNodePoolLabels, cluster_id: str) -> NodePoolInput:
    members: dict[str, Any] = {
        name: value for name in ("label_key", "label_value") if (value := getattr(body, name)) is not UNSET
    }
    settings = {}
    if isinstance(body, DeprecatedNodePoolUpdate):
        placement = body.placement_strategy
        for side in ("gpu", "cpu") if placement is not UNSET else ():
            if isinstance(getattr(placement, side), str):
                members[f"placement_{side}"] = getattr(placement, side)
        if body.over_provisioning_ratio is not UNSET:
            settings["over_provisioning_ratio"] = body.over_provisioning_ratio
    name = body.name if isinstance(body, DeprecatedNodePoolCreation) else ""
    return NodePoolInput(name=name, cluster_id=cluster_id, settings=settings, **members)


def _resource(quota: Quota, scale: int = 1) -> ResourceView:
    return ResourceView(
        deserved=UNLIMITED if quota.deserved is None else quota.deserved / scale,
        max_allowed=UNLIMITED if quota.limit is None else quota.limit / scale,
        over_quota_weight=quota.over_quota_weight,
    )


def _pool_quota(quota: PoolQuota, unit: tuple[int, str]) -> PoolAssignedView:
    id = int(quota.node_pool_id)
    return PoolAssignedView(
        id=id,
        node_pool=PoolView(id=id, name=quota.node_pool_name),
        gpu=_resource(quota.gpu),
        cpu=_resource(quota.cpu),
        memory=_resource(quota.memory, unit[0]),
    )


def _total(parts: list[float | None]) -> float:
    return UNLIMITED if None in parts else sum(part or 0.0 for part in parts)


def render_project(project: Project, cluster: Cluster, usages: Usages, unit: tuple[int, str]) -> DeprecatedProject:
    statuses = []
    for quota in project.resources:
        usage = usages.get((project.id, quota.node_pool_name))
        allocated = (usage.gpu, usage.cpu_milli, usage.memory_bytes) if usage else (0.0, 0, 0)
        fixed = (usage.fixed_gpu, usage.fixed_cpu_milli, usage.fixed_memory_bytes) if usage else (0.0, 0, 0)
        statuses.append(
            PoolStatusView(
                node_pool_name=quota.node_pool_name,
                allocated=AmountsView(gpu=allocated[0], cpu=allocated[1], memory=allocated[2] / unit[0]),
                allocated_non_preemptible=AmountsView(gpu=fixed[0], cpu=fixed[1], memory=fixed[2] / unit[0]),
            )
        )
    rules: dict[str, Any] = project.scheduling_rules
    return DeprecatedProject(
        id=int(project.id),
        name=project.name,
        cluster_uuid=cluster.id,
        tenant_id=cluster.tenant_id,
        department_id=int(project.department_id),
        department_name=project.department_name,
        namespace=project.namespace,
        created_at=iso(project.created_at),
        phase="Ready" if project.deleted_at is None else "Deleting",
        deserved_gpus=_total([quota.gpu.deserved for quota in project.resources]),
        max_allowed_gpus=_total([quota.gpu.limit for quota in project.resources]),
        default_node_pools=project.default_node_pools,
        node_pools_resources=[_pool_quota(quota, unit) for quota in project.resources],
        status=DeprecatedProjectStatus(namespace=project.namespace, message="", quota_statuses=statuses),
        **{older: rules[name] for name, older in _RULES.items() if name in rules},
    )


def render_department(
    department: Department, cluster: Cluster, projects: list[DeprecatedProject], unit: tuple[int, str]
) -> DeprecatedDepartment:
    return DeprecatedDepartment(
        id=int(department.id),
        name=department.name,
        cluster_uuid=cluster.id,
        tenant_id=cluster.tenant_id,
        created_at=iso(department.created_at),
        deserved_gpus=_total([quota.gpu.deserved for quota in department.resources]),
        max_allowed_gpus=_total([quota.gpu.limit for quota in department.resources]),
        node_pools_resources=[_pool_quota(quota, unit) for quota in department.resources],
        projects=projects,
    )


def render_node_pool(pool: NodePool, label: tuple[str, str], nodes: list[str], is_default: bool) -> DeprecatedNodePool:
    return DeprecatedNodePool(
        id=int(pool.id),
        name=pool.name,
        cluster_id=pool.cluster_id,
        label_key=label[0],
        label_value=label[1],
        is_default=is_default,
        nodes=",".join(nodes),
        status="Ready" if nodes else "Empty",
        status_message="",
        over_provisioning_ratio=pool.settings.get("over_provisioning_ratio") or 1,
        created_at=iso(pool.created_at),
        created_by=pool.created_by,
        updated_at=iso(pool.updated_at),
        updated_by=pool.updated_by,
    )
