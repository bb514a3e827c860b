"""Routes and views of data volumes."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_choice, query_text, receive_json
from fairlead.api.http.crud import CreateRoute, DeleteRoute, HandledRoute, RestResource, UpdateRoute, operations
from fairlead.api.http.list_parameters import (
    LIMIT,
    OFFSET,
    SEARCH,
    filter_by,
    next_offset,
    read_list_request,
    sort_by,
    sort_order,
)
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Count, Instant, Shape, Uuid
from fairlead.control.assets import data_volumes
from fairlead.control.assets.data_volumes import VOLUME_FIELD_NAMES, VolumeInput
from fairlead.control.people.access_rules import scope_name
from fairlead.model.clock import iso
from fairlead.model.errors import ComplianceIssue, Conflict, Invalid
from fairlead.model.records.assets import DataVolume, Scope
from fairlead.model.spec.fields import Given, Maybe, Spec, UpTo63, UpTo253, value_or

_REQUEST_TYPES = ("Originated", "UsableInProject")
ScopeType = Literal["cluster", "department", "project"]
Description = Given[Annotated[str, Meta(max_length=127)]]


class VolumeCreation(Spec, frozen=True, kw_only=True):
    """A new data volume: a claim whose data other projects can read."""

    name: Annotated[str, Meta(max_length=63, extra_json_schema={"pattern": "^[a-z][-a-z0-9]{0,62}$"})]
    origin_pvc_name: UpTo63
    project_id: str
    description: Description = UNSET
    use_original_volume: Maybe[bool] = UNSET
    should_delete_original_volume: Given[bool] = UNSET


class VolumeUpdate(Spec, frozen=True, kw_only=True):
    """Changes to a data volume."""

    description: Description = UNSET


class SharedScope(Spec, frozen=True, kw_only=True):
    scope_id: UpTo253
    scope_type: ScopeType


class SharedScopesUpdate(Spec, frozen=True, kw_only=True):
    """Scopes to share the data with, and scopes to stop sharing it with."""

    add: Given[Annotated[tuple[SharedScope, ...], Meta(max_length=1000)]] = UNSET
    remove: Given[Annotated[tuple[SharedScope, ...], Meta(max_length=1000)]] = UNSET


class SharedScopeView(Shape):
    scope_id: str
    scope_type: ScopeType
    scope_name: str


class VolumeStatus(Shape):
    phase: Literal["Ready", "NotReady", "Creating", "Deleting", "Unknown"]
    datavolume_pvc_name: str


class VolumeView(Shape):
    id: Uuid
    name: str
    origin_pvc_name: str
    project_id: str
    project_name: str
    cluster_id: Uuid
    department_id: str
    use_original_volume: bool | None
    should_delete_original_volume: bool
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    status: VolumeStatus
    description: str | UnsetType = UNSET
    shared_scopes: list[SharedScopeView] | UnsetType = UNSET


class VolumeList(Shape):
    datavolumes: list[VolumeView]
    next: int | UnsetType = UNSET


def render_scopes(call: Call, volume: DataVolume) -> list[SharedScopeView]:
    return [
        SharedScopeView(
            scope_id=scope.id,
            scope_type=scope.type,  # type: ignore[arg-type]  # only values of the contract are stored
            scope_name=scope_name(call.context, scope),
        )
        for scope in volume.shared
    ]


def render_volume(call: Call, volume: DataVolume, *, with_scopes: bool = False) -> VolumeView:
    directory = call.context.directory
    project = directory.projects.get(volume.project_id)
    return VolumeView(
        id=volume.id,
        name=volume.name,
        origin_pvc_name=volume.claim_name,
        project_id=volume.project_id,
        project_name=project.name if project else "",
        cluster_id=project.cluster_id if project else directory.cluster.id,
        department_id=project.department_id if project else "",
        use_original_volume=volume.use_original,
        should_delete_original_volume=volume.delete_original,
        created_at=iso(volume.created_at),
        created_by=volume.created_by,
        updated_at=iso(volume.updated_at),
        updated_by=volume.updated_by,
        status=VolumeStatus(phase="Ready", datavolume_pvc_name=volume.claim_name),
        description=volume.description or UNSET,
        shared_scopes=render_scopes(call, volume) if with_scopes else UNSET,
    )


def _project(call: Call) -> str:
    """The project that must be able to use the volumes; empty for volumes that the caller's projects created."""
    kind = query_choice(call, "requestType", _REQUEST_TYPES, _REQUEST_TYPES[0])
    project = query_text(call, "usableInProjectId")
    if kind != _REQUEST_TYPES[0] and not project:
        raise Invalid(issues=(ComplianceIssue("usableInProjectId", "is required with this requestType"),))
    return project if kind != _REQUEST_TYPES[0] else ""


async def get_volumes(call: Call) -> Response:
    request = read_list_request(call, VOLUME_FIELD_NAMES)
    page = await data_volumes.find_volumes(call.context, call.caller, request, _project(call))
    views = [render_volume(call, volume) for volume in page.items]
    return as_json(VolumeList(datavolumes=views, next=next_offset(page)))


async def count_volumes(call: Call) -> Response:
    page = await data_volumes.find_volumes(call.context, call.caller, read_list_request(call), _project(call))
    return as_json(Count(page.total))


async def check_name(call: Call) -> Response:
    name = query_text(call, "dataName")
    if not await data_volumes.is_name_free(call.context, call.caller, name):
        raise Conflict(f"A data volume named {name[:63]} already exists", ("name",))
    return Response(status_code=204)


def _creation_input(body: VolumeCreation) -> DataVolume:
    return DataVolume(
        id="",
        version=1,
        name=body.name,
        scope_key="",
        project_id=body.project_id,
        claim_name=body.origin_pvc_name,
        description=value_or(body.description, ""),
        use_original=value_or(body.use_original_volume, True),
        delete_original=value_or(body.should_delete_original_volume, False),
    )


def _show_with_scopes(call: Call, volume: DataVolume) -> VolumeView:
    return render_volume(call, volume, with_scopes=True)


async def get_volume(call: Call) -> Response:
    volume = await data_volumes.load_volume(call.context, call.caller, _VOLUMES.id_of(call))
    return as_json(_show_with_scopes(call, volume))


async def get_scopes(call: Call) -> Response:
    volume = await data_volumes.load_volume(call.context, call.caller, _VOLUMES.id_of(call))
    return as_json(render_scopes(call, volume))


async def update_scopes(call: Call) -> Response:
    body = await receive_json(call, SharedScopesUpdate)

    def scopes(given: Given[tuple[SharedScope, ...]]) -> tuple[Scope, ...]:
        return tuple(Scope(one.scope_type, one.scope_id) for one in value_or(given, ()))

    given = VolumeInput(add=scopes(body.add), remove=scopes(body.remove))
    changed = await data_volumes.update_volume(call.context, call.caller, _VOLUMES.id_of(call), given, call.request_id)
    return as_json(render_scopes(call, changed))


_FILTERS = (filter_by(VOLUME_FIELD_NAMES), SEARCH)
_WHICH = (
    Parameter(name="requestType", schema={"type": "string", "enum": list(_REQUEST_TYPES)}),
    Parameter(name="usableInProjectId", schema={"type": "string"}),
)


def _shared_scopes(segment: str, mark: str = "") -> tuple[HandledRoute, HandledRoute]:
    """The routes of the scopes that data is shared with."""
    return (
        HandledRoute(
            suffix=f"/{{}}/{segment}",
            id=f"get_datavolume_shared_scopes{mark}",
            summary="List the scopes that the data is shared with; the answer is an array",
            run=get_scopes,
            answers={200: list[SharedScopeView]},
            also=(404,),
        ),
        HandledRoute(
            method="PATCH",
            suffix=f"/{{}}/{segment}",
            id=f"patch_datavolume_shared_scopes{mark}",
            summary="Share the data with more scopes, or stop sharing it",
            run=update_scopes,
            body=SharedScopesUpdate,
            answers={200: list[SharedScopeView]},
            also=(404,),
        ),
    )


_VOLUMES = RestResource(
    path="/api/v1/datavolumes",
    id=Parameter(name="datavolumeId", place="path", schema={"type": "string", "format": "uuid"}),
    tag="Data volumes",
    view=VolumeView,
    render=render_volume,
    failures=(400, 401, 403, 500, 503),
    uuid_of="data volume",
    rows=(
        HandledRoute(
            id="get_datavolumes",
            summary="List data volumes",
            run=get_volumes,
            parameters=(*_WHICH, OFFSET, LIMIT, sort_by(VOLUME_FIELD_NAMES), sort_order(), *_FILTERS),
            answers={200: VolumeList},
            also=(404,),
        ),
        CreateRoute(
            id="create_datavolume",
            summary="Share the data of a claim as a data volume",
            body=VolumeCreation,
            read=_creation_input,
            use_case=data_volumes.create_volume,
            render=_show_with_scopes,
        ),
        HandledRoute(
            suffix="/count",
            id="count_datavolumes",
            summary="Count data volumes",
            run=count_volumes,
            parameters=(*_WHICH, *_FILTERS),
            answers={200: Count},
            also=(404,),
        ),
        HandledRoute(
            suffix="/name-availability",
            id="datavolume_name_availability",
            summary="Check whether a name is available: 204 if it is, 409 if it is taken",
            run=check_name,
            parameters=(
                Parameter(name="dataName", schema={"type": "string", "minLength": 1}),
                Parameter(name="clusterId", schema={"type": "string", "format": "uuid"}),
            ),
            answers={204: None},
            also=(409,),
        ),
        HandledRoute(
            suffix="/{}",
            id="get_datavolume",
            summary="Get a data volume",
            run=get_volume,
            answers={200: VolumeView},
            also=(404,),
        ),
        UpdateRoute(
            method="PATCH",
            id="patch_datavolume",
            summary="Change a data volume",
            body=VolumeUpdate,
            read=lambda body: VolumeInput(description=value_or(body.description, None)),
            use_case=data_volumes.update_volume,
        ),
        DeleteRoute(
            id="delete_datavolume",
            summary="Delete a data volume; its claim is kept",
            use_case=data_volumes.delete_volume,
            answers={202: None},
            also=(404, 412),
        ),
        *_shared_scopes("sharedScopes"),
        # NVIDIA's client spells the path like this.
        *_shared_scopes("shared-scopes", "_with_hyphen"),
    ),
)

VOLUME_OPERATIONS: tuple[Operation, ...] = operations(_VOLUMES)
