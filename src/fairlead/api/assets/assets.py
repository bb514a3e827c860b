"""Assets and storage classes: five routes for each kind in `control/assets/kinds.py`, and lists of several kinds.

Bodies and answers are declared from the kinds' specs. A credential is shown without its secret values.
"""

from functools import cache, partial
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean, query_choice, query_integer, query_text
from fairlead.api.http.crud import (
    CreateRoute,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    failing,
    operations,
)
from fairlead.api.http.operation import Call, Handler, Inline, Operation, Parameter, as_json
from fairlead.api.http.shapes import Instant, ScopeType, Shape, Uuid
from fairlead.api.policies.compliance import Compliance, find_compliance
from fairlead.control.assets import assets
from fairlead.control.assets.assets import AssetFilter, AssetInput
from fairlead.control.assets.kinds import ASSET_KINDS, BY_KIND, AssetKind
from fairlead.control.assets.usage import AssetUsers, find_usage
from fairlead.control.references.scopes import cluster_of_scope
from fairlead.kinds import KINDS, MEANT_FOR
from fairlead.model.clock import iso
from fairlead.model.records.assets import SCOPES, STORAGE_CLASSES, Asset, Scope
from fairlead.model.spec.fields import FieldInfo, Int32, Maybe, Spec, Text, Text253, value_or
from fairlead.model.spec.fields import Uuid as UuidText


class SupportedTypes(Spec, frozen=True, kw_only=True):
    """The kinds of workload that an asset is meant for."""

    workspace: Annotated[Maybe[bool], FieldInfo(text="Workspaces.")] = UNSET
    training: Annotated[Maybe[bool], FieldInfo(text="Trainings.")] = UNSET
    distributed: Annotated[Maybe[bool], FieldInfo(text="Distributed trainings.")] = UNSET
    inference: Annotated[Maybe[bool], FieldInfo(text="Inferences.")] = UNSET
    dist_framework: Annotated[
        Maybe[Literal["MPI", "PyTorch", "TF", "XGBoost"]], FieldInfo(text="The framework of distributed trainings.")
    ] = UNSET


class AssetMetaUpdate(Spec, frozen=True, kw_only=True):
    name: Annotated[Text253, FieldInfo(text="Its name, unique among its kind in its scope.")]
    description: Annotated[
        Maybe[Annotated[str, Meta(min_length=1, max_length=250)]], FieldInfo(text="What it is for.")
    ] = UNSET


class AssetMeta(AssetMetaUpdate, frozen=True, kw_only=True):
    scope: Annotated[ScopeType, FieldInfo(text="The scope in which it can be used.")]
    cluster_id: Annotated[Maybe[UuidText], FieldInfo(text="The cluster, for scope `cluster`.")] = UNSET
    department_id: Annotated[Maybe[Text], FieldInfo(text="The department, for scope `department`.")] = UNSET
    project_id: Annotated[Maybe[Int32], FieldInfo(text="The project, for scope `project`.")] = UNSET
    auto_delete: Annotated[Maybe[bool], FieldInfo(text="Whether it is deleted when nothing uses it any more.")] = UNSET
    private: Annotated[Maybe[bool], FieldInfo(text="Whether only its creator can see it.")] = UNSET
    workload_supported_types: Annotated[
        Maybe[SupportedTypes], FieldInfo(text="The kinds of workload that it is meant for.")
    ] = UNSET


class AssetMetaView(Shape):
    id: Uuid
    name: str
    kind: str
    scope: ScopeType
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    update_count: int
    tenant_id: int
    auto_delete: bool | None
    private: bool | None
    description: str | UnsetType = UNSET
    cluster_id: Uuid | UnsetType = UNSET
    department_id: str | UnsetType = UNSET
    project_id: int | UnsetType = UNSET
    project_name: str | UnsetType = UNSET
    workload_supported_types: dict[str, Any] | UnsetType = UNSET


class ClusterResource(Shape):
    name: str | None


class ClusterInfo(Shape):
    """The object that an asset created, under the name to use in workloads."""

    resources: tuple[ClusterResource, ...]


class AssetStatus(Shape):
    status: str


class WorkloadUsing(Shape):
    id: Uuid
    name: str
    status: str


class AssetUsing(Shape):
    id: Uuid
    name: str
    kind: str


class AssetsUsing(Shape):
    datasources: list[AssetUsing]


class AssetUsage(Shape):
    """The users of an asset: workloads that have not finished, and assets that refer to it."""

    trainings: list[WorkloadUsing]
    workspaces: list[WorkloadUsing]
    distributed: list[WorkloadUsing]
    inferences: list[WorkloadUsing]
    assets: AssetsUsing


class AssetView(Shape):
    meta: AssetMetaView
    spec: dict[str, Any]
    cluster_info: ClusterInfo | UnsetType = UNSET
    status: AssetStatus | UnsetType = UNSET
    used_by: AssetUsage | UnsetType = UNSET
    compliance: Compliance | UnsetType = UNSET


class AssetList(Shape):
    entries: list[AssetView]


class StorageClassSpec(msgspec.Struct):
    is_default: bool
    provisioner: str
    allow_volume_expansion: bool


class StorageClass(msgspec.Struct, rename={"spec": "Spec"}):
    storage_class_name: str
    cluster_id: Uuid
    spec: StorageClassSpec


class StorageClassList(msgspec.Struct):
    items: list[StorageClass]


class StorageClassSpecV2(Shape):
    is_default: bool
    provisioner: str
    allow_volume_expansion: bool


class StorageClassV2(Shape):
    storage_class_name: str
    cluster_id: Uuid
    spec: StorageClassSpecV2


class StorageClassListV2(Shape):
    items: list[StorageClassV2]


class AssetBody(Spec, frozen=True, kw_only=True):
    """A request's body. Each kind has a subclass with its own spec; a creation has an `AssetMeta`."""

    meta: AssetMetaUpdate
    spec: msgspec.Struct


@cache
def _body(kind: AssetKind, meta: type[AssetMetaUpdate]) -> type[AssetBody]:
    """The struct of a request's body: the asset's meta, and the kind's spec."""
    suffix = "Creation" if meta is AssetMeta else "Update"
    fields: list[tuple[str, object]] = [
        ("meta", Annotated[meta, FieldInfo(text="Its name and scope.")]),
        ("spec", Annotated[kind.spec, FieldInfo(text="What it holds.")]),
    ]
    name = f"{kind.kind.title().replace('-', '')}{suffix}"
    body = msgspec.defstruct(name, fields, bases=(AssetBody,), frozen=True, kw_only=True, rename="camel")
    return cast(type[AssetBody], body)


def _input(body: AssetBody) -> AssetInput:
    meta = body.meta
    if not isinstance(meta, AssetMeta):
        return AssetInput(
            name=meta.name, description=value_or(meta.description, ""), scope=Scope("project"), spec=body.spec
        )
    supported = value_or(meta.workload_supported_types, None)
    return AssetInput(
        name=meta.name,
        description=value_or(meta.description, ""),
        scope=_scope(meta),
        spec=body.spec,
        auto_delete=value_or(meta.auto_delete, False),
        private=value_or(meta.private, False),
        supported=msgspec.to_builtins(supported) if supported is not None else {},
    )


def _scope(meta: AssetMeta) -> Scope:
    ids = {
        "project": str(value_or(meta.project_id, "")),
        "department": value_or(meta.department_id, ""),
        "cluster": value_or(meta.cluster_id, ""),
    }
    return Scope(meta.scope, ids.get(meta.scope, ""))


async def render_asset(call: Call, asset: Asset, *, as_member: bool = False) -> AssetView:
    """The view of an asset; in lists of several kinds, its spec is in a field named after the kind."""
    kind = BY_KIND[asset.kind]
    context = call.context
    spec: dict[str, Any] = msgspec.json.decode(bytes(asset.spec))
    created_resource: Any = None
    if kind.is_credential:
        spec["keyId"] = asset.version
        created_resource = await assets.load_secret_of(context, asset)
        if kind.kind == "ngcApiKey":
            # The contract requires this field; its value is secret.
            spec["ngc_api_key"] = "hidden"
    elif kind.kind == "pvc":
        created_resource = await assets.load_claim_of(context, asset)
    name = (
        created_resource.name
        if created_resource is not None
        else spec.get("existingSecretName") or spec.get("claimName")
    )
    view = AssetView(meta=_meta(call, asset), spec={kind.member: spec} if as_member else spec)
    view.status = AssetStatus(status="No issues found")
    if name and (kind.is_credential or kind.kind == "pvc"):
        view.cluster_info = ClusterInfo(resources=(ClusterResource(name=name),))
    if query_boolean(call, "usageInfo"):
        view.used_by = render_usage(await find_usage(context, call.caller, asset))
    if not kind.is_credential:
        view.compliance = find_compliance(call, asset, spec)
    return view


def render_usage(usage: AssetUsers) -> AssetUsage:
    def of(rest: str) -> list[WorkloadUsing]:
        own = (each for each in usage.workloads if KINDS[each.kind].rest == rest)
        return [WorkloadUsing(id=each.id, name=each.name, status=each.phase) for each in own]

    users = [AssetUsing(id=other.id, name=other.name, kind=other.kind) for other in usage.assets]
    members = {name: of(name) for name in AssetUsage.__struct_fields__ if name != "assets"}
    return AssetUsage(**members, assets=AssetsUsing(datasources=users))


def _meta(call: Call, asset: Asset) -> AssetMetaView:
    directory = call.context.directory
    project = directory.projects.get(asset.scope.id) if asset.scope.type == "project" else None
    is_narrow = asset.scope.type in ("cluster", "department", "project")
    return AssetMetaView(
        id=asset.id,
        name=asset.name,
        kind=asset.kind,
        scope=asset.scope.type,  # type: ignore[arg-type]  # only values of the contract are stored
        created_at=iso(asset.created_at),
        created_by=asset.created_by,
        updated_at=iso(asset.updated_at),
        updated_by=asset.updated_by,
        update_count=asset.version - 1,
        tenant_id=directory.cluster.tenant_id,
        auto_delete=asset.auto_delete,
        private=asset.private,
        description=asset.description or UNSET,
        cluster_id=cluster_of_scope(call.context, asset.scope) if is_narrow else UNSET,
        department_id=asset.scope.id if asset.scope.type == "department" else UNSET,
        project_id=int(asset.scope.id) if asset.scope.type == "project" else UNSET,
        project_name=project.name if project is not None else UNSET,
        workload_supported_types=asset.supported or UNSET,
    )


def _filter(call: Call, kinds: tuple[str, ...]) -> AssetFilter:
    for name in ("usageInfo", "statusInfo", "includeDescendants"):
        query_boolean(call, name)
    meant = {word: query_boolean(call, f"is{word.title()}", None) for word in MEANT_FOR}
    complies = query_choice(call, "complyToWorkloadType", tuple(word.title() for word in MEANT_FOR)).lower()
    query_choice(call, "complyToReplicaType", ("Worker", "Master"))
    ids = query_text(call, "assetIds")
    project = query_integer(call, "projectId", None) or query_integer(call, "complyToProject", None)
    return AssetFilter(
        kinds=kinds,
        name=query_text(call, "name"),
        scope=query_choice(call, "scope", SCOPES),
        project_id="" if project is None else str(project),
        department_id=query_text(call, "departmentId"),
        ids=tuple(id.strip().lower() for id in ids.split(",")) if ids else (),
        meant_for={word: wanted for word, wanted in meant.items() if wanted is not None}
        | ({complies: True} if complies else {}),
        framework=query_text(call, "distributedFramework"),
    )


_FAILURES = (401, 403, 503)
_ASSET_ID = Parameter(
    name="AssetId", place="path", schema={"type": "string", "format": "uuid"}, description="The asset's id."
)
_INTEGER = {"type": "integer", "format": "int32", "minimum": 0}
_LIST = (
    Parameter(name="name", schema={"type": "string"}, description="Only the item with this name."),
    Parameter(name="scope", schema={"type": "string", "enum": list(SCOPES)}),
    Parameter(name="projectId", schema=_INTEGER, description="Only items that workloads of this project can use."),
    Parameter(name="departmentId", schema={"type": "string"}),
    Parameter(name="clusterId", schema={"type": "string", "format": "uuid"}),
    Parameter(name="usageInfo", schema={"type": "boolean"}),
    Parameter(name="statusInfo", schema={"type": "boolean"}),
    Parameter(name="includeDescendants", schema={"type": "boolean"}),
    Parameter(name="complyToProject", schema=_INTEGER),
    Parameter(
        name="complyToWorkloadType",
        schema={"type": "string", "enum": [word.title() for word in MEANT_FOR]},
    ),
    Parameter(name="complyToReplicaType", schema={"type": "string", "enum": ["Worker", "Master"]}),
    Parameter(name="assetIds", schema={"type": "string"}),
    *(Parameter(name=f"is{word.title()}", schema={"type": "boolean"}) for word in MEANT_FOR),
    Parameter(name="distributedFramework", schema={"type": "string"}),
)

#: Parameters that reading one asset accepts too; they do not change the answer.
_ONE = tuple(one for one in _LIST if one.name.startswith("complyTo") or one.name in ("usageInfo", "statusInfo"))


def _lister(kind: AssetKind) -> Handler:
    async def find(call: Call) -> Response:
        matching = await assets.find_assets(call.context, call.caller, _filter(call, (kind.kind,)))
        return as_json(AssetList(entries=[await render_asset(call, asset) for asset in matching]))

    return find


def _asset_operations(kind: AssetKind) -> tuple[Operation, ...]:
    word = kind.path.replace("/", "_").replace("-", "_")
    resource = RestResource(
        path=f"/api/v1/asset/{kind.path}",
        id=_ASSET_ID,
        tag="Credentials" if kind.is_credential else "Assets",
        view=AssetView,
        render=render_asset,
        failures=_FAILURES,
        uuid_of=kind.title,
        rows=(
            HandledRoute(
                id=f"list_{word}_assets",
                summary=f"List assets: {kind.title}",
                run=_lister(kind),
                parameters=_LIST,
                answers={200: AssetList},
                also=(400, 404),
            ),
            CreateRoute(
                id=f"create_{word}_asset",
                summary=f"Create an asset: {kind.title}",
                body=Inline(partial(_body, kind, AssetMeta)),
                read=_input,
                use_case=lambda context, caller, given, request_id: assets.create_asset(
                    context, caller, kind, given, request_id
                ),
                status=202,
                also=(400, 409),
            ),
            ReadRoute(
                id=f"get_{word}_asset",
                summary=f"Get an asset: {kind.title}",
                use_case=lambda context, caller, id: assets.load_asset(context, caller, kind, id),
                parameters=_ONE,
                also=(400, 404),
            ),
            UpdateRoute(
                id=f"update_{word}_asset",
                summary=f"Change an asset: {kind.title}",
                body=Inline(partial(_body, kind, AssetMetaUpdate)),
                read=_input,
                use_case=lambda context, caller, id, given, request_id: assets.update_asset(
                    context, caller, kind, id, given, request_id
                ),
                status=202,
                also=(400, 404, 409, 412),
            ),
            DeleteRoute(
                id=f"delete_{word}_asset",
                summary=f"Delete an asset: {kind.title}",
                use_case=lambda context, caller, id, request_id: assets.delete_asset(
                    context, caller, kind, id, request_id
                ),
                status=204 if kind.is_deleted_at_once else 202,
                also=(400, 404, 412),
            ),
        ),
    )
    return operations(resource)


def _list_of_all(group: str, id: str, summary: str) -> Operation:
    kinds = tuple(kind.kind for kind in ASSET_KINDS if kind.path.startswith(f"{group}/"))

    async def find(call: Call) -> Response:
        matching = await assets.find_assets(call.context, call.caller, _filter(call, kinds))
        return as_json(AssetList(entries=[await render_asset(call, asset, as_member=True) for asset in matching]))

    return Operation(
        method="GET",
        path=f"/api/v1/asset/{group}",
        id=id,
        tag="Credentials" if group == "credentials" else "Assets",
        summary=summary,
        run=find,
        parameters=_LIST,
        answers={**failing(*_FAILURES, 400, 404), 200: AssetList},
    )


async def get_storage_classes(call: Call) -> Response:
    cluster = call.context.directory.cluster.id
    items = [
        StorageClass(name, cluster, StorageClassSpec(number == 0, "fairlead", False))
        for number, name in enumerate(STORAGE_CLASSES)
        if query_text(call, "name") in ("", name)
    ]
    return as_json(StorageClassList(items))


async def get_storage_classes_v2(call: Call) -> Response:
    cluster = call.context.directory.cluster.id
    items = [
        StorageClassV2(
            storage_class_name=name,
            cluster_id=cluster,
            spec=StorageClassSpecV2(is_default=number == 0, provisioner="fairlead", allow_volume_expansion=False),
        )
        for number, name in enumerate(STORAGE_CLASSES)
        if query_text(call, "name") in ("", name)
    ]
    return as_json(StorageClassListV2(items=items))


_STORAGE = (
    Parameter(name="clusterId", schema={"type": "string", "format": "uuid"}),
    Parameter(name="name", schema={"type": "string"}, description="Only the item with this name."),
    Parameter(name="includeNone", schema={"type": "boolean"}),
)
ASSET_OPERATIONS: tuple[Operation, ...] = (
    *(operation for kind in ASSET_KINDS for operation in _asset_operations(kind)),
    _list_of_all("datasource", "list_datasource_assets", "List data sources of all kinds"),
    _list_of_all("credentials", "list_credentials_assets", "List credentials of all kinds"),
    Operation(
        method="GET",
        path="/api/v1/storage-classes",
        id="getStorageClasses",
        tag="Assets",
        summary="List storage classes",
        run=get_storage_classes,
        needs="storage-classes:read",
        parameters=_STORAGE,
        answers={**failing(*_FAILURES, 500), 200: StorageClassList},
    ),
    Operation(
        method="GET",
        path="/api/v2/storage-classes",
        id="getStorageClassesV2",
        tag="Assets",
        summary="List storage classes",
        run=get_storage_classes_v2,
        needs="storage-classes:read",
        parameters=_STORAGE,
        answers={**failing(*_FAILURES, 500), 200: StorageClassListV2},
    ),
)
