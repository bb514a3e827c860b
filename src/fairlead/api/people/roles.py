"""Routes and views of roles, permission sets, and what the caller may do."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta
from starlette.responses import Response

from fairlead.api.http.crud import (
    CreateRoute,
    DeleteRoute,
    HandledRoute,
    ReadRoute,
    RestResource,
    UpdateRoute,
    operations,
)
from fairlead.api.http.operation import Call, Operation, Parameter, as_json
from fairlead.api.http.shapes import Instant, Shape, Uuid
from fairlead.api.people.access_rules import NUMBER, read_operation
from fairlead.control.people import roles
from fairlead.control.people.roles import RoleInput
from fairlead.control.role_table import ACTIONS, PERMISSION_SETS, RESOURCE_TYPES, PermissionSet
from fairlead.model.clock import iso
from fairlead.model.records.access import Role
from fairlead.model.spec.fields import Given, Spec, value_or

Action = Literal["create", "read", "update", "delete", "sync"]
_MAX_PERMISSION_SETS = 200


class PermissionView(Shape):
    resource_type: str
    display_name: str
    group_id: str
    actions: tuple[Action, ...]


class PermissionSetName(Spec, frozen=True, kw_only=True):
    """A permission set by its id; the name is only shown."""

    id: str
    name: Given[str] = UNSET


class RoleView(Shape):
    id: int
    name: str
    description: str
    custom: bool
    effective_enabled: bool
    enabled: bool | None
    permissions: tuple[PermissionView, ...]
    created_at: Instant
    created_by: str
    updated_at: Instant


class RoleWithSets(RoleView):
    permission_sets: tuple[PermissionSetName, ...]


class RoleCreation(Spec, frozen=True, kw_only=True):
    """A custom role: a name, and the permission sets that it is made of."""

    name: str
    description: str
    enabled: Given[bool] = UNSET
    permission_sets: Annotated[tuple[PermissionSetName, ...], Meta(max_length=_MAX_PERMISSION_SETS)] = ()


class RolePermissionView(Shape):
    resource_type: str
    actions: tuple[Action, ...]


class PermissionSetView(Shape):
    id: Uuid
    name: str
    description: str
    permissions: tuple[RolePermissionView, ...]


def render_permissions(allowed: frozenset[str]) -> tuple[PermissionView, ...]:
    """What is allowed, by type of resource; types of which nothing is allowed are left out."""
    views = []
    for type in RESOURCE_TYPES:
        actions = tuple(action for action in ACTIONS.values() if f"{type.name}:{action}" in allowed)
        if actions:
            view = PermissionView(
                resource_type=type.name,
                group_id=type.group,
                display_name=type.title,
                actions=actions,  # type: ignore[arg-type]  # the table has only actions of the contract
            )
            views.append(view)
    return tuple(views)


def _members(call: Call, role: Role) -> dict[str, object]:
    created_at = role.created_at or call.context.directory.cluster.created_at
    return {
        "id": role.id,
        "name": role.name,
        "description": role.description,
        "custom": role.is_custom,
        "effective_enabled": role.enabled,
        "enabled": role.enabled,
        "permissions": render_permissions(role.permissions),
        "created_at": iso(created_at),
        "created_by": role.created_by or "system",
        "updated_at": iso(role.updated_at or created_at),
    }


def render_role(call: Call, role: Role) -> RoleView:
    return RoleView(**_members(call, role))  # type: ignore[arg-type]  # the members have the view's types


def render_role_with_sets(call: Call, role: Role) -> RoleWithSets:
    sets = [PERMISSION_SETS[id] for id in role.permission_sets if id in PERMISSION_SETS]
    set_names = tuple(PermissionSetName(id=one.id, name=one.name) for one in sets)
    return RoleWithSets(**_members(call, role), permission_sets=set_names)  # type: ignore[arg-type]  # as above


def render_permission_set(call: Call, one: PermissionSet) -> PermissionSetView:
    actions = tuple(ACTIONS[letter] for letter in ACTIONS if letter in one.allowed)
    view = RolePermissionView(resource_type=one.type.name, actions=actions)  # type: ignore[arg-type]  # as above
    return PermissionSetView(id=one.id, name=one.name, description=one.description, permissions=(view,))


async def get_roles(call: Call) -> Response:
    return as_json([render_role(call, role) for role in roles.load_roles(call.context, call.caller)])


async def get_role(call: Call) -> Response:
    return as_json(render_role(call, roles.load_role(call.context, call.caller, call.path["roleIdPath"])))


async def get_roles_with_sets(call: Call) -> Response:
    return as_json([render_role_with_sets(call, role) for role in roles.load_roles(call.context, call.caller)])


async def get_permissions(call: Call) -> Response:
    roles.load_roles(call.context, call.caller)
    caller = call.caller
    every = frozenset(f"{type.name}:{action}" for type in RESOURCE_TYPES for action in ACTIONS.values())
    return as_json(render_permissions(every if caller.is_administrator else caller.anywhere))


async def get_permission_sets(call: Call) -> Response:
    sets = roles.load_permission_sets(call.context, call.caller)
    return as_json([render_permission_set(call, one) for one in sets])


def role_input(body: RoleCreation) -> RoleInput:
    return RoleInput(
        name=body.name,
        description=body.description,
        permission_sets=tuple(dict.fromkeys(one.id.lower() for one in body.permission_sets)),
        enabled=value_or(body.enabled, True),
    )


_ROLE_ID = Parameter(name="roleId", place="path", schema=NUMBER)
_CUSTOM_ROLES = RestResource(
    path="/api/v2/authorization/roles",
    id=_ROLE_ID,
    tag="Roles",
    view=RoleWithSets,
    render=render_role_with_sets,
    failures=(400, 401, 403, 500, 503),
    is_addition=True,
    rows=(
        HandledRoute(
            id="get_roles",
            summary="List the roles with their permission sets; the answer is an array",
            run=get_roles_with_sets,
            answers={200: list[RoleWithSets]},
        ),
        CreateRoute(
            id="create_role",
            summary="Create a role from permission sets",
            body=RoleCreation,
            read=role_input,
            use_case=roles.create_role,
        ),
        ReadRoute(id="get_role", summary="Get a role with its permission sets", use_case=roles.load_role),
        UpdateRoute(
            id="update_role",
            summary="Replace a custom role",
            body=RoleCreation,
            read=role_input,
            use_case=roles.update_role,
        ),
        DeleteRoute(
            id="delete_role", summary="Delete a custom role that no access rule grants", use_case=roles.delete_role
        ),
    ),
)
ROLE_OPERATIONS: tuple[Operation, ...] = (
    read_operation("/roles", "get_roles_v1", "List the roles; the answer is an array", get_roles, (), list[RoleView]),
    read_operation(
        "/roles/{roleIdPath}",
        "get_role_v1",
        "Get a role",
        get_role,
        (Parameter(name="roleIdPath", place="path", schema=NUMBER),),
        RoleView,
    ),
    read_operation(
        "/permissions",
        "get_permissions",
        "List what the caller may do in at least one scope; the answer is an array",
        get_permissions,
        (),
        list[PermissionView],
    ),
    *operations(_CUSTOM_ROLES),
    *operations(
        RestResource(
            path="/api/v1/authorization/permission-sets",
            id=Parameter(name="permissionSetId", place="path", schema={"type": "string"}),
            tag="Roles",
            view=PermissionSetView,
            render=render_permission_set,
            failures=(401, 403, 500, 503),
            is_addition=True,
            rows=(
                HandledRoute(
                    id="get_permission_sets",
                    summary="List the permission sets from which roles are made; the answer is an array",
                    run=get_permission_sets,
                    answers={200: list[PermissionSetView]},
                ),
                ReadRoute(id="get_permission_set", summary="Get a permission set", use_case=roles.load_permission_set),
            ),
        )
    ),
)
