"""Secrets, config maps, claims and user credentials: additions of Fairlead; with Run:ai they are made by kubectl.

Secret values are never returned; the views show only the names of the keys.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_text
from fairlead.api.http.crud import (
    CreateRoute,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    operations,
)
from fairlead.api.http.list_parameters import LIMIT, OFFSET, SEARCH, next_offset, read_list_request
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.control.assets import claims, secrets
from fairlead.control.assets.claims import ClaimInput
from fairlead.control.assets.secrets import CONFIG_MAP, SECRET, USER_CREDENTIAL, ObjectInput, ObjectKind
from fairlead.model.clock import iso
from fairlead.model.records.assets import DEFAULT_STORAGE_CLASS, Claim, ConfigMap, NamedRecord, Secret
from fairlead.model.spec.fields import Given, QuantityText, Spec, Text63, UpTo250, value_or

_MAX_KEYS = 1000
Values = Annotated[dict[str, str], Meta(max_length=_MAX_KEYS)]
AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]


class ObjectUpdate(Spec, frozen=True, kw_only=True):
    """The new values: all of them, not only those that change."""

    data: Values
    description: Given[UpTo250] = UNSET


class UserCredentialCreation(ObjectUpdate, frozen=True, kw_only=True):
    """A secret that only the caller's own workloads can use."""

    name: str


class ObjectCreation(UserCredentialCreation, frozen=True, kw_only=True):
    """A secret or a config map for the workloads of one project."""

    project_id: str


class ClaimCreation(Spec, frozen=True, kw_only=True):
    """A claim that is kept when the workloads that mount it are deleted."""

    name: str
    project_id: str
    size: QuantityText
    storage_class: Given[Text63] = UNSET
    access_modes: Given[Annotated[tuple[AccessMode, ...], Meta(min_length=1, max_length=3)]] = UNSET
    volume_mode: Given[Literal["Filesystem", "Block"]] = UNSET
    description: Given[UpTo250] = UNSET


class ObjectView(Shape):
    """A secret, config map or user credential; secrets show only the names of their keys."""

    id: Uuid
    name: str
    #: `project/1`, `department/1`, `cluster/…`, `tenant`: who can use it.
    scope: str
    keys: tuple[str, ...]
    created_at: Instant
    created_by: str
    updated_at: Instant
    updated_by: str
    description: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    data: dict[str, str] | UnsetType = UNSET


class ObjectList(Shape):
    items: list[ObjectView]
    next: int | UnsetType = UNSET


class ClaimView(Shape):
    """A claim as it was requested."""

    id: Uuid
    name: str
    project_id: str
    size: str
    storage_class: str
    access_modes: tuple[str, ...]
    volume_mode: str
    created_at: Instant
    created_by: str
    description: str | UnsetType = UNSET


class ClaimList(Shape):
    items: list[ClaimView]
    next: int | UnsetType = UNSET


def render_object(record: NamedRecord) -> ObjectView:
    view = ObjectView(
        id=record.id,
        name=record.name,
        scope=record.scope_key,
        description=record.description or UNSET,
        created_at=iso(record.created_at),
        created_by=record.created_by,
        updated_at=iso(record.updated_at),
        updated_by=record.updated_by,
        keys=(),
    )
    if isinstance(record, Secret):
        view.type, view.keys = record.type, record.keys
    elif isinstance(record, ConfigMap):
        view.keys, view.data = tuple(sorted(record.data)), record.data
    return view


def render_claim(claim: Claim) -> ClaimView:
    return ClaimView(
        id=claim.id,
        name=claim.name,
        project_id=claim.project_id,
        size=claim.size,
        storage_class=claim.storage_class,
        access_modes=claim.access_modes,
        volume_mode=claim.volume_mode,
        description=claim.description or UNSET,
        created_at=iso(claim.created_at),
        created_by=claim.created_by,
    )


_ID = Parameter(name="id", place="path", schema={"type": "string", "format": "uuid"})
_PROJECT = Parameter(
    name="projectId",
    schema={"type": "string"},
    description="Only items that workloads of this project can use.",
)
_LIST = (OFFSET, LIMIT, SEARCH)
_FAILURES = (400, 401, 403, 503)


def _object_input(body: ObjectUpdate) -> ObjectInput:
    return ObjectInput(
        name=body.name if isinstance(body, UserCredentialCreation) else "",
        project_id=body.project_id if isinstance(body, ObjectCreation) else "",
        data=body.data,
        description=value_or(body.description, ""),
    )


def _objects(kind: ObjectKind, creation: type[UserCredentialCreation]) -> tuple[Operation, ...]:
    async def list_objects(call: Call) -> Response:
        request = read_list_request(call)
        page = await secrets.find(call.context, call.caller, kind, request, query_text(call, "projectId"))
        return as_json(ObjectList(items=[render_object(record) for record in page.items], next=next_offset(page)))

    word = kind.title.replace(" ", "_")
    resource = RestResource(
        path=f"/api/v1/{kind.resource}",
        id=_ID,
        tag=f"{kind.title.capitalize()}s",
        view=ObjectView,
        render=lambda call, record: render_object(record),
        failures=_FAILURES,
        uuid_of=kind.title,
        is_addition=True,
        rows=(
            CreateRoute(
                id=f"create_{word}",
                summary=f"Create a {kind.title}",
                body=creation,
                read=_object_input,
                use_case=lambda context, caller, given, request_id: secrets.create(
                    context, caller, kind, given, request_id
                ),
                also=(409,),
            ),
            HandledRoute(
                id=f"list_{word}s",
                summary=f"List {kind.title}s",
                run=list_objects,
                parameters=_LIST if kind.is_own else (_PROJECT, *_LIST),
                answers={200: ObjectList},
                also=(404,),
            ),
            ReadRoute(
                id=f"get_{word}",
                summary=f"Get a {kind.title}",
                use_case=lambda context, caller, id: secrets.load(context, caller, kind, id),
            ),
            UpdateRoute(
                id=f"update_{word}",
                summary=f"Replace the values of a {kind.title}",
                body=ObjectUpdate,
                read=_object_input,
                use_case=lambda context, caller, id, given, request_id: secrets.update(
                    context, caller, kind, id, given, request_id
                ),
            ),
            DeleteRoute(
                id=f"delete_{word}",
                summary=f"Delete a {kind.title}",
                use_case=lambda context, caller, id, request_id: secrets.delete(context, caller, kind, id, request_id),
                also=(404, 412),
            ),
        ),
    )
    return operations(resource)


def _claim_input(body: ClaimCreation) -> ClaimInput:
    return ClaimInput(
        name=body.name,
        project_id=body.project_id,
        size=body.size,
        storage_class=value_or(body.storage_class, DEFAULT_STORAGE_CLASS),
        access_modes=value_or(body.access_modes, ("ReadWriteOnce",)),
        volume_mode=value_or(body.volume_mode, "Filesystem"),
        description=value_or(body.description, ""),
    )


async def list_claims(call: Call) -> Response:
    request = read_list_request(call)
    page = await claims.find_claims(call.context, call.caller, request, query_text(call, "projectId"))
    return as_json(ClaimList(items=[render_claim(claim) for claim in page.items], next=next_offset(page)))


_CLAIMS = RestResource(
    path="/api/v1/persistent-volume-claims",
    id=_ID,
    tag="Claims",
    view=ClaimView,
    render=lambda call, claim: render_claim(claim),
    failures=_FAILURES,
    uuid_of="claim",
    is_addition=True,
    rows=(
        CreateRoute(
            id="create_claim",
            summary="Create a claim",
            body=ClaimCreation,
            read=_claim_input,
            use_case=claims.create_claim,
            also=(409,),
        ),
        HandledRoute(
            id="list_claims",
            summary="List claims",
            run=list_claims,
            parameters=(_PROJECT, *_LIST),
            answers={200: ClaimList},
            also=(404,),
        ),
        ReadRoute(id="get_claim", summary="Get a claim", use_case=claims.load_claim),
        DeleteRoute(id="delete_claim", summary="Delete a claim", use_case=claims.delete_claim, also=(404, 412)),
    ),
)

OBJECT_OPERATIONS: tuple[Operation, ...] = (
    *_objects(SECRET, ObjectCreation),
    *_objects(CONFIG_MAP, ObjectCreation),
    *_objects(USER_CREDENTIAL, UserCredentialCreation),
    *operations(_CLAIMS),
)
