"""Secrets, config maps, claims and users' own credentials: additions of ours, where Run:ai leaves them to kubectl.

A secret's values come in and never go out: what is shown is the names of its keys.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from fairlead.api.http.body import query_text, receive_json
from fairlead.api.http.errors import Error
from fairlead.api.http.list_parameters import LIMIT, OFFSET, SEARCH, next_offset, read_list_request
from fairlead.api.http.operation import Call, Handler, Operation, Parameter, RequestBody, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.control.assets import claims, secrets
from fairlead.control.assets.secrets import CONFIG_MAP, SECRET, USER_CREDENTIAL, ObjectInput, ObjectKind
from fairlead.control.lists import normal_id
from fairlead.model.clock import iso
from fairlead.model.records.assets import DEFAULT_STORAGE_CLASS, Claim, ConfigMap, NamedRecord, Secret
from fairlead.model.spec.fields import Given, QuantityText, Spec, Text63, UpTo250, value_or

_KEYS_MOST = 1000
Values = Annotated[dict[str, str], Meta(max_length=_KEYS_MOST)]
AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"]


class ObjectUpdate(Spec, frozen=True, kw_only=True):
    """Other values for the same name; all of them, not only those that change."""

    data: Values
    description: Given[UpTo250] = UNSET


class UserCredentialCreation(ObjectUpdate, frozen=True, kw_only=True):
    """A secret of the caller's own, which only the caller's workloads can use."""

    name: str


class ObjectCreation(UserCredentialCreation, frozen=True, kw_only=True):
    """A secret or a config map for the workloads of one project."""

    project_id: str


class ClaimCreation(Spec, frozen=True, kw_only=True):
    """A claim that outlives the workloads that mount it."""

    name: str
    project_id: str
    size: QuantityText
    storage_class: Given[Text63] = UNSET
    access_modes: Given[Annotated[tuple[AccessMode, ...], Meta(min_length=1, max_length=3)]] = UNSET
    volume_mode: Given[Literal["Filesystem", "Block"]] = UNSET
    description: Given[UpTo250] = UNSET


class ObjectView(Shape):
    """A named object; of a secret, only the names of its keys."""

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
    """A claim and what it is to be."""

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
    members: dict[str, Any] = {"keys": ()}
    if isinstance(record, Secret):
        members = {"type": record.type, "keys": record.keys}
    elif isinstance(record, ConfigMap):
        members = {"keys": tuple(sorted(record.data)), "data": record.data}
    return ObjectView(
        id=record.id,
        name=record.name,
        scope=record.scope_key,
        description=record.description or UNSET,
        created_at=iso(record.created_at),
        created_by=record.created_by,
        updated_at=iso(record.updated_at),
        updated_by=record.updated_by,
        **members,
    )


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
    description="Only what workloads of this project can use.",
)
_FAILURES = {400: Error, 401: Error, 403: Error, 503: Error}
_ONE = {**_FAILURES, 404: Error}


def _object_operations(kind: ObjectKind, creation: type[UserCredentialCreation]) -> tuple[Operation, ...]:
    base = f"/api/v1/{kind.resource}"
    noun = kind.title

    async def create(call: Call) -> Response:
        body = await receive_json(call, creation)
        input = ObjectInput(
            name=body.name,
            project_id=getattr(body, "project_id", ""),
            data=body.data,
            description=value_or(body.description, ""),
        )
        made = await secrets.create(call.context, call.caller, kind, input, call.request_id)
        return as_json(render_object(made), 201)

    async def update(call: Call) -> Response:
        body = await receive_json(call, ObjectUpdate)
        input = ObjectInput(data=body.data, description=value_or(body.description, ""))
        id = normal_id(call.path["id"], noun)
        return as_json(render_object(await secrets.update(call.context, call.caller, kind, id, input, call.request_id)))

    async def list_all(call: Call) -> Response:
        request = read_list_request(call)
        page = await secrets.find(call.context, call.caller, kind, request, query_text(call, "projectId"))
        return as_json(ObjectList(items=[render_object(record) for record in page.items], next=next_offset(page)))

    async def get(call: Call) -> Response:
        id = normal_id(call.path["id"], noun)
        return as_json(render_object(await secrets.load(call.context, call.caller, kind, id)))

    async def delete(call: Call) -> Response:
        id = normal_id(call.path["id"], noun)
        await secrets.delete(call.context, call.caller, kind, id, call.request_id)
        return Response(status_code=204)

    word = noun.replace(" ", "_")
    handlers = (create, update, list_all, get, delete)
    shapes = (ObjectView, ObjectList, creation, ObjectUpdate)
    return _five(base, noun, word, handlers, shapes)


def _five(
    base: str, noun: str, word: str, handlers: tuple[Handler | None, ...], shapes: tuple[Any, Any, Any, Any]
) -> tuple[Operation, ...]:
    """Create, change, list, read and delete, as far as there are handlers."""
    create, update, list_all, get, delete = handlers
    view, many, creation, change = shapes
    lists = (*((_PROJECT,) if "user" not in word else ()), OFFSET, LIMIT, SEARCH)
    one = f"{base}/{{id}}"
    declared: tuple[tuple[Handler | None, str, str, str, dict[str, Any]], ...] = (
        (
            create,
            "POST",
            base,
            f"create_{word}",
            {
                "summary": f"Create a {noun}",
                "body": RequestBody(schema=creation),
                "answers": {201: view, **_FAILURES, 409: Error},
            },
        ),
        (
            list_all,
            "GET",
            base,
            f"list_{word}s",
            {"summary": f"List {noun}s", "parameters": lists, "answers": {200: many, **_ONE}},
        ),
        (
            get,
            "GET",
            one,
            f"get_{word}",
            {"summary": f"One {noun}", "parameters": (_ID,), "answers": {200: view, **_ONE}},
        ),
        (
            update,
            "PUT",
            one,
            f"update_{word}",
            {
                "summary": f"Give a {noun} other values",
                "parameters": (_ID,),
                "body": RequestBody(schema=change),
                "answers": {200: view, **_ONE},
            },
        ),
        (
            delete,
            "DELETE",
            one,
            f"delete_{word}",
            {"summary": f"Delete a {noun}", "parameters": (_ID,), "answers": {204: None, **_ONE, 412: Error}},
        ),
    )
    return tuple(
        Operation(method=method, path=path, id=id, tag=f"{noun.capitalize()}s", run=run, is_addition=True, **members)
        for run, method, path, id, members in declared
        if run is not None
    )


async def create_claim(call: Call) -> Response:
    body = await receive_json(call, ClaimCreation)
    input = claims.ClaimInput(
        name=body.name,
        project_id=body.project_id,
        size=body.size,
        storage_class=value_or(body.storage_class, DEFAULT_STORAGE_CLASS),
        access_modes=value_or(body.access_modes, ("ReadWriteOnce",)),
        volume_mode=value_or(body.volume_mode, "Filesystem"),
        description=value_or(body.description, ""),
    )
    return as_json(render_claim(await claims.create_claim(call.context, call.caller, input, call.request_id)), 201)


async def list_claims(call: Call) -> Response:
    request = read_list_request(call)
    page = await claims.find_claims(call.context, call.caller, request, query_text(call, "projectId"))
    return as_json(ClaimList(items=[render_claim(claim) for claim in page.items], next=next_offset(page)))


async def get_claim(call: Call) -> Response:
    id = normal_id(call.path["id"], "claim")
    return as_json(render_claim(await claims.load_claim(call.context, call.caller, id)))


async def delete_claim(call: Call) -> Response:
    id = normal_id(call.path["id"], "claim")
    await claims.delete_claim(call.context, call.caller, id, call.request_id)
    return Response(status_code=204)


OBJECT_OPERATIONS: tuple[Operation, ...] = (
    *_object_operations(SECRET, ObjectCreation),
    *_object_operations(CONFIG_MAP, ObjectCreation),
    *_object_operations(USER_CREDENTIAL, UserCredentialCreation),
    *_five(
        "/api/v1/persistent-volume-claims",
        "claim",
        "claim",
        (create_claim, None, list_claims, get_claim, delete_claim),
        (ClaimView, ClaimList, ClaimCreation, None),
    ),
)
