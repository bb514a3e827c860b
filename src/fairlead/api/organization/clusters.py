"""The routes that change clusters. An installation has one cluster, which came with it, so only its name can change."""

from typing import NoReturn

from msgspec import UNSET, field
from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_text, receive_json
from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Accepted, Shape
from fairlead.api.organization.reads import ClusterView
from fairlead.control import access
from fairlead.control.organization import clusters, inventory
from fairlead.model.errors import Forbidden
from fairlead.model.records.organization import Cluster
from fairlead.model.spec.fields import Given, Spec, Text

_CLUSTER = Parameter(name="clusterUuid", place="path", schema={"type": "string", "format": "uuid"})
#: The folder of the chart in the source of Fairlead.
_CHART = "deploy/helm"


class ClusterCreation(Spec, frozen=True, kw_only=True):
    name: Text
    domain: Given[str] = UNSET
    version: Given[str] = UNSET


class ClusterUpdate(Spec, frozen=True, kw_only=True):
    name: str


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
    access.check(call.caller, "clusters:create")
    body = await receive_json(call, ClusterCreation)
    raise Forbidden(
        f"Cluster {body.name[:60]} was not created: an installation of Fairlead has one cluster. Install another "
        "server for it"
    )


async def update_cluster(call: Call) -> Response:
    body = await receive_json(call, ClusterUpdate)
    await clusters.rename_cluster(call.context, call.caller, _load(call).id, body.name, call.request_id)
    return Response(status_code=204)


async def delete_cluster(call: Call) -> NoReturn:
    access.check(call.caller, "clusters:delete")
    cluster = _load(call)
    raise Forbidden(f"Cluster {cluster.name} was not deleted: it is the only one of this installation")


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
    """The command that installs the cluster's part again, for the engine of this installation."""
    if not call.context.engine.is_cluster:
        return f"fairlead serve  # cluster {cluster.name} is this machine; nothing else is installed"
    return f"helm upgrade --install fairlead {_CHART} -n fairlead --create-namespace"


async def get_install_file(call: Call) -> Response:
    access.check(call.caller, "clusters:read")
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
        summary="Refused: an installation has one cluster",
        run=create_cluster,
        body=RequestBody(schema=ClusterCreation),
        answers={**_CHANGE, 201: ClusterView},
    ),
    Operation(
        method="PUT",
        path="/api/v1/clusters/{clusterUuid}",
        id="update_cluster",
        tag="Organization",
        summary="Rename the cluster",
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
        summary="Refused: the cluster came with the installation",
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
