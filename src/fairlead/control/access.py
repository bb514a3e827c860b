"""Access control: who may do what where. Every use case calls a `check` before it reads or changes anything.

A caller carries the permissions that its access rules give, per scope; they add up. Records in projects where a caller
has no role do not exist for them (`NotFound`); an operation that no role allows there, or a creation elsewhere, is
`Forbidden`. An operation is a resource and a verb, such as `projects:update`.
"""

from functools import cache, lru_cache

from fairlead.control.role_table import EVERYBODY, TYPE_OF_KIND
from fairlead.kinds import KINDS
from fairlead.model.errors import Forbidden, NotFound, Unauthenticated
from fairlead.model.records.assets import INSTALLATION_SCOPE_KEY as INSTALLATION
from fairlead.model.records.people import Caller
from fairlead.model.records.workload import Workload

#: Resources of operations that are called differently in roles, or that follow another resource.
_TYPES = {
    **TYPE_OF_KIND,
    "departments": "department",
    "projects": "project",
    "clusters": "cluster",
    "node-pools": "nodepools",
    "service-accounts": "service-account",
    "access-rules": "access_rules",
    "data-volumes": "datavolumes",
    "secrets": "credentials",
    "config-maps": "cm-volume-assets",
    "claims": "pvc-assets",
    "storage-classes": "storage-class-configuration",
    "audit": "events-history",
    "scheduling": "cluster-config",
    "settings": "cluster-config",
}
#: Verbs that follow an action.
_ACTIONS = {"suspend": "update", "resume": "update", "logs": "read"}


@cache
def permission_of(operation: str) -> str:
    """The permission of a role that an operation needs."""
    resource, _, verb = operation.partition(":")
    return f"{_TYPES.get(resource, resource)}:{_ACTIONS.get(verb, verb)}"


def check(caller: Caller, operation: str, project_id: str = "", *, missing: str = "") -> None:
    """Return if `caller` may do `operation` in the project; raise otherwise.

    Without a project: to read, a caller needs the permission in any scope, and lists show only what they may read. To
    do anything else, they need it for the whole installation. `missing` is what is said of a record that does not
    exist: somebody who can see nothing in its project must not be able to tell the difference.
    """
    if not caller.name:
        raise Unauthenticated(f"{operation} in {project_id or 'this installation'} needs an access token")
    if caller.is_administrator:
        return
    permission = permission_of(operation)
    if project_id:
        _check_project(caller, operation, permission, project_id, missing)
    elif permission in EVERYBODY or (operation.endswith(":read") and permission in caller.anywhere):
        return
    elif permission not in caller.rights.get(INSTALLATION, ()):
        raise _forbidden(caller, operation, "")


def _check_project(caller: Caller, operation: str, permission: str, project_id: str, missing: str) -> None:
    rights = caller.rights.get(f"project/{project_id}")
    if rights is None:
        resource, _, verb = operation.partition(":")
        if verb == "create":
            raise Forbidden(f"No access rule allows {caller.name} to create {resource} in project {project_id[:60]}")
        raise NotFound(missing or f"{caller.name} can see nothing with that id")
    if permission not in rights:
        raise _forbidden(caller, operation, f" in project {project_id[:60]}")


def can_read(caller: Caller, operation: str, project_id: str = "") -> bool:
    """Whether `check` would let the caller read there."""
    if project_id:
        return is_allowed(caller, operation, f"project/{project_id}")
    return caller.is_administrator or permission_of(operation) in caller.anywhere


def check_at(caller: Caller, operation: str, scope_key: str) -> None:
    """Raise unless the caller may do this to what belongs to the scope: a project, a department or the installation."""
    kind, _, id = scope_key.partition("/")
    if kind == "project":
        check(caller, operation, id)
    elif not is_allowed(caller, operation, scope_key):
        where = f" in department {id[:60]}" if kind == "department" else " in the whole installation"
        raise _forbidden(caller, operation, where)


def check_anywhere(caller: Caller, operation: str) -> None:
    """Raise unless the caller may do this in at least one scope."""
    if not caller.is_administrator and permission_of(operation) not in caller.anywhere:
        raise _forbidden(caller, operation, "")


def check_owner(caller: Caller, workload: Workload, *, is_protected: bool) -> None:
    """Raise Forbidden if workloads are protected and this one is somebody else's. Administrators may."""
    if is_protected and caller.name != workload.created_by and not caller.is_administrator:
        raise Forbidden(
            f"{workload.name} belongs to {workload.created_by}; on this server only its owner can change, stop or "
            "delete it, or open sessions in it"
        )


def _forbidden(caller: Caller, operation: str, where: str) -> Forbidden:
    resource, _, verb = operation.partition(":")
    return Forbidden(
        f"{caller.name} may not {verb} {resource.replace('-', ' ')}{where}; an administrator can grant a role with the "
        f"right {permission_of(operation)}"
    )


def is_allowed(caller: Caller, operation: str, scope_key: str) -> bool:
    """Whether the caller may do this in a scope: `project/ID`, `department/ID`, or anything else for everywhere."""
    if caller.is_administrator:
        return True
    is_part = scope_key.startswith(("project/", "department/"))
    rights = caller.rights.get(scope_key) if is_part else None
    # A scope of which no rule speaks has the rights of the installation.
    return permission_of(operation) in (caller.rights.get(INSTALLATION, ()) if rights is None else rights)


def visible_projects(caller: Caller, operation: str = "workloads:read") -> frozenset[str] | None:
    """The projects in which a caller may do this; None for all."""
    return _scopes_with(caller, operation, "project/")


def unreadable_specs(caller: Caller) -> frozenset[tuple[str, str]]:
    """(kind, project) of workloads that a caller may list, but whose specs they may not read.

    Those of removed projects, which a role for the whole installation lists, are under an empty project.
    """
    if caller.is_administrator:
        return frozenset()
    scopes = {
        key.removeprefix("project/"): rights for key, rights in caller.rights.items() if key.startswith("project/")
    }
    scopes[""] = caller.rights.get(INSTALLATION, frozenset())
    return frozenset((kind, project) for project, rights in scopes.items() for kind in _unreadable_kinds(rights))


@lru_cache(maxsize=1024)
def _unreadable_kinds(rights: frozenset[str]) -> tuple[str, ...]:
    return tuple(kind.key for kind in KINDS.values() if permission_of(f"{kind.rest}:read") not in rights)


def visible_departments(caller: Caller, operation: str) -> frozenset[str] | None:
    """The departments in all of which a caller may do this; None for all."""
    return _scopes_with(caller, operation, "department/")


def _scopes_with(caller: Caller, operation: str, prefix: str) -> frozenset[str] | None:
    permission = permission_of(operation)
    if caller.is_administrator or permission in caller.rights.get(INSTALLATION, ()):
        return None
    return frozenset(
        key.removeprefix(prefix)
        for key, rights in caller.rights.items()
        if key.startswith(prefix) and permission in rights
    )
