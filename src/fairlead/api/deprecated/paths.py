"""What the deprecated routes share: their declaration, and the check of the cluster that their path names."""

from functools import partial

from fairlead.api.http.crud import failing
from fairlead.api.http.operation import Call, Operation, Parameter
from fairlead.control.organization.inventory import load_record

BASE = "/v1/k8s/clusters"
FAILURES = failing(400, 401, 403, 404, 500, 503)

deprecated = partial(Operation, tag="Deprecated", is_deprecated=True)


def path_parameters(*names: str) -> tuple[Parameter, ...]:
    """Parameters of the path; those called id are numbers, as older versions had them."""
    return tuple(
        Parameter(name=name, place="path", schema={"type": "integer" if name.endswith("id") else "string"})
        for name in names
    )


def flag(name: str) -> Parameter:
    return Parameter(name=name, schema={"type": "boolean"})


def check_cluster(call: Call) -> str:
    """The id of the cluster in the path; raises `NotFound` if there is no such cluster."""
    given = next(call.path[name] for name in ("clusterId", "clusterUuid", "cluster_uuid", "uuid") if name in call.path)
    return load_record(call.context, call.caller, call.context.directory.clusters, given, "cluster").id
