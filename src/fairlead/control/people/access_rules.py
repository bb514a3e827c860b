"""Access rules: who has which role where. Called by the API. `callers.py` derives permissions from them."""

from collections.abc import Mapping
from typing import Any

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.control.filters import FilterField
from fairlead.control.lists import ListRequest, Page, page_of
from fairlead.control.people.accounts import refuse_without_administrator
from fairlead.control.people.callers import is_subject, rights_key
from fairlead.control.people.escalation import find_lacking
from fairlead.control.records import AuditedRequest, RecordChange, allocate_id, record_steps, retry_on_conflict
from fairlead.control.references import scopes
from fairlead.control.role_table import ADMINISTRATOR_ROLE, GIVEN_BY_HOLDERS
from fairlead.model.errors import ComplianceIssue, Conflict, Forbidden, Invalid, NotFound, refuse_malformed
from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.records.organization import Cluster, Department, Project
from fairlead.model.records.people import Caller
from fairlead.store.collections import ACCESS_RULES

SUBJECT_TYPES = ("user", "app", "service-account", "group")
_INSTALLATION_WIDE = ("tenant", "cluster")


def rule_fields(context: Context) -> dict[str, FilterField[AccessRule]]:
    return {
        "subjectId": FilterField(read=lambda rule: rule.subject_id),
        "subjectType": FilterField(read=lambda rule: rule.subject_type),
        "roleId": FilterField("number", read=lambda rule: rule.role_id),
        "scopeId": FilterField(read=lambda rule: rule.scope.id),
        "scopeType": FilterField(read=lambda rule: rule.scope.type),
        "roleName": FilterField(read=lambda rule: role_name(context, rule.role_id)),
        "scopeName": FilterField(read=lambda rule: scope_name(context, rule.scope)),
        "createdAt": FilterField("time", read=lambda rule: rule.created_at),
        "deletedAt": FilterField("time"),
        "createdBy": FilterField(read=lambda rule: rule.created_by),
        "phase": FilterField(constant="Ready"),
    }


RULE_FIELD_NAMES = (
    "subjectId",
    "subjectType",
    "roleId",
    "scopeId",
    "scopeType",
    "roleName",
    "scopeName",
    "createdAt",
    "deletedAt",
    "createdBy",
    "phase",
)


def role_name(context: Context, role_id: int) -> str:
    role = context.directory.roles.get(role_id)
    return role.name if role else ""


def scope_name(context: Context, scope: Scope) -> str:
    directory = context.directory
    records: dict[str, Mapping[str, Project | Department | Cluster]] = {
        "project": directory.projects,
        "department": directory.departments,
        "cluster": directory.clusters,
    }
    record = records.get(scope.type, {}).get(scope.id)
    return scope.type if record is None else str(record.name)


def find_rules(context: Context, caller: Caller, request: ListRequest) -> Page[AccessRule]:
    """The rules of the scopes in which the caller may read them."""
    access.check(caller, "access-rules:read")
    every = context.directory.access_rules.values()
    rules = [rule for rule in every if access.is_allowed(caller, "access-rules:read", rights_key(rule.scope))]
    return page_of(rules, request, rule_fields(context), lambda rule: _words_of(context, rule))


def _words_of(context: Context, rule: AccessRule) -> str:
    return f"{rule.subject_id} {role_name(context, rule.role_id)}"


def load_own_rules(context: Context, caller: Caller, request: ListRequest) -> Page[AccessRule]:
    """The rules of the caller. Everybody may see their own."""
    return page_of(_own(context, caller), request, {}, lambda rule: _words_of(context, rule))


def _own(context: Context, caller: Caller) -> list[AccessRule]:
    user = context.directory.users.get(caller.id)
    return [] if user is None else context.directory.rules_of(user)


def load_own_scopes(context: Context, caller: Caller, permission: str) -> list[Scope]:
    """The scopes in which a role of the caller has that permission."""
    roles = context.directory.roles
    rules = [rule for rule in _own(context, caller) if rule.role_id in roles]
    return [rule.scope for rule in rules if permission in roles[rule.role_id].permissions]


def load_rule(context: Context, caller: Caller, id: str, verb: str = "read") -> AccessRule:
    access.check_anywhere(caller, f"access-rules:{verb}")
    rule = context.directory.access_rules.get(id)
    if rule is None or not access.is_allowed(caller, "access-rules:read", rights_key(rule.scope)):
        raise NotFound(f"There is no access rule with the id {id[:20]!r}")
    access.check_at(caller, f"access-rules:{verb}", rights_key(rule.scope))
    return rule


class RuleInput(AccessRule, frozen=True, kw_only=True):
    """A rule without its id."""

    id: str = ""
    version: int = 1


async def create_rule(context: Context, caller: Caller, input: RuleInput, request_id: str = "") -> AccessRule:
    access.check_anywhere(caller, "access-rules:create")
    scope = _resolve_scope(context, input)
    _check_grant(context, caller, input.role_id, scope)
    members: dict[str, Any] = {
        "subject_id": input.subject_id,
        "subject_type": input.subject_type,
        "role_id": input.role_id,
        "scope": scope,
    }

    async def attempt() -> AccessRule:
        for other in context.directory.access_rules.values():
            if all(getattr(other, name) == value for name, value in members.items()):
                raise Conflict("The same access rule already exists", ("subject_id",))
        id, numbers = await allocate_id(context, ACCESS_RULES, context.directory.access_rules)
        rule = AccessRule(id=id, version=1, created_at=context.clock(), created_by=caller.name, **members)
        where = f"{scope.type} {scope_name(context, scope)}"
        message = f"{caller.name} made {input.subject_id} {role_name(context, input.role_id)} of {where}"
        step = RecordChange(ACCESS_RULES, id, rule, "Created", message)
        await record_steps(context, AuditedRequest(caller, "create", request_id), [step], numbers)
        return rule

    return await retry_on_conflict(attempt)


def _check_grant(context: Context, caller: Caller, role_id: int, scope: Scope) -> None:
    """Raise Forbidden unless the caller may give this role there.

    Nobody can give the right to change organization, nodes or rights if they do not have it there themselves.
    """
    key = rights_key(scope)
    access.check_at(caller, "access-rules:create", key)
    _check_holding(context, caller, role_id, key, "give")


def _check_holding(context: Context, caller: Caller, role_id: int, key: str, verb: str) -> None:
    role = context.directory.roles.get(role_id)
    lacking = find_lacking(caller, role.permissions & GIVEN_BY_HOLDERS, key) if role is not None else ""
    if role is not None and lacking:
        raise Forbidden(f"{caller.name} cannot {verb} the role {role.name}: it allows {lacking}, which they lack there")


def _resolve_scope(context: Context, input: RuleInput) -> Scope:
    """The scope of the rule; raises Invalid with every issue of the rule."""
    issues = []
    roles = context.directory.roles
    if input.role_id not in roles:
        known = ", ".join(f"{role.id} ({role.name})" for role in roles.values())
        issues.append(ComplianceIssue("roleId", f"there is no role {input.role_id}; known are {known}"))
    if input.role_id == ADMINISTRATOR_ROLE.id and input.scope.type not in _INSTALLATION_WIDE:
        details = f"{ADMINISTRATOR_ROLE.name} is a role for the whole installation; give tenant or cluster"
        issues.append(ComplianceIssue("scopeType", details))
    if not input.subject_id or len(input.subject_id) > 255:
        issues.append(ComplianceIssue("subjectId", "must have 1 to 255 characters"))
    elif input.subject_type != "group" and not any(
        is_subject(input, user) for user in context.directory.users.values()
    ):
        issues.append(ComplianceIssue("subjectId", f"there is no {input.subject_type} '{input.subject_id[:80]}'"))
    try:
        scope = scopes.resolve_scope(context, input.scope, "scope")
    except Invalid as error:
        issues += [
            ComplianceIssue("scopeId" if "Id" in issue.field else "scopeType", issue.details) for issue in error.issues
        ]
    refuse_malformed(issues)
    return scope


def check_deletion(context: Context, caller: Caller, id: str) -> AccessRule:
    """The rule, if it can be deleted now; raises what deleting it would raise."""
    rule = load_rule(context, caller, id, "delete")
    _check_holding(context, caller, rule.role_id, rights_key(rule.scope), "remove")
    remaining = [other for other in context.directory.access_rules.values() if other.id != id]
    refuse_without_administrator(context, context.directory.users.values(), remaining)
    return rule


async def delete_rule(context: Context, caller: Caller, id: str, request_id: str = "") -> None:
    rule = check_deletion(context, caller, id)
    message = f"{caller.name} removed {role_name(context, rule.role_id)} from {rule.subject_id}"
    step = RecordChange(ACCESS_RULES, id, None, "Deleted", message)
    await record_steps(context, AuditedRequest(caller, "delete", request_id), [step], None)
