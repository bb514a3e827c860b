"""Metrics of the cluster and its node pools over time."""

from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_text
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.api.telemetry.metrics import MEASURED, over_time, read_names, read_span, render_metrics
from fairlead.api.telemetry.names import PLACE_GROUPS, PLACE_METRICS
from fairlead.control.references.scopes import visible_clusters
from fairlead.control.telemetry import clusters, metrics
from fairlead.control.telemetry.metrics import Measurement
from fairlead.model.errors import NotFound

_BASE = "/api/v1/clusters/{clusterUuid}"
_CLUSTER = Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"})
_POOL = Parameter(name="nodepoolName", place="path", schema={"type": "string"})


async def get_cluster_metrics(call: Call) -> Response:
    group_by = query_choice(call, "groupBy", PLACE_GROUPS) or ""
    return await _measured(call, group_by, query_text(call, "nodepoolName"))


async def get_node_pool_metrics(call: Call) -> Response:
    return await _measured(call, "", call.path["nodepoolName"])


async def _measured(call: Call, group_by: str, pool: str) -> Response:
    cluster_id = call.path["clusterUuid"]
    seen = visible_clusters(call.context, call.caller, "nodes:read")
    if cluster_id.lower() not in (call.context.directory.clusters if seen is None else seen):
        raise NotFound(f"There is no cluster with the id {cluster_id[:60]}; GET /api/v1/clusters lists all clusters")
    context = call.context.for_cluster(cluster_id.lower())
    if pool and pool not in {one.name for one in context.directory.node_pools.values()}:
        raise NotFound(f"There is no node pool {pool[:60]}; GET /api/v1/node-pools lists all node pools")
    types, span = read_names(call, "metricType", PLACE_METRICS, is_needed=True), read_span(call)
    usage_samples = await metrics.take_usage_samples(context)
    records = await clusters.load_records(context, span, pool)
    times = span.times(context.clock())
    measurements: list[Measurement] = []
    for place in clusters.list_capacity_groups(context, call.caller, records, group_by, pool):
        parts = clusters.measure_capacity_group(place, types, times, usage_samples)
        measurements += [part.within(place.group) for part in parts] if group_by else parts
    return render_metrics(call, measurements)


def _over_time(path: str, id: str, summary: str, more: tuple[Parameter, ...]) -> Operation:
    run = get_node_pool_metrics if _POOL in more else get_cluster_metrics
    return Operation(
        method="GET",
        path=path,
        id=id,
        tag="Telemetry",
        summary=summary,
        run=run,
        needs="nodes:read",
        parameters=(_CLUSTER, *more, *over_time(PLACE_METRICS)),
        answers=MEASURED,
    )


PLACE_OPERATIONS: tuple[Operation, ...] = (
    _over_time(
        f"{_BASE}/metrics",
        "get_cluster_metrics",
        "Get metrics of the cluster over time",
        (
            Parameter(name="groupBy", schema={"type": "string", "enum": list(PLACE_GROUPS)}),
            Parameter(name="nodepoolName", schema={"type": "string"}),
        ),
    ),
    _over_time(
        f"{_BASE}/nodepools/{{nodepoolName}}/metrics",
        "get_nodepool_metrics",
        "Get metrics of a node pool over time",
        (_POOL,),
    ),
)
