"""Scopes of named objects, and who can use them: from a project outwards to the whole installation.

Reads only the directory in memory. Called by the use cases of secrets, assets and templates, and by the resolver.
"""

from collections.abc import Iterable
from typing import TypeVar

from fairlead.control import access
from fairlead.control.context import Context
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound
from fairlead.model.records.assets import (
    INSTALLATION_SCOPE_KEY,
    SCOPES,
    NamedRecord,
    Scope,
    project_scope_key,
    user_scope_key,
)
from fairlead.model.records.organization import Department, Project
from fairlead.model.records.people import Caller

K = TypeVar("K", bound=NamedRecord)


def scope_keys_of_project(context: Context, project_id: str) -> tuple[str, ...]:
    """The scope keys in which a workload of that project looks up a name, nearest first."""
    project = context.directory.projects.get(project_id)
    department = (f"department/{project.department_id}",) if project else ()
    return (
        project_scope_key(project_id),
        *department,
        f"cluster/{project.cluster_id if project else context.directory.cluster_id}",
        INSTALLATION_SCOPE_KEY,
    )


def cluster_of_scope(context: Context, scope: Scope) -> str:
    """The id of the cluster that a scope is in; the first one for the whole installation."""
    return context.directory.cluster_of_scope(scope)


def scope_keys_around(context: Context, scope: Scope) -> tuple[str, ...]:
    """The scope keys of everything that can be used in a scope: its own and those of wider scopes."""
    if scope.type == "project":
        return scope_keys_of_project(context, scope.id)
    if scope.type == "tenant" and len(context.directory.clusters) > 1:
        return (INSTALLATION_SCOPE_KEY,)
    cluster = f"cluster/{cluster_of_scope(context, scope)}"
    return (
        (f"department/{scope.id}", cluster, INSTALLATION_SCOPE_KEY)
        if scope.type == "department"
        else (cluster, INSTALLATION_SCOPE_KEY)
    )


def nearest(scope_keys: tuple[str, ...], records: Iterable[K]) -> dict[str, K]:
    """By name; of records with the same name the one whose scope key comes first."""
    order = {scope_key: number for number, scope_key in enumerate(scope_keys)}
    ranked = sorted(records, key=lambda record: order.get(record.scope_key, len(order)), reverse=True)
    return {record.name: record for record in ranked}


def visible_scope_keys(context: Context, caller: Caller, operation: str) -> tuple[str, ...] | None:
    """The scope keys whose records a caller may read by this operation; None for all but those of other users.

    Whoever may read in a project may read what its workloads can use: records of its department and wider ones too.
    """
    projects = access.visible_projects(caller, operation)
    if projects is None:
        return None
    around = {project.department_id for id, project in context.directory.projects.items() if id in projects}
    departments = around | (access.visible_departments(caller, operation) or frozenset())
    owners = [context.directory.departments.get(id) for id in departments]
    clusters = sorted({owner.cluster_id for owner in owners if owner is not None})
    wide = (INSTALLATION_SCOPE_KEY, *(f"cluster/{id}" for id in clusters)) if projects or departments else ()
    return (
        *wide,
        *(f"department/{id}" for id in sorted(departments)),
        *(project_scope_key(id) for id in sorted(projects)),
        user_scope_key(caller.name),
    )


def visible_clusters(context: Context, caller: Caller, operation: str) -> frozenset[str] | None:
    """The clusters in some project or department of which a caller may do this; None for all.

    What belongs to a cluster, such as nodes and node pools, is seen by all who may read it anywhere in that cluster.
    """
    directory = context.all_clusters.directory
    projects = access.visible_projects(caller, operation)
    if len(directory.clusters) <= 1 or projects is None:
        return None
    departments = access.visible_departments(caller, operation) or frozenset()
    owners: list[Department] = [one for id, one in directory.projects.items() if id in projects]
    owners += [one for id, one in directory.departments.items() if id in departments]
    return frozenset(one.cluster_id or directory.cluster.id for one in owners)


def resolve_scope(context: Context, scope: Scope, path: str) -> Scope:
    """The scope with its id filled in; raises Invalid if it does not exist."""
    directory = context.directory
    known: dict[str, Iterable[str]] = {
        "cluster": directory.clusters,
        "department": [id for id, one in directory.departments.items() if one.deleted_at is None],
        "project": [id for id, one in directory.projects.items() if one.deleted_at is None],
    }
    if scope.type not in SCOPES[1:]:
        raise Invalid(issues=(ComplianceIssue(f"{path}.scope", f"is {scope.type}; known are {', '.join(SCOPES[1:])}"),))
    if scope.type == "tenant":
        return Scope("tenant", str(directory.cluster.tenant_id))
    if scope.type == "cluster" and not scope.id and len(directory.clusters) > 1:
        raise Invalid(issues=(ComplianceIssue(f"{path}.clusterId", "is missing; there are several clusters"),))
    if scope.type == "cluster" and not scope.id:
        return Scope("cluster", directory.cluster.id)
    if scope.id.lower() not in known[scope.type]:
        shown = scope.id[:60] or "nothing"
        raise Invalid(
            issues=(ComplianceIssue(f"{path}.{scope.type}Id", f"is {shown}, but there is no such {scope.type}"),)
        )
    return Scope(scope.type, scope.id.lower())


def check_write(context: Context, caller: Caller, operation: str, scope: Scope) -> None:
    """Raise unless the caller may create, change or delete objects of that scope."""
    access.check_at(caller, operation, scope.scope_key)


def check_visible(context: Context, caller: Caller, operation: str, scope_key: str, what: str) -> None:
    """Raise NotFound for a record in a scope that the caller may not see by this operation."""
    scope_keys = visible_scope_keys(context, caller, operation)
    is_others_own = scope_key.startswith("user/") and scope_key != user_scope_key(caller.name)
    if is_others_own or (scope_keys is not None and scope_key not in scope_keys):
        raise NotFound(f"There is no {what}")


def load_project(context: Context, caller: Caller, operation: str, project_id: str) -> Project:
    """The project that a request names, if the caller may do this there; raises Invalid or Forbidden."""
    access.check(caller, operation, project_id)
    project = context.directory.projects.get(project_id)
    if project is None or project.deleted_at is not None:
        known = ", ".join(f"{one.id} ({one.name})" for one in visible_projects(context, caller)[:10]) or "none"
        raise Invalid(
            issues=(ComplianceIssue("projectId", f"there is no project {project_id[:60]!r}; known are {known}"),)
        )
    return project


def visible_projects(context: Context, caller: Caller) -> list[Project]:
    scope = access.visible_projects(caller, "projects:read")
    return [one for id, one in context.directory.projects.items() if scope is None or id in scope]
