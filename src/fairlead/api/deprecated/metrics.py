"""The older metrics of the cluster, departments and projects: quota, allocation and waiting workloads now.

Their values over time are on the current routes (`/api/v1/org-unit/projects/{projectId}/metrics` and its neighbours).
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.deprecated.paths import BASE, FAILURES, check_cluster, deprecated
from fairlead.api.http.body import query_text
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, as_json
from fairlead.api.http.shapes import Shape, Uuid
from fairlead.control.lists import ListRequest
from fairlead.control.organization import inventory
from fairlead.control.organization.inventory import OwnerUsage, Usages
from fairlead.model.records.organization import Department, Project, Quota

_ALL = ListRequest(limit=1_000_000)
_MB = 10**6


class ResourceData(Shape):
    """GPU devices, millicores or MB; an unlimited quota is -1."""

    quota: float
    allocated: float


class ResourcesData(Shape):
    nodepool_name: str
    number_of_pending_workloads: int
    gpu: ResourceData
    cpu: ResourceData
    memory: ResourceData
    project_name: str | UnsetType = UNSET
    department_name: str | UnsetType = UNSET


class CurrentData(Shape):
    resources: list[ResourcesData]
    project_resources: list[ResourcesData] | UnsetType = UNSET
    nodepool_resources: list[ResourcesData] | UnsetType = UNSET


class MetricsSubject(Shape):
    cluster_id: Uuid
    cluster_name: str
    department_id: int | UnsetType = UNSET
    department_name: str | UnsetType = UNSET
    project_id: int | UnsetType = UNSET
    project_name: str | UnsetType = UNSET


class CurrentMetrics(Shape):
    metadata: MetricsSubject
    current: CurrentData


class CurrentMetricsList(Shape):
    data: list[CurrentMetrics]


class _Figures(NamedTuple):
    """What the metrics are made of; waiting workloads by project and node pool."""

    usages: Usages
    waiting: dict[tuple[str, str], int]
    pool: str


async def _load_figures(call: Call) -> _Figures:
    waiting = await inventory.count_waiting(call.context)
    return _Figures(await inventory.load_usage(call.context), waiting, query_text(call, "nodepoolName"))


def _data(quota: Quota, allocated: float, scale: int = 1) -> ResourceData:
    deserved = -1.0 if quota.deserved is None else quota.deserved / scale
    return ResourceData(quota=deserved, allocated=allocated / scale)


def _resources(owner: Department, figures: _Figures, projects: Iterable[str]) -> list[ResourcesData]:
    """One entry per node pool."""
    entries = []
    key = owner.id if isinstance(owner, Project) else f"/{owner.id}"
    for quota in owner.resources:
        pool = quota.node_pool_name
        if figures.pool not in ("", pool):
            continue
        usage = figures.usages.get((key, pool), OwnerUsage())
        entries.append(
            ResourcesData(
                nodepool_name=pool,
                number_of_pending_workloads=sum(figures.waiting.get((id, pool), 0) for id in projects),
                gpu=_data(quota.gpu, usage.gpu),
                cpu=_data(quota.cpu, usage.cpu_milli),
                memory=_data(quota.memory, usage.memory_bytes, _MB),
            )
        )
    return entries


def _named(entries: list[ResourcesData], project: Project, *, with_department: bool) -> list[ResourcesData]:
    for entry in entries:
        entry.project_name = project.name
        if with_department:
            entry.department_name = project.department_name
    return entries


def _visible_projects(call: Call, figures: _Figures) -> list[Project]:
    return inventory.find_projects(call.context, call.caller, _ALL, figures.usages).items


def _subject(call: Call) -> MetricsSubject:
    cluster = call.context.directory.clusters[check_cluster(call)]
    return MetricsSubject(cluster_id=cluster.id, cluster_name=cluster.name)


def _of_project(call: Call, project: Project, figures: _Figures) -> CurrentMetrics:
    subject = _subject(call)
    subject.department_id, subject.department_name = int(project.department_id), project.department_name
    subject.project_id, subject.project_name = int(project.id), project.name
    entries = _resources(project, figures, (project.id,))
    # The document requires both names and describes one.
    return CurrentMetrics(metadata=subject, current=CurrentData(resources=entries, nodepool_resources=entries))


def _of_department(call: Call, department: Department, figures: _Figures) -> CurrentMetrics:
    subject = _subject(call)
    subject.department_id, subject.department_name = int(department.id), department.name
    inside = [one for one in _visible_projects(call, figures) if one.department_id == department.id]
    by_project = [
        entry for one in inside for entry in _named(_resources(one, figures, (one.id,)), one, with_department=False)
    ]
    entries = _resources(department, figures, [one.id for one in inside])
    return CurrentMetrics(metadata=subject, current=CurrentData(resources=entries, project_resources=by_project))


def _sum(entries: list[ResourceData]) -> ResourceData:
    quotas = [entry.quota for entry in entries]
    return ResourceData(
        quota=-1.0 if -1.0 in quotas else sum(quotas), allocated=sum(entry.allocated for entry in entries)
    )


async def get_cluster_metrics(call: Call) -> Response:
    check_cluster(call)
    figures = await _load_figures(call)
    by_project = [
        entry
        for one in _visible_projects(call, figures)
        for entry in _named(_resources(one, figures, (one.id,)), one, with_department=True)
    ]
    entries = []
    for pool in dict.fromkeys(entry.nodepool_name for entry in by_project):
        inside = [entry for entry in by_project if entry.nodepool_name == pool]
        entries.append(
            ResourcesData(
                nodepool_name=pool,
                number_of_pending_workloads=sum(entry.number_of_pending_workloads for entry in inside),
                gpu=_sum([entry.gpu for entry in inside]),
                cpu=_sum([entry.cpu for entry in inside]),
                memory=_sum([entry.memory for entry in inside]),
            )
        )
    current = CurrentData(resources=entries, project_resources=by_project)
    return as_json(CurrentMetrics(metadata=_subject(call), current=current))


async def get_projects_metrics(call: Call) -> Response:
    check_cluster(call)
    figures = await _load_figures(call)
    return as_json(
        CurrentMetricsList(data=[_of_project(call, one, figures) for one in _visible_projects(call, figures)])
    )


async def get_project_metrics(call: Call) -> Response:
    check_cluster(call)
    projects = call.context.directory.projects
    project = inventory.load_record(call.context, call.caller, projects, call.path["projectId"], "project")
    return as_json(_of_project(call, project, await _load_figures(call)))


async def get_departments_metrics(call: Call) -> Response:
    check_cluster(call)
    figures = await _load_figures(call)
    departments = inventory.find_departments(call.context, call.caller, _ALL, figures.usages).items
    return as_json(CurrentMetricsList(data=[_of_department(call, one, figures) for one in departments]))


async def get_department_metrics(call: Call) -> Response:
    check_cluster(call)
    departments = call.context.directory.departments
    department = inventory.load_record(call.context, call.caller, departments, call.path["departmentId"], "department")
    return as_json(_of_department(call, department, await _load_figures(call)))


_CLUSTER = Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"})
_TIME = {"type": "string", "format": "date-time"}
_ASKED = (
    Parameter(name="start", schema=_TIME, description="Without effect: only current values are answered."),
    Parameter(name="end", schema=_TIME, description="Without effect: only current values are answered."),
    Parameter(name="numberOfSamples", schema={"type": "integer"}, description="Without effect."),
    Parameter(name="nodepoolName", schema={"type": "string"}, description="Only this node pool."),
)


def _metrics(below: str, id: str, of: str, run: Handler, answer: type[Shape]) -> Operation:
    parameters = [part[1:-1] for part in below.split("/") if part.startswith("{")]
    places = (Parameter(name=name, place="path", schema={"type": "string"}) for name in parameters)
    return deprecated(
        method="GET",
        path=f"{BASE}/{{clusterUuid}}{below}/metrics",
        id=id,
        summary=f"Get quota, allocation and waiting workloads of {of}",
        run=run,
        parameters=(_CLUSTER, *places, *_ASKED),
        answers={**FAILURES, 200: answer},
    )


DEPRECATED_METRICS_OPERATIONS: tuple[Operation, ...] = (
    _metrics("", "getClusterMetrics", "the cluster", get_cluster_metrics, CurrentMetrics),
    _metrics("/projects", "getProjectsMetrics", "all projects", get_projects_metrics, CurrentMetricsList),
    _metrics("/projects/{projectId}", "getProjectMetrics", "a project", get_project_metrics, CurrentMetrics),
    _metrics("/departments", "getDepartmentsMetrics", "all departments", get_departments_metrics, CurrentMetricsList),
    _metrics(
        "/departments/{departmentId}", "getDepartmentMetrics", "a department", get_department_metrics, CurrentMetrics
    ),
)
