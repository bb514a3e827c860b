"""Roles: read all, and create, change and delete custom ones. Called by the API. The cluster's record holds them."""

import msgspec

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.people.escalation import check_role_content
from fairlead.control.records import AuditedRequest, change_cluster, load_cluster, retry_on_conflict
from fairlead.control.role_table import ACTIONS, FIRST_CUSTOM, PERMISSION_SETS, PermissionSet, resolve_role
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound, refuse_malformed
from fairlead.model.records.access import CustomRole, Role
from fairlead.model.records.organization import Cluster
from fairlead.model.records.people import Caller

_LONGEST = 255
_MAX_CUSTOM_ROLES = 200


class RoleInput(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    permission_sets: tuple[str, ...]
    enabled: bool = True


def load_roles(context: Context, caller: Caller) -> tuple[Role, ...]:
    access.check(caller, "roles:read")
    return tuple(context.directory.roles.values())


def load_role(context: Context, caller: Caller, id: str) -> Role:
    for role in load_roles(context, caller):
        if str(role.id) == id:
            return role
    raise NotFound(f"There is no role with the id {id[:20]!r}; GET /api/v1/authorization/roles lists all roles")


def load_permission_sets(context: Context, caller: Caller) -> tuple[PermissionSet, ...]:
    access.check(caller, "roles:read")
    return tuple(PERMISSION_SETS.values())


def load_permission_set(context: Context, caller: Caller, id: str) -> PermissionSet:
    access.check(caller, "roles:read")
    if id.lower() not in PERMISSION_SETS:
        raise NotFound(f"There is no permission set with the id {id[:60]!r}")
    return PERMISSION_SETS[id.lower()]


async def create_role(context: Context, caller: Caller, input: RoleInput, request_id: str = "") -> Role:
    access.check(caller, "roles:create")

    async def attempt() -> Role:
        cluster = await load_cluster(context)
        _check(context, input, None)
        check_role_content(caller, _permissions(input))
        number = max(cluster.numbers.get("roles", 0) + 1, FIRST_CUSTOM)
        now = context.clock()
        role = CustomRole(
            id=number,
            name=input.name,
            description=input.description,
            permission_sets=input.permission_sets,
            enabled=input.enabled,
            created_at=now,
            created_by=caller.name,
            updated_at=now,
        )
        request = AuditedRequest(caller, "create", request_id)
        message = f"Role {role.name} was created by {caller.name}"
        numbers = {**cluster.numbers, "roles": number}
        await change_cluster(context, request, cluster, message, numbers=numbers, roles=(*cluster.roles, role))
        return resolve_role(role)

    return await retry_on_conflict(attempt)


async def update_role(context: Context, caller: Caller, id: str, input: RoleInput, request_id: str = "") -> Role:
    access.check(caller, "roles:update")

    async def attempt() -> Role:
        cluster = await load_cluster(context)
        before = _find(context, caller, cluster, id)
        _check(context, input, before.id)
        # What the role had may be another one's only way to do their work.
        check_role_content(caller, resolve_role(before).permissions | _permissions(input))
        after: CustomRole = msgspec.structs.replace(before, updated_at=context.clock(), **msgspec.structs.asdict(input))
        roles = tuple(after if role.id == before.id else role for role in cluster.roles)
        message = f"Role {before.name} was changed by {caller.name}"
        await change_cluster(context, AuditedRequest(caller, "update", request_id), cluster, message, roles=roles)
        return resolve_role(after)

    return await retry_on_conflict(attempt)


async def delete_role(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    """Delete a custom role that no access rule grants."""
    access.check(caller, "roles:delete")

    async def attempt() -> None:
        cluster = await load_cluster(context)
        role = _find(context, caller, cluster, id)
        rules = [rule for rule in context.directory.access_rules.values() if rule.role_id == role.id]
        if rules:
            raise Invalid(f"The role {role.name} is granted by {len(rules)} access rules; delete them first")
        message = f"Role {role.name} was deleted by {caller.name}"
        remaining = tuple(other for other in cluster.roles if other.id != role.id)
        await change_cluster(context, AuditedRequest(caller, "delete", request_id), cluster, message, roles=remaining)

    await retry_on_conflict(attempt)


def _permissions(input: RoleInput) -> frozenset[str]:
    """What the role would allow; a disabled one could be enabled later by somebody who has less."""
    sets = (PERMISSION_SETS[id] for id in input.permission_sets)
    return frozenset(f"{one.type.name}:{ACTIONS[letter]}" for one in sets for letter in one.allowed)


def _find(context: Context, caller: Caller, cluster: Cluster, id: str) -> CustomRole:
    for role in cluster.roles:
        if str(role.id) == id:
            return role
    predefined = load_role(context, caller, id)
    raise Invalid(f"{predefined.name} is a predefined role, which cannot be changed; create a role of your own")


def _check(context: Context, input: RoleInput, id: int | None) -> None:
    """Raise Invalid with every issue of a role; `id` is that of the role before a change."""
    issues = []
    if not input.name.strip() or len(input.name) > _LONGEST:
        issues.append(ComplianceIssue("name", f"must have 1 to {_LONGEST} characters"))
    if any(role.name.lower() == input.name.lower() and role.id != id for role in context.directory.roles.values()):
        issues.append(ComplianceIssue("name", f"a role named {input.name[:80]} already exists"))
    if id is None and len(context.directory.cluster.roles) >= _MAX_CUSTOM_ROLES:
        issues.append(
            ComplianceIssue("name", f"there are {_MAX_CUSTOM_ROLES} custom roles, the maximum; delete one first")
        )
    for number, one in enumerate(input.permission_sets):
        if one not in PERMISSION_SETS:
            details = f"there is no permission set {one[:60]!r}; GET /api/v1/authorization/permission-sets lists all"
            issues.append(ComplianceIssue(f"permissionSets[{number}].id", details))
    refuse_malformed(issues)
