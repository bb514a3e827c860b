"""Derives the permissions of one account from the access rules: the caller that use cases get.

Called by `authentication.py` for a new token, and again when accounts, rules or projects have changed.
"""

from collections.abc import Iterable, Mapping

from fairlead.model.records.access import ADMINISTRATOR_ROLE, AccessRule
from fairlead.model.records.assets import Scope
from fairlead.model.records.organization import Caller, Project, User

_WIDE = frozenset({"system", "tenant", "cluster"})
_MACHINES = frozenset({"app", "service-account"})


def build_caller(user: User, rules: Iterable[AccessRule], projects: Mapping[str, Project]) -> Caller:
    """The account as a caller: whether it is administrator, and in which projects and departments it has a role."""
    scopes: list[Scope] = []
    is_administrator = False
    for rule in rules:
        if is_subject(rule, user):
            scopes.append(rule.scope)
            is_administrator |= rule.role_id == ADMINISTRATOR_ROLE.id and rule.scope.type in _WIDE
    is_everywhere = any(scope.type in _WIDE for scope in scopes)
    departments = frozenset(scope.id for scope in scopes if scope.type == "department")
    if is_everywhere:
        departments |= {project.department_id for project in projects.values()}
    named = {scope.id for scope in scopes if scope.type == "project"}
    covered = {
        id for id, project in projects.items() if is_everywhere or id in named or project.department_id in departments
    }
    return Caller(
        name=user.name,
        id=user.id,
        type=user.type,
        groups=user.groups,
        is_administrator=is_administrator,
        projects=frozenset(covered),
        departments=departments,
    )


def is_subject(rule: AccessRule, user: User) -> bool:
    """Whether the rule applies to this account: by its id, its name, or one of its groups."""
    if rule.subject_type == "group":
        return rule.subject_id in user.groups
    is_machine = user.type in _MACHINES
    return (rule.subject_type in _MACHINES) is is_machine and rule.subject_id in (user.id, user.name)
