"""Network topologies: levels of node labels that a node pool may have. Ours: the contract only names them."""

from typing import Annotated, Any, Literal

from msgspec import Meta
from starlette.responses import Response

from fairlead.api.http.body import receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.control.organization import topologies
from fairlead.control.organization.topologies import TopologyInput
from fairlead.model.clock import iso
from fairlead.model.records.organization import NetworkTopology
from fairlead.model.spec.fields import Spec


class NetworkTopologyCreation(Spec, frozen=True, kw_only=True):
    """A new network topology: labels of nodes, the widest domain first."""

    name: str
    cluster_id: str
    levels: Annotated[tuple[str, ...], Meta(max_length=100)]


class NetworkTopologyView(Shape):
    """How the nodes of node pools are connected."""

    id: Uuid
    name: str
    cluster_id: Uuid
    tenant_id: int
    levels: tuple[str, ...]
    created_at: Instant
    created_by: str
    phase: Literal["Ready"]
    #: The node pools that have it.
    node_pools: tuple[str, ...]


class NetworkTopologyList(Shape):
    network_topologies: list[NetworkTopologyView]


def render_topology(call: Call, topology: NetworkTopology) -> NetworkTopologyView:
    cluster = call.context.directory.cluster
    return NetworkTopologyView(
        id=topology.id,
        name=topology.name,
        cluster_id=cluster.id,
        tenant_id=cluster.tenant_id,
        levels=topology.levels,
        created_at=iso(topology.created_at),
        created_by=topology.created_by,
        phase="Ready",
        node_pools=topologies.pools_with(call.context, topology),
    )


async def get_topologies(call: Call) -> Response:
    found = topologies.list_topologies(call.context, call.caller)
    return as_json(NetworkTopologyList(network_topologies=[render_topology(call, each) for each in found]))


async def get_topology(call: Call) -> Response:
    id = call.path["networkTopologyId"]
    return as_json(render_topology(call, topologies.get_topology(call.context, call.caller, id)))


async def create_topology(call: Call) -> Response:
    body = await receive_json(call, NetworkTopologyCreation)
    input = TopologyInput(name=body.name, cluster_id=body.cluster_id, levels=body.levels)
    made = await topologies.create_topology(call.context, call.caller, input, call.request_id)
    return as_json(render_topology(call, made), 201)


async def delete_topology(call: Call) -> Response:
    id = call.path["networkTopologyId"]
    await topologies.delete_topology(call.context, call.caller, id, call.request_id)
    return Response(status_code=204)


_FAILURES = {401: Error, 403: Error, 503: Error}
_PATH = "/api/v1/network-topologies"
_ID = (Parameter(name="networkTopologyId", place="path", schema={"type": "string", "format": "uuid"}),)


def _operation(method: str, path: str, id: str, summary: str, run: Any, **members: Any) -> Operation:
    return Operation(
        method=method, path=path, id=id, tag="Nodes", summary=summary, run=run, is_addition=True, **members
    )


NETWORK_TOPOLOGY_OPERATIONS: tuple[Operation, ...] = (
    _operation(
        "GET",
        _PATH,
        "get_network_topologies",
        "List network topologies",
        get_topologies,
        answers={200: NetworkTopologyList, **_FAILURES},
    ),
    _operation(
        "POST",
        _PATH,
        "create_network_topology",
        "Create a network topology",
        create_topology,
        body=RequestBody(schema=NetworkTopologyCreation),
        answers={201: NetworkTopologyView, 400: Error, **_FAILURES},
    ),
    _operation(
        "GET",
        f"{_PATH}/{{networkTopologyId}}",
        "get_network_topology",
        "One network topology",
        get_topology,
        parameters=_ID,
        answers={200: NetworkTopologyView, 404: Error, **_FAILURES},
    ),
    _operation(
        "DELETE",
        f"{_PATH}/{{networkTopologyId}}",
        "delete_network_topology",
        "Delete a network topology that no node pool has",
        delete_topology,
        parameters=_ID,
        answers={204: None, 400: Error, 404: Error, **_FAILURES},
    ),
)
