"""Network topologies: levels of node labels that a node pool may have. An addition: the contract has only their ids."""

from typing import Annotated, Literal

from msgspec import Meta
from starlette.responses import Response

from fairlead.api.http.crud import CreateRoute, DeleteRoute, HandledRoute, ReadRoute, RestResource, operations
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Count, Instant, Shape, Uuid
from fairlead.control.organization import topologies
from fairlead.control.organization.topologies import TopologyInput
from fairlead.model.clock import iso
from fairlead.model.records.organization import NetworkTopology
from fairlead.model.spec.fields import Spec


class NetworkTopologyCreation(Spec, frozen=True, kw_only=True):
    """A new network topology: node labels, the widest domain first."""

    name: str
    cluster_id: str
    levels: Annotated[tuple[str, ...], Meta(max_length=100)]


class NetworkTopologyView(Shape):
    """A network topology: how nodes are connected."""

    id: Uuid
    name: str
    cluster_id: Uuid
    tenant_id: int
    levels: tuple[str, ...]
    created_at: Instant
    created_by: str
    phase: Literal["Ready"]
    #: The node pools that use it.
    node_pools: tuple[str, ...]


class NetworkTopologyList(Shape):
    network_topologies: list[NetworkTopologyView]


def render_topology(call: Call, topology: NetworkTopology) -> NetworkTopologyView:
    cluster = topologies.cluster_of_topology(call.context, topology)
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


def _topology_input(body: NetworkTopologyCreation) -> TopologyInput:
    return TopologyInput(name=body.name, cluster_id=body.cluster_id, levels=body.levels)


async def get_topologies(call: Call) -> Response:
    listed = topologies.list_topologies(call.context, call.caller)
    return as_json(NetworkTopologyList(network_topologies=[render_topology(call, each) for each in listed]))


async def count_topologies(call: Call) -> Response:
    return as_json(Count(len(topologies.list_topologies(call.context, call.caller))))


_TOPOLOGIES = RestResource(
    path="/api/v1/network-topologies",
    id=Parameter(name="networkTopologyId", place="path", schema={"type": "string", "format": "uuid"}),
    tag="Nodes",
    view=NetworkTopologyView,
    render=render_topology,
    failures=(401, 403, 503),
    rows=(
        HandledRoute(
            id="get_network_topologies",
            summary="List network topologies",
            run=get_topologies,
            answers={200: NetworkTopologyList},
        ),
        HandledRoute(
            suffix="/count",
            id="get_network_topologies_count",
            summary="Count network topologies",
            run=count_topologies,
            answers={200: Count},
        ),
        CreateRoute(
            id="create_network_topology",
            summary="Create a network topology",
            body=NetworkTopologyCreation,
            read=_topology_input,
            use_case=topologies.create_topology,
            also=(400,),
        ),
        ReadRoute(id="get_network_topology", summary="Get a network topology", use_case=topologies.get_topology),
        DeleteRoute(
            id="delete_network_topology",
            summary="Delete a network topology that no node pool uses",
            use_case=topologies.delete_topology,
            also=(400, 404),
        ),
    ),
)

NETWORK_TOPOLOGY_OPERATIONS: tuple[Operation, ...] = operations(_TOPOLOGIES)
