"""Routes that read clusters, departments, projects and ranks, and their views."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.admission.project_rules import effective_node_pools, effective_node_types, effective_rules
from fairlead.api.http.body import query_boolean, query_choice
from fairlead.api.http.crud import HandledRoute, failing
from fairlead.api.http.list_parameters import (
    LIMIT,
    OFFSET,
    SEARCH,
    filter_by,
    next_offset,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import OURS, Call, Handler, Operation, Parameter, Schema, as_json
from fairlead.api.http.shapes import Count, Instant, Shape, Uuid
from fairlead.api.organization.bodies import UNITS
from fairlead.control.context import Context
from fairlead.control.organization import inventory
from fairlead.control.organization.inventory import DEPARTMENT_FIELD_NAMES, PROJECT_FIELD_NAMES, OwnerUsage, Usages
from fairlead.model.clock import iso
from fairlead.model.records.organization import RANKS, Cluster, Department, PoolQuota, Project, Quota

#: The version of Run:ai's API that this server implements; clients compare it.
INTERFACE_VERSION = "2.24"
#: An unlimited quota of GPUs, because the field cannot be null.
UNLIMITED = -1.0
_MIB = 2**20
_MB = 10**6
_DEFAULT_RANK = PoolQuota(node_pool_id="", node_pool_name="").priority


class ClusterStatus(Shape):
    state: Literal["WaitingToConnect", "Connected", "Disconnected"]
    #: Why it is not connected.
    reason: Annotated[str | UnsetType, OURS] = UNSET
    conditions: tuple[dict[str, str], ...] | UnsetType = UNSET


class ClusterView(Shape):
    """The cluster of this installation."""

    uuid: Uuid
    tenant_id: int
    name: str
    created_at: Instant
    domain: str | None
    version: str | None
    updated_at: Instant | None
    deleted_at: Instant | None
    last_liveness: Instant | None
    #: What runs its pods: this machine, or Kubernetes.
    engine: Annotated[Literal["local", "kubernetes"], OURS]
    status: ClusterStatus | UnsetType = UNSET


class QuotaView(Shape):
    """GPU devices or millicores; null is unlimited, except for deserved GPUs, where -1 is unlimited."""

    deserved: float | None
    limit: float | None
    over_quota_weight: float | None


class MemoryQuotaView(QuotaView, kw_only=True):
    units: Literal["Mib", "MB", "GB"]


class PoolName(Shape):
    id: str
    name: str


class PoolQuotaView(Shape):
    gpu: QuotaView
    cpu: QuotaView
    memory: MemoryQuotaView
    node_pool: PoolName
    priority: str


class QuotaAmounts(Shape):
    gpu: float
    cpu: float
    memory: float


class QuotaStatus(Shape):
    """What running pods use, and what running and waiting pods request together: GPU devices, millicores, megabytes."""

    allocated: QuotaAmounts
    allocated_non_preemptible: QuotaAmounts
    requested: QuotaAmounts | UnsetType = UNSET


class PoolQuotaStatus(QuotaStatus, kw_only=True):
    node_pool_id: str
    node_pool_name: str


class TotalResources(Shape):
    gpu_quota: float | None
    cpu_quota: float | None
    memory_quota: float | None


class DepartmentStatus(Shape):
    quota_status: QuotaStatus
    node_pool_quota_statuses: tuple[PoolQuotaStatus, ...]


class ProjectStatus(Shape):
    namespace: str
    phase: Literal["Ready", "NotReady", "Deleting"]
    phase_message: str | None
    quota_status: QuotaStatus
    node_pool_quota_statuses: tuple[PoolQuotaStatus, ...]


class DepartmentView(Shape):
    """A department and its quota per node pool."""

    id: str
    name: str
    description: str
    cluster_id: Uuid
    created_at: Instant
    updated_at: Instant
    created_by: str
    updated_by: str
    resources: tuple[PoolQuotaView, ...]
    total_resources: TotalResources
    default_node_pools: tuple[str, ...] | None
    scheduling_rules: dict[str, int | None] | None
    node_types: dict[str, Any] | None
    status: DepartmentStatus


class Effective(Shape):
    """The effective settings of a project: its own combined with those of its department."""

    default_node_pools: tuple[str, ...] | None
    scheduling_rules: dict[str, int | None] | None
    node_types: dict[str, Any] | None


class ProjectView(Shape):
    """A project, its quota per node pool and its usage."""

    id: str
    name: str
    description: str
    cluster_id: Uuid
    parent_id: str
    created_at: Instant
    updated_at: Instant
    created_by: str
    updated_by: str
    enforce_runai_scheduler: bool
    requested_namespace: str | None
    resources: tuple[PoolQuotaView, ...]
    total_resources: TotalResources
    default_node_pools: tuple[str, ...] | None
    scheduling_rules: dict[str, int | None] | None
    node_types: dict[str, Any] | None
    effective: Effective
    status: ProjectStatus


class DepartmentList(Shape):
    departments: list[DepartmentView]
    next: int | UnsetType = UNSET


class ProjectList(Shape):
    projects: list[ProjectView]
    next: int | UnsetType = UNSET


class Rank(Shape):
    name: str
    value: int
    is_default: bool


class RankList(Shape):
    priorities: list[Rank]


def render_cluster(context: Context, cluster: Cluster, verbosity: str) -> ClusterView:
    engine = context.engine_of(cluster.id)
    unreachable = engine.unreachable_reason()
    is_waiting = cluster.id != context.directory.cluster.id and cluster.connection is None
    state: Literal["WaitingToConnect", "Connected", "Disconnected"] = "Disconnected" if unreachable else "Connected"
    if is_waiting:
        state = "WaitingToConnect"
    return ClusterView(
        uuid=cluster.id,
        tenant_id=cluster.tenant_id,
        name=cluster.name,
        created_at=iso(cluster.created_at),
        domain=cluster.domain or None,
        version=INTERFACE_VERSION,
        updated_at=iso(cluster.created_at),
        deleted_at=None,
        last_liveness=None if unreachable else iso(context.clock()),
        engine="kubernetes" if engine.is_cluster else "local",
        status=UNSET if verbosity == "metadata" else ClusterStatus(state=state, reason=unreachable or UNSET),
    )


def _quota(quota: Quota, unlimited: float | None) -> QuotaView:
    return QuotaView(
        deserved=unlimited if quota.deserved is None else quota.deserved,
        limit=quota.limit,
        over_quota_weight=quota.over_quota_weight,
    )


def render_pool_quota(quota: PoolQuota) -> PoolQuotaView:
    memory, unit = quota.memory, UNITS[quota.memory_units]
    return PoolQuotaView(
        gpu=_quota(quota.gpu, UNLIMITED),
        cpu=_quota(quota.cpu, None),
        memory=MemoryQuotaView(
            deserved=None if memory.deserved is None else memory.deserved / unit,
            limit=None if memory.limit is None else memory.limit / unit,
            over_quota_weight=memory.over_quota_weight,
            units=quota.memory_units,  # type: ignore[arg-type]  # only these three are stored
        ),
        node_pool=PoolName(id=quota.node_pool_id, name=quota.node_pool_name),
        priority=quota.priority,
    )


def _total(parts: Sequence[float | None], scale: int = 1) -> float | None:
    return None if any(part is None for part in parts) else sum(part or 0.0 for part in parts) / scale


def _totals(record: Department) -> TotalResources:
    return TotalResources(
        gpu_quota=_total([quota.gpu.deserved for quota in record.resources]),
        cpu_quota=_total([quota.cpu.deserved for quota in record.resources]),
        memory_quota=_total([quota.memory.deserved for quota in record.resources], _MIB),
    )


def _quota_status(usage: OwnerUsage) -> QuotaStatus:
    return QuotaStatus(
        allocated=_amount(usage.gpu, usage.cpu_milli, usage.memory_bytes),
        allocated_non_preemptible=_amount(usage.fixed_gpu, usage.fixed_cpu_milli, usage.fixed_memory_bytes),
        requested=UNSET if usage.requested is None else _amount(*usage.requested),
    )


def _amount(gpu: float, cpu: float, memory: float) -> QuotaAmounts:
    return QuotaAmounts(gpu=round(gpu, 3), cpu=cpu, memory=memory / _MB)


def _pool_statuses(owner: str, record: Department, usages: Usages) -> tuple[PoolQuotaStatus, ...]:
    statuses = []
    for quota in record.resources:
        status = _quota_status(usages.get((owner, quota.node_pool_name), OwnerUsage()))
        statuses.append(
            PoolQuotaStatus(
                node_pool_id=quota.node_pool_id,
                node_pool_name=quota.node_pool_name,
                allocated=status.allocated,
                allocated_non_preemptible=status.allocated_non_preemptible,
                requested=status.requested,
            )
        )
    return tuple(statuses)


def _shared(record: Department) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "description": record.description,
        "cluster_id": record.cluster_id,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
        "created_by": record.created_by,
        "updated_by": record.updated_by,
        "resources": tuple(render_pool_quota(quota) for quota in record.resources),
        "total_resources": _totals(record),
        "default_node_pools": record.default_node_pools or None,
        "scheduling_rules": record.scheduling_rules or None,
        "node_types": record.node_types or None,
    }


def render_department(record: Department, usages: Usages) -> DepartmentView:
    owner = f"/{record.id}"
    status = DepartmentStatus(
        quota_status=_quota_status(usages.get((owner, ""), OwnerUsage())),
        node_pool_quota_statuses=_pool_statuses(owner, record, usages),
    )
    return DepartmentView(**_shared(record), status=status)


def render_project(record: Project, department: Department | None, usages: Usages, problem: str = "") -> ProjectView:
    """`problem`: why its namespace cannot be used; empty if it can."""
    phase: Literal["Ready", "NotReady", "Deleting"] = "NotReady" if problem else "Ready"
    effective = Effective(
        default_node_pools=effective_node_pools(record, department) or None,
        scheduling_rules={**effective_rules(record, department)} or None,
        node_types=effective_node_types(record, department) or None,
    )
    return ProjectView(
        **_shared(record),
        parent_id=record.department_id,
        enforce_runai_scheduler=record.enforce_scheduler,
        requested_namespace=record.requested_namespace or None,
        effective=effective,
        status=ProjectStatus(
            namespace=record.namespace,
            phase=phase if record.deleted_at is None else "Deleting",
            phase_message=problem or None,
            quota_status=_quota_status(usages.get((record.id, ""), OwnerUsage())),
            node_pool_quota_statuses=_pool_statuses(record.id, record, usages),
        ),
    )


async def get_clusters(call: Call) -> Response:
    verbosity = query_choice(call, "verbosity", ("metadata", "full"), "full")
    query_boolean(call, "includeRequestedForDelete")
    clusters = inventory.load_clusters(call.context, call.caller)
    context = call.context
    return as_json([render_cluster(context, cluster, verbosity) for cluster in clusters])


async def get_cluster(call: Call) -> Response:
    verbosity = query_choice(call, "verbosity", ("metadata", "full"), "full")
    clusters = call.context.directory.clusters
    cluster = inventory.load_record(call.context, call.caller, clusters, call.path["clusterUuid"], "cluster")
    return as_json(render_cluster(call.context, cluster, verbosity))


async def get_departments(call: Call) -> Response:
    query_choice(call, "verbosity", ("meta", "brief", "verbose"))
    usages = await inventory.load_usage(call.context)
    request = read_list_request(call, DEPARTMENT_FIELD_NAMES)
    page = inventory.find_departments(call.context, call.caller, request, usages)
    views = [render_department(record, usages) for record in page.items]
    return as_json(DepartmentList(departments=views, next=next_offset(page)))


async def count_departments(call: Call) -> Response:
    usages = await inventory.load_usage(call.context)
    return as_json(Count(inventory.find_departments(call.context, call.caller, read_list_request(call), usages).total))


async def get_projects(call: Call) -> Response:
    usages = await inventory.load_usage(call.context)
    page = inventory.find_projects(call.context, call.caller, read_list_request(call, PROJECT_FIELD_NAMES), usages)
    departments = call.context.directory.departments
    views = [
        render_project(
            record,
            departments.get(record.department_id),
            usages,
            call.context.engine_of(record.cluster_id).find_namespace_problem(record.namespace),
        )
        for record in page.items
    ]
    return as_json(ProjectList(projects=views, next=next_offset(page)))


async def count_projects(call: Call) -> Response:
    usages = await inventory.load_usage(call.context)
    return as_json(Count(inventory.find_projects(call.context, call.caller, read_list_request(call), usages).total))


async def get_ranks(call: Call) -> Response:
    ranks = [Rank(name=name, value=value, is_default=name == _DEFAULT_RANK) for name, value in RANKS.items()]
    return as_json(RankList(priorities=ranks))


DEPARTMENT_READS = (
    HandledRoute(
        id="get_departments",
        summary="List departments",
        run=get_departments,
        parameters=(
            filter_by(DEPARTMENT_FIELD_NAMES),
            sort_by(DEPARTMENT_FIELD_NAMES),
            Parameter(name="verbosity", schema={"type": "string", "enum": ["meta", "brief", "verbose"]}),
            sort_order(),
            OFFSET,
            LIMIT,
        ),
        answers={200: DepartmentList},
    ),
    HandledRoute(
        suffix="/count",
        id="count_departments",
        summary="Count departments",
        run=count_departments,
        parameters=(filter_by(DEPARTMENT_FIELD_NAMES),),
        answers={200: Count},
    ),
)
PROJECT_READS = (
    HandledRoute(
        id="get_projects",
        summary="List projects",
        run=get_projects,
        parameters=(
            filter_by(PROJECT_FIELD_NAMES),
            sort_by(PROJECT_FIELD_NAMES),
            sort_order(),
            OFFSET,
            LIMIT,
            SEARCH,
        ),
        answers={200: ProjectList},
    ),
    HandledRoute(
        suffix="/count",
        id="count_projects",
        summary="Count projects",
        run=count_projects,
        parameters=(filter_by(PROJECT_FIELD_NAMES), SEARCH),
        answers={200: Count},
    ),
)
_CLUSTER_VERBOSITY = Parameter(
    name="verbosity",
    schema={"type": "string", "enum": ["metadata", "full"], "default": "full"},
    description="`metadata` leaves the status out.",
)


def _read(path: str, id: str, summary: str, run: Handler, parameters: tuple[Parameter, ...], view: Schema) -> Operation:
    failures = failing(401, 403, 404, 500, 503) if parameters else failing(401, 403, 503)
    return Operation(
        method="GET",
        path=f"/api/v1{path}",
        id=id,
        tag="Organization",
        summary=summary,
        run=run,
        parameters=parameters,
        answers={**failures, 200: view},
    )


CLUSTER_OPERATIONS: tuple[Operation, ...] = (
    _read(
        "/clusters",
        "get_clusters",
        "List clusters; the answer is an array",
        get_clusters,
        (_CLUSTER_VERBOSITY, Parameter(name="includeRequestedForDelete", schema={"type": "boolean"})),
        list[ClusterView],
    ),
    _read(
        "/clusters/{clusterUuid}",
        "get_cluster_by_uuid",
        "Get a cluster",
        get_cluster,
        (
            Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"}),
            _CLUSTER_VERBOSITY,
        ),
        ClusterView,
    ),
    _read(
        "/org-unit/priorities",
        "get_priorities",
        "List the ranks that projects and departments can have",
        get_ranks,
        (),
        RankList,
    ),
)
