"""Takes over workloads of Run:ai in the same cluster: copies its custom resources into the group of Fairlead.

Called by `fairlead kubernetes adopt`. The objects of Run:ai are read and never changed. A copy does not start as long
as its original may run.
"""

import asyncio
import os
from collections.abc import Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import MERGE, Api, ApiError, error_message
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.client.resources import DEFINITION, NAMESPACE, Manifest, Resource
from fairlead.engines.kubernetes.client.writer import MANAGER, ListedObjects
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL
from fairlead.formats.crd import plural_of
from fairlead.formats.custom_resource import OWN_GROUP, RUNAI_GROUP, api_version, custom_kinds
from fairlead.formats.yaml.documents import read_manifests, read_workload
from fairlead.model.errors import Refused
from fairlead.model.records.organization import NAMESPACE_PREFIX

#: The annotation with the uid of the original.
ADOPTED_FROM = "fairlead/adopted-from"
#: Members of a spec that the system fills in; and annotations that are kubectl's own.
_FILLED_IN, _OF_KUBECTL = ("userId", "ingressUrl"), "kubectl.kubernetes.io/"
_MANAGED_BY = "app.kubernetes.io/managed-by"
_QUERY = {"fieldManager": MANAGER}
_GROUPS = (RUNAI_GROUP, OWN_GROUP)


class Takeover(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is to be done, or why it cannot be done."""

    kind: str
    namespace: str
    name: str
    what: str
    is_refused: bool = False
    #: What is written, and where; none if there is nothing to do.
    method: str = ""
    path: str = ""
    body: Manifest = {}


class TakeoverRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller wants to take over."""

    kubeconfig: str = ""
    #: The installation that takes over.
    cluster_id: str
    #: Only workloads of this namespace; empty for all.
    namespace: str = ""
    #: Whether copies start if their originals are not suspended.
    starts: bool = False


class Original(msgspec.Struct, rename="camel"):
    metadata: objects.Metadata = objects.Metadata()
    spec: dict[str, object] = {}


class _Originals(msgspec.Struct):
    items: list[Original] = []


def take_over(wanted: TakeoverRequest, *, is_dry_run: bool) -> list[Takeover]:
    """Everything that is to be done, which is done unless it is a dry run. Raises Refused if nothing can be."""
    try:
        return asyncio.run(_take_over(wanted, is_dry_run))
    except (ApiError, OSError) as error:
        raise Refused(f"The cluster cannot be used: {error_message(error)}") from error


async def _take_over(wanted: TakeoverRequest, is_dry_run: bool) -> list[Takeover]:
    api = Api(load_access(wanted.kubeconfig, os.environ))
    try:
        plan = await _plan(api, wanted)
        for step in plan if not is_dry_run else ():
            if step.method:
                content = MERGE if step.method == "PATCH" else "application/json"
                await api.request(step.method, step.path, step.body, query=_QUERY, content=content)
        return plan
    finally:
        api.close()


async def _plan(api: Api, wanted: TakeoverRequest) -> list[Takeover]:
    kinds = [kind for kind in custom_kinds() if not kind.own_api]
    steps: list[Takeover] = []
    has_foreign = False
    for kind in kinds:
        original_resource, own_resource = (
            Resource(api_version(kind, group), kind.resource, plural_of(kind)) for group in _GROUPS
        )
        definition = await api.find(DEFINITION.path(name=f"{original_resource.plural}.{RUNAI_GROUP}"))
        if definition is None or _is_ours(definition):
            continue
        has_foreign = True
        if await api.find(DEFINITION.path(name=f"{own_resource.plural}.{OWN_GROUP}")) is None:
            raise Refused(
                f"The definitions of {OWN_GROUP} are not installed; use `fairlead kubernetes manifests "
                f"--group {OWN_GROUP}`"
            )
        originals = msgspec.json.decode(await api.get(original_resource.path(wanted.namespace)), type=_Originals).items
        listed = msgspec.json.decode(await api.get(own_resource.path(wanted.namespace)), type=ListedObjects).items
        present = {(one.metadata.namespace, one.metadata.name) for one in listed}
        steps += [plan_copy(own_resource, one, present, starts=wanted.starts) for one in originals]
    if not has_foreign:
        raise Refused(f"The cluster has no definitions of {RUNAI_GROUP} but Fairlead's own; there is nothing to adopt")
    listed = msgspec.json.decode(await api.get(NAMESPACE.path()), type=ListedObjects).items
    owners = {one.metadata.name: one.metadata.labels.get(CLUSTER_LABEL, "") for one in listed}
    return plan_namespaces(steps, owners, wanted.cluster_id)


def _is_ours(definition: bytes) -> bool:
    labels = msgspec.json.decode(definition, type=Original).metadata.labels
    return labels.get(_MANAGED_BY) == "fairlead"


def plan_copy(own_resource: Resource, original: Original, present: set[tuple[str, str]], *, starts: bool) -> Takeover:
    """The copy of one object, or why there is none. Pure."""
    metadata = original.metadata
    step = Takeover(kind=own_resource.kind, namespace=metadata.namespace, name=metadata.name, what="")
    if (metadata.namespace, metadata.name) in present:
        return msgspec.structs.replace(step, what="exists already")
    if metadata.deletion_timestamp is not None:
        return msgspec.structs.replace(step, what="is being deleted, so it is left out")
    body = _render_copy(own_resource, original)
    problem = "" if "baseWorkload" in original.spec else _find_problem(body)
    if problem:
        return msgspec.structs.replace(step, what=f"cannot be adopted: {problem}", is_refused=True)
    what = "is copied"
    if not starts and _is_active(original):
        body["spec"]["active"] = {"value": False}
        what = "is copied, suspended"
    return msgspec.structs.replace(
        step, what=what, method="POST", path=own_resource.path(metadata.namespace), body=body
    )


def _render_copy(own_resource: Resource, original: Original) -> Manifest:
    metadata = original.metadata
    notes = {name: text for name, text in metadata.annotations.items() if not name.startswith(_OF_KUBECTL)}
    return {
        "apiVersion": own_resource.api,
        "kind": own_resource.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "labels": metadata.labels,
            "annotations": {**notes, ADOPTED_FROM: metadata.uid},
        },
        "spec": {name: value for name, value in original.spec.items() if name not in _FILLED_IN},
    }


def _find_problem(body: Manifest) -> str:
    manifests, issues = read_manifests(msgspec.json.encode(body))
    if not issues and manifests and not manifests[0].is_template:
        _, issues = read_workload(manifests[0])
    return "; ".join(f"{issue.path} {issue.details}" for issue in issues[:3])


def _is_active(original: Original) -> bool:
    given = original.spec.get("active")
    return not (isinstance(given, dict) and given.get("value") is False)


def plan_namespaces(steps: Sequence[Takeover], owners: dict[str, str], cluster_id: str) -> list[Takeover]:
    """The plan with the namespaces that are handed over first. Pure."""
    names = sorted({step.namespace for step in steps if step.method})
    foreign = {name for name in names if owners.get(name) not in (None, "", cluster_id)}
    foreign |= {name for name in names if not name.startswith(NAMESPACE_PREFIX)}
    handed = [
        Takeover(
            kind=NAMESPACE.kind,
            namespace="",
            name=name,
            what=f"is handed over to project {name.removeprefix(NAMESPACE_PREFIX)}",
            method="PATCH",
            path=NAMESPACE.path("", name),
            body={"metadata": {"labels": {CLUSTER_LABEL: cluster_id}}},
        )
        for name in names
        if name not in foreign and owners.get(name) != cluster_id
    ]
    return [*handed, *(_refuse_foreign(step) if step.namespace in foreign else step for step in steps)]


def _refuse_foreign(step: Takeover) -> Takeover:
    if not step.method:
        return step
    what = "cannot be adopted: its namespace belongs to another Fairlead installation, or is not that of a project"
    return Takeover(kind=step.kind, namespace=step.namespace, name=step.name, what=what, is_refused=True)
