"""Metrics of projects and departments: quotas and usage, over time and currently by group."""

from starlette.responses import Response

from fairlead.api.http.body import query_text
from fairlead.api.http.operation import Call, Handler, Operation, Parameter
from fairlead.api.telemetry.metrics import (
    MEASURED,
    ONE,
    TelemetryView,
    list_of,
    over_time,
    read_names,
    read_span,
    read_telemetry_type,
    render_metrics,
    render_telemetry,
)
from fairlead.api.telemetry.names import DEPARTMENT_GROUPS, OWNER_METRICS, OWNER_TELEMETRY, PROJECT_GROUPS
from fairlead.api.telemetry.shares import SHARE_OPERATIONS
from fairlead.api.telemetry.usage import USAGE_OPERATIONS
from fairlead.control.organization import inventory
from fairlead.control.telemetry import owners
from fairlead.control.telemetry.owners import OwnerQuestion

_BASE = "/api/v1/org-unit"
_CLUSTER = Parameter(name="clusterId", schema={"type": "string", "format": "uuid"})
_DEPARTMENT = Parameter(name="departmentId", schema={"type": "string"})
_POOL = Parameter(name="nodepoolName", schema={"type": "string"})
_ASKED = Parameter(name="telemetryType", schema={"type": "string", "enum": list(OWNER_TELEMETRY)})


async def get_projects_telemetry(call: Call) -> Response:
    return await _count(call, "nodepoolId", PROJECT_GROUPS, of_projects=True)


async def get_departments_telemetry(call: Call) -> Response:
    return await _count(call, "nodepoolName", DEPARTMENT_GROUPS, of_projects=False)


async def _count(call: Call, pool: str, groups: tuple[str, ...], *, of_projects: bool) -> Response:
    question = OwnerQuestion(
        type=read_telemetry_type(call, OWNER_TELEMETRY),
        group_by=read_names(call, "groupBy", groups, max_count=2),
        cluster_id=query_text(call, "clusterId").lower(),
        node_pool=query_text(call, pool),
        department_id=query_text(call, "departmentId"),
    )
    totals = await owners.count_owners(call.context, call.caller, question, of_projects=of_projects)
    return render_telemetry(call, question.type, totals)


def _metrics_of(what: str) -> Handler:
    async def get(call: Call) -> Response:
        directory = call.context.directory
        records = directory.projects if what == "project" else directory.departments
        owner = inventory.load_record(call.context, call.caller, records, call.path[f"{what}Id"], what)
        types, span = read_names(call, "metricType", OWNER_METRICS, is_needed=True), read_span(call)
        pool = query_text(call, "nodepoolName")
        pods = await owners.load_owner_pods(call.context, owner, span, pool)
        times = span.times(call.context.clock())
        return render_metrics(call, owners.measure_owner(owner, pods, types, times, pool))

    return get


def _over_time(what: str) -> Operation:
    return Operation(
        method="GET",
        path=f"{_BASE}/{what}s/{{{what}Id}}/metrics",
        id=f"get_{what}_metrics",
        tag="Telemetry",
        summary=f"Get the quota and usage of a {what} over time",
        run=_metrics_of(what),
        parameters=(
            Parameter(name=f"{what}Id", place="path", schema={"type": "string"}),
            *over_time(OWNER_METRICS),
            _POOL,
        ),
        answers=MEASURED,
    )


def _at_once(what: str, run: Handler, pool: Parameter, groups: tuple[str, ...]) -> Operation:
    return Operation(
        method="GET",
        path=f"{_BASE}/{what}s/telemetry",
        id=f"get_{what}s_telemetry",
        tag="Telemetry",
        summary=f"Get the current quotas and usage of {what}s",
        run=run,
        parameters=(_CLUSTER, pool, _DEPARTMENT, list_of("groupBy", groups, "At most two."), _ASKED),
        answers={200: TelemetryView, **ONE},
    )


OWNER_TELEMETRY_OPERATIONS: tuple[Operation, ...] = (
    *USAGE_OPERATIONS,
    *SHARE_OPERATIONS,
    _at_once(
        "project",
        get_projects_telemetry,
        Parameter(name="nodepoolId", schema={"type": "string"}),
        PROJECT_GROUPS,
    ),
    _at_once("department", get_departments_telemetry, _POOL, DEPARTMENT_GROUPS),
    _over_time("project"),
    _over_time("department"),
)
