"""Metrics of workloads, pods, services and nodes over time, and current totals by group.

Metrics that are not measured on this machine have no values; the status is then 207. CSV is available on request.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_integer, query_text, wrong_parameter
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, Schema, as_json
from fairlead.api.http.shapes import WORKLOAD_ID, Instant, Shape
from fairlead.api.telemetry.names import (
    NODE_GROUPS,
    NODE_METRICS,
    NODE_TELEMETRY,
    POD_METRICS,
    SERVICE_METRICS,
    WORKLOAD_GROUPS,
    WORKLOAD_METRICS,
    WORKLOAD_TELEMETRY,
)
from fairlead.control.organization.inventory import load_node
from fairlead.control.telemetry import metrics, summaries
from fairlead.control.telemetry.metrics import Measurement, Span
from fairlead.control.workloads import read as workloads_read
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind, noun_of
from fairlead.model.clock import from_iso, iso
from fairlead.model.english import with_article
from fairlead.model.records.phase import Phase


class Value(Shape):
    value: str
    timestamp: Instant | None


class PartView(Shape):
    key: str
    value: str


class MeasurementView(Shape):
    type: str
    values: list[Value]
    labels: dict[str, str] | None = None
    groups: tuple[PartView, ...] | UnsetType = UNSET


class MetricsView(Shape):
    """Metrics over a span of time."""

    measurements: list[MeasurementView]


class GroupView(Shape):
    key: str
    value: str
    name: str = ""


class TelemetryValue(Shape):
    value: str
    groups: tuple[GroupView, ...] = ()


class TelemetryView(Shape):
    """The current value of a metric for each group."""

    type: str
    timestamp: Instant
    values: list[TelemetryValue]


def read_names(
    call: Call, name: str, allowed: Sequence[str], *, max_count: int = 0, is_needed: bool = False
) -> tuple[str, ...]:
    """A list of names; raises `Invalid` for names that are not allowed."""
    given = tuple(dict.fromkeys(word for word in query_text(call, name).split(",") if word))
    unknown = [word for word in given if word not in allowed]
    if unknown:
        raise wrong_parameter(name, f"has unknown values: {', '.join(unknown)[:200]}; use {', '.join(allowed)}")
    if is_needed and not given:
        raise wrong_parameter(name, f"is required; use one or more of {', '.join(allowed)}")
    if max_count and len(given) > max_count:
        raise wrong_parameter(name, f"can have at most {max_count} values")
    return given


def read_span(call: Call) -> Span:
    moments = []
    for name in ("start", "end"):
        text = query_text(call, name)
        if not text:
            raise wrong_parameter(name, "is required: an ISO-8601 date and time")
        try:
            # A plus sign that was not escaped arrives as a space.
            moments.append(from_iso(text.replace(" ", "+")))
        except ValueError:
            raise wrong_parameter(name, "must be an ISO-8601 date and time") from None
    samples = query_integer(call, "numberOfSamples", 20, 0, 1000)
    return metrics.check_span(Span(moments[0], moments[1], samples))


def _number(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def render_metrics(call: Call, measurements: Sequence[Measurement]) -> Response:
    status = 200 if all(each.is_known for each in measurements) else 207
    if status == 200 and "text/csv" in call.request.headers.get("accept", ""):
        lines = ["type,labels,timestamp,value"]
        for each in measurements:
            parts = [*(each.labels or {}).items(), *([each.group] if each.group else [])]
            labels = ";".join(f"{name}={value}" for name, value in parts)
            lines += [f"{each.type},{labels},{iso(at)},{_number(value)}" for at, value in each.values]
        return _csv(lines)
    views = [
        MeasurementView(
            type=each.type,
            labels=each.labels,
            groups=UNSET if each.group is None else (PartView(key=each.group[0], value=each.group[1]),),
            values=[Value(value=_number(value), timestamp=iso(at)) for at, value in each.values],
        )
        for each in measurements
    ]
    return as_json(MetricsView(measurements=views), status)


def _csv(lines: Sequence[str]) -> Response:
    return Response("\r\n".join(lines) + "\r\n", media_type="text/csv")


async def get_workload_metrics(call: Call) -> Response:
    workload = await workloads_read.load_workload(call.context, call.caller, call.path["workloadId"])
    types, span = read_names(call, "metricType", WORKLOAD_METRICS, is_needed=True), read_span(call)
    usage_samples = await metrics.take_usage_samples(call.context)
    pods = await metrics.load_pods_within(call.context, workload, span)
    times = span.times(call.context.clock())
    return render_metrics(call, metrics.measure_workload(workload, pods, types, times, usage_samples))


async def get_pod_metrics(call: Call) -> Response:
    workload = await workloads_read.load_workload(call.context, call.caller, call.path["workloadId"])
    types, span = read_names(call, "metricType", POD_METRICS, is_needed=True), read_span(call)
    return await _used(call, (await metrics.load_pod(call.context, workload, call.path["podId"])).id, types, span)


async def _used(call: Call, id: str, types: tuple[str, ...], span: Span) -> Response:
    usage_samples = await metrics.take_usage_samples(call.context)
    return render_metrics(call, metrics.measure_used(id, types, span.times(call.context.clock()), usage_samples))


def _service_metrics(kind: Kind, *, of_pod: bool) -> Handler:
    async def get(call: Call) -> Response:
        workload = await workloads_read.load_workload(call.context, call.caller, call.path["workloadId"], kind.key)
        types, span = read_names(call, "metricType", SERVICE_METRICS, is_needed=True), read_span(call)
        id = (await metrics.load_pod(call.context, workload, call.path["podId"])).id if of_pod else workload.id
        return await _used(call, id, types, span)

    return get


async def get_node_metrics(call: Call) -> Response:
    node = load_node(call.context, call.caller, call.path["nodeId"])
    types, span = read_names(call, "metricType", NODE_METRICS, is_needed=True), read_span(call)
    usage_samples = await metrics.take_usage_samples(call.context)
    pods = await metrics.load_node_pods(call.context, node, span)
    return render_metrics(
        call, metrics.measure_node(node, pods, types, span.times(call.context.clock()), usage_samples)
    )


def render_telemetry(call: Call, type: str, sums: summaries.Sums) -> Response:
    if "text/csv" in call.request.headers.get("accept", ""):
        rows = (";".join(f"{key}={value}" for key, value, _ in groups) for groups in sums)
        return _csv(
            ["groups,value", *(f"{row},{_number(value)}" for row, value in zip(rows, sums.values(), strict=True))]
        )
    values = [
        TelemetryValue(
            value=_number(value), groups=tuple(GroupView(key=key, value=of, name=name) for key, of, name in groups)
        )
        for groups, value in sums.items()
    ]
    return as_json(TelemetryView(type=type, timestamp=iso(call.context.clock()), values=values))


async def get_workloads_telemetry(call: Call) -> Response:
    question = summaries.WorkloadQuestion(
        type=read_telemetry_type(call, WORKLOAD_TELEMETRY),
        group_by=read_names(call, "groupBy", WORKLOAD_GROUPS, max_count=2),
        cluster_id=query_text(call, "clusterId").lower(),
        node_pool=query_text(call, "nodepoolName"),
        department_id=query_text(call, "departmentId"),
        phases=read_names(call, "filterByPhases", [phase.value for phase in Phase]),
    )
    return render_telemetry(call, question.type, await summaries.count_workloads(call.context, call.caller, question))


def read_telemetry_type(call: Call, options: tuple[str, ...]) -> str:
    chosen = query_choice(call, "telemetryType", options)
    if not chosen:
        raise wrong_parameter("telemetryType", f"is required; use one of {', '.join(options)}")
    return chosen


async def get_nodes_telemetry(call: Call) -> Response:
    type = read_telemetry_type(call, NODE_TELEMETRY)
    groups = read_names(call, "groupBy", NODE_GROUPS, max_count=2)
    cluster = query_text(call, "clusterId").lower()
    if cluster and cluster not in call.context.directory.clusters:
        return render_telemetry(call, type, {})
    context = call.context.for_cluster(cluster) if cluster else call.context
    pool = query_text(call, "nodepoolName")
    return render_telemetry(call, type, await summaries.count_nodes(context, call.caller, type, groups, pool))


ONE = {400: Error, 401: Error, 403: Error, 404: Error, 500: Error, 503: Error}
MEASURED: dict[int, Schema] = {200: MetricsView, 207: MetricsView, **ONE}
_POD_ID = Parameter(name="podId", place="path", schema={"type": "string", "format": "uuid"})
_NODE_ID = Parameter(name="nodeId", place="path", schema={"type": "string", "format": "uuid"})
_CLUSTER = Parameter(name="clusterId", schema={"type": "string", "format": "uuid"})
_POOL = Parameter(name="nodepoolName", schema={"type": "string"})
_DEPARTMENT = Parameter(name="departmentId", schema={"type": "string"})


def list_of(name: str, options: Sequence[str], description: str = "") -> Parameter:
    items = {"type": "string", "enum": list(options)}
    return Parameter(name=name, schema={"type": "array", "items": items}, description=description)


def over_time(options: Sequence[str]) -> tuple[Parameter, ...]:
    moment = {"type": "string", "format": "date-time"}
    return (
        list_of("metricType", options, "The metrics; required."),
        Parameter(name="start", schema=moment, description="The start; required."),
        Parameter(name="end", schema=moment, description="The end; required."),
        Parameter(
            name="numberOfSamples",
            schema={"type": "integer", "minimum": 0, "maximum": 1000, "default": 20},
            description="The number of samples in between.",
        ),
    )


_WORKLOADS, _NODES = "/api/v1/workloads", "/api/v1/nodes"


def _operation(path: str, id: str, summary: str, run: Handler, parameters: tuple[Parameter, ...]) -> Operation:
    answers: dict[int, Schema] = {200: TelemetryView, **ONE} if path.endswith("telemetry") else MEASURED
    return Operation(
        method="GET",
        path=path,
        id=id,
        tag="Telemetry",
        summary=summary,
        run=run,
        parameters=parameters,
        answers=answers,
    )


def telemetry_operations() -> tuple[Operation, ...]:
    one, pod = f"{_WORKLOADS}/{{workloadId}}", f"{_WORKLOADS}/{{workloadId}}/pods/{{podId}}"
    of_workload, of_pod = (WORKLOAD_ID, *over_time(WORKLOAD_METRICS)), (WORKLOAD_ID, _POD_ID, *over_time(POD_METRICS))
    grouped = (list_of("groupBy", WORKLOAD_GROUPS, "At most two."), list_of("filterByPhases", [p.value for p in Phase]))
    counted = (_CLUSTER, _POOL, _DEPARTMENT, *grouped, _telemetry_type(WORKLOAD_TELEMETRY))
    of_nodes = (_CLUSTER, _POOL, list_of("groupBy", NODE_GROUPS, "At most two."), _telemetry_type(NODE_TELEMETRY))
    of_node = (_NODE_ID, *over_time(NODE_METRICS))
    rows: tuple[tuple[str, str, str, Handler, tuple[Parameter, ...]], ...] = (
        (
            f"{one}/metrics",
            "get_workload_metrics",
            "Get metrics of a workload over time",
            get_workload_metrics,
            of_workload,
        ),
        (f"{pod}/metrics", "get_workload_pod_metrics", "Get metrics of a pod over time", get_pod_metrics, of_pod),
        (
            f"{_WORKLOADS}/telemetry",
            "get_workloads_telemetry",
            "Get the current number of workloads, their resources and waiting times",
            get_workloads_telemetry,
            counted,
        ),
        (
            f"{_NODES}/telemetry",
            "get_node_telemetry",
            "Get the current capacity and usage of nodes",
            get_nodes_telemetry,
            of_nodes,
        ),
        (
            f"{_NODES}/{{nodeId}}/metrics",
            "get_node_metrics",
            "Get metrics of a node over time",
            get_node_metrics,
            of_node,
        ),
    )
    services = (kind for kind in KINDS.values() if kind.has_revisions)
    return (*(_operation(*row) for row in rows), *chain.from_iterable(map(_service_operations, services)))


def _telemetry_type(names: Iterable[str]) -> Parameter:
    return Parameter(name="telemetryType", schema={"type": "string", "enum": list(names)})


def _service_operations(kind: Kind) -> tuple[Operation, ...]:
    word, noun = kind.rest.replace("-", "_").removesuffix("s"), with_article(noun_of(kind))
    base, served = f"{_WORKLOADS}/{kind.rest}/{{workloadId}}", over_time(SERVICE_METRICS)
    return (
        _operation(
            f"{base}/metrics",
            f"get_{word}_workload_metrics",
            f"Get request rates and latencies of {noun} over time",
            _service_metrics(kind, of_pod=False),
            (WORKLOAD_ID, *served),
        ),
        _operation(
            f"{base}/pods/{{podId}}/metrics",
            f"get_{word}_workload_pod_metrics",
            f"Get request rates and latencies of a pod of {noun} over time",
            _service_metrics(kind, of_pod=True),
            (WORKLOAD_ID, _POD_ID, *served),
        ),
    )
