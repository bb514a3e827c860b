"""Access control: who may do what where. Every use case calls `check` before it reads or changes anything.

A caller carries the permissions that its access rules give. Records outside a caller's scope do not exist for them
(`NotFound`); an operation that they may not do on visible records, or a creation elsewhere, is `Forbidden`.
"""

from fairlead.kinds import KINDS
from fairlead.model.errors import Forbidden, NotFound, Unauthenticated
from fairlead.model.records.organization import Caller

#: The scope of records that belong to no project: the whole installation.
EVERYWHERE = ""

_ANY = frozenset({"read", "create", "update", "delete"})
_READ = frozenset({"read"})
#: What a researcher may do in the projects of their scope, and with records of no project: resource → verbs.
_RESEARCHER: dict[str, frozenset[str]] = {
    "workloads": frozenset({"read", "logs", "exec", "attach", "port-forward"}),
    **{kind.rest: _ANY | {"suspend", "resume"} for kind in KINDS.values()},
    **dict.fromkeys(
        (
            "secrets",
            "config-maps",
            "claims",
            "data-volumes",
            "user-credentials",
            "assets",
            "credentials",
            "templates",
            "access-keys",
        ),
        _ANY,
    ),
    **dict.fromkeys(
        (
            "clusters",
            "departments",
            "projects",
            "node-pools",
            "storage-classes",
            "workload-types",
            "workload-categories",
            "workload-priorities",
            "roles",
            "policies",
        ),
        _READ,
    ),
}


def check(caller: Caller, operation: str, project_id: str = EVERYWHERE) -> None:
    """Return if `caller` may do `operation` (a resource and a verb: `workloads:read`) there; raise otherwise."""
    if not caller.name:
        raise Unauthenticated(f"{operation} in {project_id or 'this installation'} needs an access token")
    if caller.is_administrator:
        return
    resource, _, verb = operation.partition(":")
    if project_id and project_id not in caller.projects:
        if verb == "create":
            raise Forbidden(f"No access rule allows {caller.name} to create {resource} in project {project_id[:60]}")
        raise NotFound(f"{caller.name} can see nothing with that id")
    if verb not in _RESEARCHER.get(resource, frozenset()):
        raise Forbidden(f"No access rule allows {caller.name} to do {operation}; an administrator can add one")


def visible_projects(caller: Caller) -> frozenset[str] | None:
    """The projects whose records a caller may see; None for all."""
    return None if caller.is_administrator else caller.projects
