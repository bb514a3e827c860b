"""Routes that read nodes and node pools, and their views."""

from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_text, render_duration
from fairlead.api.http.crud import HandledRoute
from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import LIMIT, OFFSET, SEARCH, filter_by, read_list_request, sort_by, sort_order
from fairlead.api.http.operation import OURS, Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Count, Instant, Shape, Uuid
from fairlead.control.context import Context
from fairlead.control.lists import normal_id
from fairlead.control.organization import inventory
from fairlead.control.organization.inventory import NODE_FIELD_NAMES, NODE_POOL_FIELD_NAMES, node_uuid
from fairlead.control.organization.node_maintenance import Maintenance, maintain_node
from fairlead.model.clock import iso
from fairlead.model.records.organization import DEFAULT_NODE_POOL, Node, NodePool

#: The default pool has no label, but the contract requires one; this means "no label of another pool".
POOL_LABEL = "kai.scheduler/node-pool"


class PlacementStrategy(Shape):
    cpu: Literal["spread", "binpack"] | None
    gpu: Literal["spread", "binpack"] | None


class SchedulingConfiguration(Shape):
    placement_strategy: PlacementStrategy
    min_guaranteed_runtime: str | None


class NodePoolStatus(Shape):
    nodes: tuple[str, ...]


class NodePoolView(Shape):
    """A node pool: the nodes with a label, and how pods are placed on them."""

    id: str
    name: str
    cluster_id: Uuid
    cluster_name: str
    tenant_id: int
    label_key: str
    label_value: str
    is_default: bool
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    deleted_at: Instant | None
    phase: Literal["Ready", "Empty"]
    scheduling_configuration: SchedulingConfiguration
    placement_strategy: PlacementStrategy
    network_topology_id: str | None
    status: NodePoolStatus
    gpu_resource_optimization: dict[str, Any] | UnsetType = UNSET
    gpu_network_acceleration_detection: Literal["Use", "DontUse", "Auto"] | UnsetType = UNSET
    gpu_network_acceleration_label_key: str | UnsetType = UNSET
    over_provisioning_ratio: int | UnsetType = UNSET


class NodePoolList(Shape):
    nodepools: list[NodePoolView]


class GpuInfo(Shape):
    gpu_type: str
    gpu_count: int


class TaintView(Shape):
    key: str
    effect: str
    value: str | UnsetType = UNSET


class NodeView(Shape):
    """A node: a machine that runs pods."""

    name: str
    id: Uuid
    cluster_uuid: Uuid
    status: Literal["Ready", "NotReady", "Unknown"]
    node_pool: str
    created_at: Instant
    updated_at: Instant
    gpu_info: GpuInfo | None
    taints: tuple[TaintView, ...]
    conditions: tuple[dict[str, str], ...]
    #: Whether it takes no new pods, and whether its pods are evicted too.
    cordoned: Annotated[bool, OURS]
    draining: Annotated[bool, OURS]


class NodeList(Shape):
    nodes: list[NodeView]


def render_node_pool(call: Call, pool: NodePool) -> NodePoolView:
    cluster = call.context.directory.cluster
    nodes = inventory.nodes_by_pool(call.context.for_cluster(pool.cluster_id)).get(pool.name, [])
    placement = PlacementStrategy(cpu=pool.placement_cpu, gpu=pool.placement_gpu)  # type: ignore[arg-type]  # one of two
    seconds = pool.min_guaranteed_runtime_seconds
    runtime = render_duration(seconds) if seconds else None
    return NodePoolView(
        id=pool.id,
        name=pool.name,
        cluster_id=pool.cluster_id,
        cluster_name=call.context.directory.clusters[pool.cluster_id].name,
        tenant_id=cluster.tenant_id,
        label_key=pool.label_key or POOL_LABEL,
        label_value=pool.label_value or pool.name,
        is_default=pool.name == DEFAULT_NODE_POOL,
        created_at=iso(pool.created_at),
        created_by=pool.created_by,
        updated_at=iso(pool.updated_at),
        updated_by=pool.updated_by,
        deleted_at=None,
        phase="Ready" if nodes else "Empty",
        scheduling_configuration=SchedulingConfiguration(placement_strategy=placement, min_guaranteed_runtime=runtime),
        placement_strategy=placement,
        network_topology_id=pool.network_topology_id or None,
        status=NodePoolStatus(nodes=tuple(sorted(node.name for node in nodes))),
        **{name: value for name, value in pool.settings.items() if value is not None},
    )


def render_node(call: Call, node: Node) -> NodeView:
    cluster_id = call.context.directory.cluster_of(node)
    info = GpuInfo(gpu_type=node.gpu_type, gpu_count=len(node.gpus)) if node.gpus else None
    return NodeView(
        name=node.name,
        id=node_uuid(cluster_id, node),
        cluster_uuid=cluster_id,
        status="Ready" if node.ready else "NotReady",
        node_pool=inventory.pool_name(call.context, node),
        created_at=iso(node.created_at),
        updated_at=iso(call.context.clock()),
        gpu_info=info,
        taints=tuple(
            TaintView(key=taint.key, effect=taint.effect, value=taint.value or UNSET) for taint in node.taints
        ),
        conditions=(),
        cordoned=node.will_be_cordoned,
        draining=node.draining,
    )


async def get_node_pools(call: Call) -> Response:
    page = inventory.find_node_pools(call.context, call.caller, read_list_request(call, NODE_POOL_FIELD_NAMES))
    return as_json(NodePoolList(nodepools=[render_node_pool(call, pool) for pool in page.items]))


async def count_node_pools(call: Call) -> Response:
    return as_json(Count(inventory.find_node_pools(call.context, call.caller, read_list_request(call)).total))


async def get_nodes(call: Call) -> Response:
    return _list_nodes(call, call.context)


def _list_nodes(call: Call, context: Context) -> Response:
    request = read_list_request(call, NODE_FIELD_NAMES)
    name = query_text(call, "nodeName")
    if name:
        request = msgspec.structs.replace(request, search=name)
    page = inventory.find_nodes(context, call.caller, request)
    return as_json(NodeList(nodes=[render_node(call, node) for node in page.items]))


async def count_nodes(call: Call) -> Response:
    return as_json(Count(inventory.find_nodes(call.context, call.caller, read_list_request(call)).total))


async def get_cluster_nodes(call: Call) -> Response:
    return _list_nodes(call, _cluster_context(call))


async def count_cluster_nodes(call: Call) -> Response:
    return as_json(Count(inventory.find_nodes(_cluster_context(call), call.caller, read_list_request(call)).total))


def _cluster_context(call: Call) -> Context:
    """The context of the cluster in the path."""
    clusters = call.context.directory.clusters
    cluster = inventory.load_record(call.context, call.caller, clusters, call.path["clusterUuid"], "cluster")
    return call.context.for_cluster(cluster.id)


async def get_node(call: Call) -> Response:
    wanted = normal_id(call.path["nodeId"], "node")
    return as_json(render_node(call, inventory.load_node(call.context, call.caller, wanted)))


async def _maintain(call: Call, what: Maintenance) -> Response:
    wanted = normal_id(call.path["nodeId"], "node")
    node = await maintain_node(call.context, call.caller, wanted, what, call.request_id)
    return as_json(render_node(call, node), 202)


_FAILURES = {401: Error, 403: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error, 500: Error}
_CLUSTER = Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"})
_NODE_LIST = (filter_by(NODE_FIELD_NAMES), sort_by(NODE_FIELD_NAMES), sort_order(), OFFSET, LIMIT, SEARCH)
NODE_POOL_READS = (
    HandledRoute(
        id="get_nodepools",
        summary="List node pools",
        run=get_node_pools,
        parameters=(filter_by(NODE_POOL_FIELD_NAMES), sort_by(NODE_POOL_FIELD_NAMES), sort_order(), OFFSET, LIMIT),
        answers={200: NodePoolList},
    ),
    HandledRoute(
        suffix="/count",
        id="count_nodepools",
        summary="Count node pools",
        run=count_node_pools,
        parameters=(filter_by(NODE_POOL_FIELD_NAMES),),
        answers={200: Count},
    ),
)


_read = partial(Operation, method="GET", tag="Nodes")
_NODE_ID = Parameter(name="nodeId", place="path", schema={"type": "string", "format": "uuid"})
_MAINTENANCE: dict[Maintenance, str] = {
    "cordon": "Cordon a node: place no new pods on it",
    "uncordon": "Uncordon a node: place pods on it again",
    "drain": "Drain a node: cordon it and evict its pods, which wait again",
}


NODE_OPERATIONS: tuple[Operation, ...] = (
    _read(
        path="/api/v1/nodes",
        id="get_tenant_nodes",
        summary="List nodes",
        run=get_nodes,
        parameters=_NODE_LIST,
        answers={200: NodeList, **_ONE},
    ),
    _read(
        path="/api/v1/nodes/count",
        id="count_tenant_nodes",
        summary="Count nodes",
        run=count_nodes,
        parameters=(filter_by(NODE_FIELD_NAMES), SEARCH),
        answers={200: Count, **_FAILURES, 500: Error},
    ),
    _read(
        path="/api/v1/nodes/{nodeId}",
        id="get_node",
        summary="Get a node",
        run=get_node,
        parameters=(_NODE_ID,),
        answers={200: NodeView, **_ONE},
        is_addition=True,
    ),
    *(
        Operation(
            method="POST",
            path=f"/api/v1/nodes/{{nodeId}}/{what}",
            id=f"{what}_node",
            tag="Nodes",
            summary=summary,
            run=partial(_maintain, what=what),
            parameters=(_NODE_ID,),
            answers={202: NodeView, **_ONE},
            is_addition=True,
        )
        for what, summary in _MAINTENANCE.items()
    ),
    _read(
        path="/api/v1/clusters/{clusterUuid}/nodes",
        id="get_nodes",
        summary="List the nodes of a cluster",
        run=get_cluster_nodes,
        parameters=(
            _CLUSTER,
            Parameter(name="nodeName", schema={"type": "string"}, description="Only nodes whose name contains this."),
            *_NODE_LIST,
        ),
        answers={200: NodeList, **_ONE},
        is_deprecated=True,
    ),
    _read(
        path="/api/v1/clusters/{clusterUuid}/nodes/count",
        id="count_nodes",
        summary="Count the nodes of a cluster",
        run=count_cluster_nodes,
        parameters=(_CLUSTER, filter_by(NODE_FIELD_NAMES), SEARCH),
        answers={200: Count, **_ONE},
    ),
)
