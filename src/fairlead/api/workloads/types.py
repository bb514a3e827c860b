"""The routes of workload types: those of the built-in kinds, and those that an administrator adds."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_boolean
from fairlead.api.http.crud import CreateRoute, DeleteRoute, HandledRoute, RestResource, UpdateRoute, operations
from fairlead.api.http.list_parameters import filter_by, read_list_request
from fairlead.api.http.operation import OURS, Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.api.workloads.catalog import constant_id
from fairlead.control.context import Context
from fairlead.control.filters import FilterField, parse_filters, select
from fairlead.control.lists import normal_id
from fairlead.control.organization import workload_types
from fairlead.control.organization.workload_types import WorkloadTypeInput
from fairlead.formats.foreign.manifests import is_supported
from fairlead.kinds import KINDS
from fairlead.model.clock import iso
from fairlead.model.errors import ComplianceIssue, Forbidden, Invalid, NotFound
from fairlead.model.priority import CATEGORIES, PRIORITIES, is_preemptible
from fairlead.model.records.organization import WorkloadType
from fairlead.model.records.people import Caller
from fairlead.model.spec.fields import Given, Spec

_GROUP = "run.ai"
Interfaces = Annotated[tuple[dict[str, Any], ...], Meta(max_length=4)]


class TypeStatus(Shape):
    """Whether manifests of the type can be run in the cluster."""

    cluster_id: Uuid
    phase: Literal["Ready", "NotSupported"]
    updated_at: Instant


class TypeView(Shape):
    """A kind of workload with its category, default priority and default preemptibility."""

    id: Uuid
    name: str
    group: str
    category_id: Uuid
    category_name: str
    priority_id: Uuid
    priority_name: str
    preemptibility: Annotated[str, OURS]
    resource_interfaces: list[dict[str, Any]] | UnsetType = UNSET
    cluster_statuses: list[TypeStatus] | UnsetType = UNSET
    created_at: Instant | UnsetType = UNSET
    created_by: str | UnsetType = UNSET
    updated_at: Instant | UnsetType = UNSET
    updated_by: str | UnsetType = UNSET


class TypeList(Shape):
    types: list[TypeView]


class TypeUpdate(Spec, frozen=True, kw_only=True):
    category_id: Given[str] = UNSET
    priority_id: Given[str] = UNSET
    resource_interfaces: Given[Interfaces] = UNSET


class TypeCreation(TypeUpdate, frozen=True, kw_only=True):
    """A new type: the kind and group of a Kubernetes object."""

    name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Z][a-z0-9]*([A-Z][a-z0-9]*)*$",
            extra={"rule": "give the kind of a Kubernetes object, such as Job"},
        ),
    ]
    group: Annotated[
        str,
        Meta(
            pattern=r"^[a-z](?:[a-z0-9.-]*[a-z0-9])?$",
            extra={"rule": "give the group of a Kubernetes API, such as batch"},
        ),
    ]
    category_id: str
    priority_id: str


def _view(id: str, name: str, group: str, category: str, priority: str) -> TypeView:
    return TypeView(
        id=id,
        name=name,
        group=group,
        category_id=constant_id("category", category),
        category_name=category,
        priority_id=constant_id("priority", priority),
        priority_name=priority,
        preemptibility="preemptible" if is_preemptible(PRIORITIES[priority], None) else "non-preemptible",
    )


_BUILT_IN = {
    view.id: view
    for view in (
        _view(constant_id("type", kind.key), kind.title.replace(" ", ""), _GROUP, kind.category, kind.priority)
        for kind in KINDS.values()
    )
}
_FIELDS: dict[str, FilterField[TypeView]] = {
    "name": FilterField(read=lambda view: view.name),
    "group": FilterField(read=lambda view: view.group),
}


def render_type(call: Call, type: WorkloadType) -> TypeView:
    view = _view(type.id, type.name, type.group, type.category, type.priority)
    view.resource_interfaces = [{"resourceInterface": each} for each in type.resource_interfaces]
    is_everywhere = is_supported(type.group, type.name)
    view.cluster_statuses = [
        TypeStatus(
            cluster_id=id,
            phase="Ready" if is_everywhere or call.context.engine_of(id).is_cluster else "NotSupported",
            updated_at=iso(type.updated_at),
        )
        for id in call.context.directory.clusters
    ]
    view.created_at, view.created_by = iso(type.created_at), type.created_by
    view.updated_at, view.updated_by = iso(type.updated_at), type.updated_by
    return view


def _added(call: Call) -> list[TypeView]:
    return [render_type(call, each) for each in call.context.directory.cluster.workload_types]


async def get_types(call: Call) -> Response:
    filters = parse_filters(read_list_request(call).filter_by, _FIELDS)
    shown = _added(call)
    if not query_boolean(call, "externalTypesOnly"):
        shown += _BUILT_IN.values()
    return as_json(TypeList(types=select(shown, filters, _FIELDS["name"], False, lambda view: view.id)))


async def get_type(call: Call) -> Response:
    id = normal_id(call.path["workloadTypeId"], "workload type")
    view = _BUILT_IN.get(id) or next((each for each in _added(call) if each.id == id), None)
    if view is None:
        raise NotFound(f"There is no workload type with the id {id}")
    return as_json(view)


def _input(body: TypeUpdate) -> WorkloadTypeInput:
    """The input of a use case; raises Invalid for a category or priority that does not exist."""
    issues: list[ComplianceIssue] = []
    category = _name_of(body.category_id, "category", tuple(CATEGORIES), issues)
    priority = _name_of(body.priority_id, "priority", tuple(PRIORITIES), issues)
    if issues:
        raise Invalid(issues=tuple(issues))
    creation = body if isinstance(body, TypeCreation) else None
    return WorkloadTypeInput(
        name=creation.name if creation else "",
        group=creation.group if creation else "",
        category=category,
        priority=priority,
        resource_interfaces=None if body.resource_interfaces is UNSET else body.resource_interfaces,
    )


def _name_of(id: Given[str], what: str, names: tuple[str, ...], issues: list[ComplianceIssue]) -> str | None:
    if id is UNSET:
        return None
    name = next((name for name in names if constant_id(what, name) == id.lower()), None)
    if name is None:
        plural = "categories" if what == "category" else "priorities"
        detail = f"there is no {what} {id[:60]}; GET /api/v1/workload-{plural} lists all"
        issues.append(ComplianceIssue(f"{what}Id", detail))
    return name


def _refuse_built_in(id: str) -> None:
    if id in _BUILT_IN:
        raise Forbidden(f"Workload type {_BUILT_IN[id].name} is built in and cannot be changed or deleted")


async def update_type(
    context: Context, caller: Caller, id: str, input: WorkloadTypeInput, request_id: str
) -> WorkloadType:
    _refuse_built_in(id)
    return await workload_types.update_type(context, caller, id, input, request_id)


async def delete_type(context: Context, caller: Caller, id: str, request_id: str) -> None:
    _refuse_built_in(id)
    await workload_types.delete_type(context, caller, id, request_id)


_TYPES = RestResource(
    path="/api/v1/workload-types",
    id=Parameter(name="workloadTypeId", place="path", schema={"type": "string", "format": "uuid"}),
    tag="Workload properties",
    view=TypeView,
    render=render_type,
    failures=(401, 403, 503),
    uuid_of="workload type",
    rows=(
        HandledRoute(
            id="list_workload_types",
            summary="List workload types",
            run=get_types,
            needs="workload-types:read",
            parameters=(
                Parameter(
                    name="externalTypesOnly",
                    schema={"type": "boolean", "default": False},
                    description="True lists only types that are not built in.",
                ),
                filter_by(_FIELDS),
            ),
            answers={200: TypeList},
        ),
        HandledRoute(
            suffix="/{}",
            id="get_workload_type",
            summary="Get a workload type",
            run=get_type,
            needs="workload-types:read",
            answers={200: TypeView},
            also=(404,),
        ),
        CreateRoute(
            id="create_workload_type",
            summary="Add a kind of Kubernetes object that users submit as a manifest",
            body=TypeCreation,
            read=_input,
            use_case=workload_types.create_type,
            also=(400, 409),
        ),
        UpdateRoute(
            id="update_workload_type",
            summary="Change the category or priority of an added workload type",
            body=TypeUpdate,
            read=_input,
            use_case=update_type,
            also=(400, 404),
        ),
        DeleteRoute(
            id="delete_workload_type",
            summary="Delete an added workload type",
            use_case=delete_type,
            also=(404, 500),
        ),
    ),
)

WORKLOAD_TYPE_OPERATIONS: tuple[Operation, ...] = operations(_TYPES)
