"""Derives the permissions of one account from the access rules: the caller that use cases get.

Called by `current_rights.py` with the records that there are now.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from fairlead.control.role_table import ADMINISTRATOR_ROLE, EVERYBODY
from fairlead.model.records.access import AccessRule, Role
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY, Scope
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.people import Caller, User

_WIDE = frozenset({"system", "tenant", "cluster"})
_MACHINES = frozenset({"app", "service-account"})
_NONE: frozenset[str] = frozenset()


def build_caller(
    user: User,
    rules: Sequence[AccessRule],
    roles: Mapping[int, Role],
    projects: Mapping[str, Project],
    departments: Mapping[str, Department] | None = None,
) -> Caller:
    """The account as a caller, with what its rules allow in every scope.

    `departments` are given if there are several clusters: then a rule for a cluster holds in its departments only.
    """
    own: dict[str, frozenset[str]] = {}
    if departments is not None:
        rules = [each for rule in rules for each in _in_departments(rule, departments)]
    for rule in rules:
        role = roles.get(rule.role_id)
        if role is not None and role.permissions:
            key = rights_key(rule.scope)
            own[key] = _joined(own.get(key, _NONE), role.permissions)
    anywhere = EVERYBODY
    for permissions in own.values():
        anywhere = _joined(anywhere, permissions)
    return Caller(
        name=user.name,
        id=user.id,
        type=user.type,
        groups=user.groups,
        is_administrator=any(map(makes_administrator, rules)),
        rights=_inherit(own, projects),
        anywhere=anywhere,
    )


def _in_departments(rule: AccessRule, departments: Mapping[str, Department]) -> list[AccessRule]:
    """A rule for a cluster as rules for its departments; any other rule as it is."""
    if rule.scope.type != "cluster":
        return [rule]
    inside = [id for id, department in departments.items() if department.cluster_id == rule.scope.id]
    return [msgspec.structs.replace(rule, scope=Scope("department", id)) for id in inside]


def rights_key(scope: Scope) -> str:
    """The scope's key in a caller's rights."""
    return INSTALLATION_SCOPE_KEY if scope.type in _WIDE else scope.scope_key


def _inherit(own: dict[str, frozenset[str]], projects: Mapping[str, Project]) -> dict[str, frozenset[str]]:
    """What each scope's own rules allow, with what those of the scopes above it allow."""
    wide = own.get(INSTALLATION_SCOPE_KEY, _NONE)
    rights = {key: _joined(wide, allowed) for key, allowed in own.items()}
    for project in projects.values():
        department = rights.get(f"department/{project.department_id}", wide)
        allowed = _joined(department, own.get(f"project/{project.id}", _NONE))
        if allowed:
            rights[f"project/{project.id}"] = allowed
    return rights


@lru_cache(maxsize=1024)
def _joined(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The union. There are few combinations of roles, so equal ones are the same object."""
    return one | other if one and other else one or other


def makes_administrator(rule: AccessRule) -> bool:
    """Whether the rule makes its subject administrator of the whole installation."""
    return rule.role_id == ADMINISTRATOR_ROLE.id and rule.scope.type in _WIDE


def is_subject(rule: AccessRule, user: User) -> bool:
    """Whether the rule applies to this account: by its id, its name, or one of its groups."""
    if rule.subject_type == "group":
        return rule.subject_id in user.groups
    is_machine = user.type in _MACHINES
    return (rule.subject_type in _MACHINES) is is_machine and rule.subject_id in (user.id, user.name)


def has_administrator(users: Iterable[User], rules: Iterable[AccessRule]) -> bool:
    """Whether an enabled account would be administrator."""
    making = [rule for rule in rules if makes_administrator(rule)]
    return any(user.enabled and any(is_subject(rule, user) for rule in making) for user in users)
