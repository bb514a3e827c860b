"""The routes that change clusters. The first one came with the installation; others are added and removed."""

from typing import Literal

from msgspec import UNSET, field
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_choice, query_text, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Accepted, Shape
from fairlead.api.organization.reads import ClusterView, render_cluster
from fairlead.control.organization import clusters, inventory
from fairlead.control.organization.clusters import ClusterInput
from fairlead.model.records.organization import Cluster
from fairlead.model.spec.fields import Given, Spec, Text, value_or

_CLUSTER = Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"})
#: The folder of the chart in the source of Fairlead.
_CHART = "deploy/helm"


class ClusterCreation(Spec, frozen=True, kw_only=True):
    name: Text
    domain: Given[str] = UNSET
    version: Given[str] = UNSET
    #: Additions of Fairlead: what runs the cluster's pods, and the kubeconfig by which the server reaches it.
    engine: Given[Literal["kubernetes", "local"]] = UNSET
    kubeconfig: Given[str] = UNSET


class ClusterUpdate(Spec, frozen=True, kw_only=True):
    name: str
    #: An addition of Fairlead: another kubeconfig.
    kubeconfig: Given[str] = UNSET


class ClusterInstallInfo(Shape):
    """How the cluster's part is installed. This server needs no secret for it, so `clientSecret` is empty."""

    installation_str: str
    repository_name: str
    chart_repo_url: str = field(name="chartRepoURL")
    client_secret: str


def _load(call: Call) -> Cluster:
    known = call.context.directory.clusters
    return inventory.load_record(call.context, call.caller, known, call.path["clusterUuid"], "cluster")


async def create_cluster(call: Call) -> Response:
    body = await receive_json(call, ClusterCreation)
    given = ClusterInput(
        name=body.name,
        domain=value_or(body.domain, ""),
        engine=value_or(body.engine, ""),
        kubeconfig=value_or(body.kubeconfig, ""),
    )
    cluster = await clusters.create_cluster(call.context, call.caller, given, call.request_id)
    return as_json(render_cluster(call.context, cluster, ""), 201)


async def update_cluster(call: Call) -> Response:
    body = await receive_json(call, ClusterUpdate)
    given = ClusterInput(name=body.name, kubeconfig=value_or(body.kubeconfig, ""))
    await clusters.update_cluster(call.context, call.caller, _load(call).id, given, call.request_id)
    return Response(status_code=204)


async def delete_cluster(call: Call) -> Response:
    query_boolean(call, "force")
    await clusters.delete_cluster(call.context, call.caller, _load(call).id, call.request_id)
    return Response(status_code=204)


async def get_install_info(call: Call) -> Response:
    cluster = _load(call)
    return as_json(
        ClusterInstallInfo(
            installation_str=install_command(call, cluster),
            repository_name="fairlead",
            chart_repo_url="",
            client_secret="",
        )
    )


def install_command(call: Call, cluster: Cluster) -> str:
    """The command that installs the cluster's part, or connects a cluster that was added."""
    if cluster.id != call.context.directory.cluster.id:
        return f"fairlead cluster connect {cluster.name} --kubeconfig FILE"
    if not call.context.engine_of(cluster.id).is_cluster:
        return f"fairlead serve  # cluster {cluster.name} is this machine; nothing else is installed"
    return f"helm upgrade --install fairlead {_CHART} -n fairlead --create-namespace"


async def get_install_file(call: Call) -> Response:
    cluster = inventory.load_record(
        call.context, call.caller, call.context.directory.clusters, call.path["cluster_uuid"], "cluster"
    )
    query_choice(call, "format", ("json", "yaml"))
    query_text(call, "clusterip")
    return as_json(install_command(call, cluster))


_CHANGE = failing(400, 401, 403, 404, 500, 503)
CLUSTER_CHANGE_OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="POST",
        path="/api/v1/clusters",
        id="create_cluster",
        tag="Organization",
        summary="Add a cluster, with its connection or to be connected later",
        run=create_cluster,
        body=RequestBody(schema=ClusterCreation),
        answers={**_CHANGE, 201: ClusterView},
    ),
    Operation(
        method="PUT",
        path="/api/v1/clusters/{clusterUuid}",
        id="update_cluster",
        tag="Organization",
        summary="Rename a cluster, or give it another kubeconfig",
        run=update_cluster,
        parameters=(_CLUSTER,),
        body=RequestBody(schema=ClusterUpdate),
        answers={**_CHANGE, 204: None},
    ),
    Operation(
        method="DELETE",
        path="/api/v1/clusters/{clusterUuid}",
        id="delete_cluster",
        tag="Organization",
        summary="Remove a cluster that was added and has no projects",
        run=delete_cluster,
        parameters=(_CLUSTER, Parameter(name="force", schema={"type": "boolean", "default": False})),
        answers={**_CHANGE, 202: Accepted, 204: None},
    ),
    Operation(
        method="GET",
        path="/api/v1/clusters/{clusterUuid}/cluster-install-info",
        id="get_cluster_install_info_by_uuid",
        tag="Organization",
        summary="Get the command that installs the cluster's part",
        run=get_install_info,
        parameters=(
            _CLUSTER,
            Parameter(name="version", schema={"type": "string"}),
            Parameter(name="remoteClusterUrl", schema={"type": "string"}),
        ),
        answers={**_CHANGE, 200: ClusterInstallInfo},
    ),
    Operation(
        method="GET",
        path="/v1/k8s/clusters/{cluster_uuid}/installfile",
        id="getInstallFile",
        tag="Organization",
        summary="Get the command that installs the cluster's part, as text",
        run=get_install_file,
        parameters=(
            Parameter(name="cluster_uuid", place="path", schema={"type": "string", "format": "uuid"}),
            Parameter(name="cloud", schema={"type": "string"}),
            Parameter(name="clusterip", schema={"type": "string"}),
            Parameter(name="format", schema={"type": "string", "enum": ["json", "yaml"]}),
        ),
        answers={**_CHANGE, 200: {"type": "string"}},
    ),
)
