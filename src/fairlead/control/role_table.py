"""The predefined roles: one table of what each may do, from which every access check, the API and the docs are made.

Resource types, groups and actions are those of Run:ai 2.24. A letter stands for an action, as in its documentation:
V view, E edit, C create, D delete. Custom roles are made of the permission sets at the end.
"""

import uuid
from collections.abc import Iterable
from typing import NamedTuple

from fairlead.kinds import KINDS
from fairlead.model.records.access import CustomRole, Role

ACTIONS = {"C": "create", "V": "read", "E": "update", "D": "delete"}
ALL = "VECD"


class ResourceType(NamedTuple):
    name: str
    group: str
    title: str


def _workload_types(*categories: str) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            kind.resource_type for category in categories for kind in KINDS.values() if kind.category == category
        )
    )


_TRAIN = _workload_types("Build", "Train")
_SERVE = _workload_types("Deploy")
_DATA_SOURCES = (
    ResourceType("pvc-assets", "workload-asset", "Data sources: claims"),
    ResourceType("git-assets", "workload-asset", "Data sources: Git"),
    ResourceType("host-path-assets", "workload-asset", "Data sources: host paths"),
    ResourceType("nfs-assets", "workload-asset", "Data sources: NFS"),
    ResourceType("s3-assets", "workload-asset", "Data sources: S3"),
    ResourceType("cm-volume-assets", "workload-asset", "Data sources: config maps"),
    ResourceType("secret-volume-assets", "workload-asset", "Data sources: secrets"),
)
RESOURCE_TYPES: tuple[ResourceType, ...] = (
    ResourceType("department", "organization", "Departments"),
    ResourceType("project", "organization", "Projects"),
    ResourceType("policies", "organization", "Policies"),
    ResourceType("cluster", "physical-resource", "Clusters"),
    ResourceType("cluster-config", "physical-resource", "Scheduling of the whole cluster"),
    ResourceType("nodepools", "physical-resource", "Node pools"),
    ResourceType("nodes", "physical-resource", "Nodes"),
    ResourceType("network-topologies", "physical-resource", "Network topologies"),
    ResourceType("storage-class-configuration", "physical-resource", "Storage classes"),
    ResourceType("users", "iam", "Users"),
    ResourceType("service-account", "iam", "Service accounts"),
    ResourceType("access_rules", "iam", "Access rules"),
    ResourceType("roles", "iam", "Roles"),
    ResourceType("access-keys", "iam", "Access keys"),
    ResourceType("events-history", "iam", "Audit log"),
    ResourceType("workloads", "workload", "Workloads"),
    *(ResourceType(name, "workload", name.capitalize()) for name in (*_TRAIN, *_SERVE)),
    ResourceType("environments", "workload-asset", "Environments"),
    ResourceType("compute-resources", "workload-asset", "Compute resources"),
    *_DATA_SOURCES,
    ResourceType("datavolumes", "workload-asset", "Data volumes"),
    ResourceType("credentials", "workload-asset", "Credentials"),
    ResourceType("templates", "workload-asset", "Templates"),
)
#: By REST name of a kind of workload: its resource type.
TYPE_OF_KIND = {kind.rest: kind.resource_type for kind in KINDS.values()}
#: What every account may do: these are about itself, or the same for everybody.
EVERYBODY = frozenset(
    {
        *(f"access-keys:{action}" for action in ACTIONS.values()),
        *(f"user-credentials:{action}" for action in ACTIONS.values()),
        *(f"{name}:read" for name in ("roles", "storage-class-configuration", "cluster")),
        *(f"workload-{name}:read" for name in ("types", "categories", "priorities")),
    }
)

#: Permissions that only those can give who have them: to change organization, nodes, people and rights, and to read
#: about people and about the whole cluster.
GIVEN_BY_HOLDERS = frozenset(
    f"{type.name}:{action}"
    for type in RESOURCE_TYPES
    for action in ACTIONS.values()
    if type.group == "iam"
    or type.name == "cluster-config"
    or (type.group in ("organization", "physical-resource") and action != "read")
).difference(EVERYBODY)

_EVERY_TYPE = tuple(type.name for type in RESOURCE_TYPES)
_DATA = tuple(type.name for type in _DATA_SOURCES)
_ASSETS = ("environments", "compute-resources", *_DATA, "datavolumes", "credentials", "templates")
_PLACES = ("department", "project", "cluster", "policies")
_MACHINES = ("nodepools", "nodes", "network-topologies")


def _role(id: int, name: str, description: str, *cells: tuple[Iterable[str], str]) -> Role:
    """A role; of several cells with the same type of resource, the last one counts."""
    letters: dict[str, str] = {"access-keys": ALL, "roles": "V", "storage-class-configuration": "V", "workloads": "V"}
    for types, allowed in cells:
        letters |= dict.fromkeys(types, allowed)
    permissions = frozenset(f"{type}:{ACTIONS[letter]}" for type, allowed in letters.items() for letter in allowed)
    return Role(id=id, name=name, description=description, permissions=permissions)


def _asset_administrator(id: int, name: str, what: str, *types: str) -> Role:
    description = f"Manages {what}; sees everything else in its scope."
    seen = (*_TRAIN, *_SERVE, *_ASSETS, *_PLACES, *_MACHINES)
    return _role(id, name, description, (seen, "V"), (types, ALL))


ADMINISTRATOR_ROLE = _role(
    1,
    "System administrator",
    "Reads and changes everything in its scope; installation-wide also accounts and organization.",
    (_EVERY_TYPE, ALL),
)
RESEARCHER_ROLE = _role(
    2,
    "L1 researcher",
    "Submits training workloads and manages secrets, assets and templates in the projects of its scope.",
    (_TRAIN, ALL),
    (_SERVE, "V"),
    (_ASSETS, ALL),
    ((*_PLACES, "nodepools"), "V"),
)
ROLES: tuple[Role, ...] = (
    ADMINISTRATOR_ROLE,
    RESEARCHER_ROLE,
    _role(
        3,
        "Department administrator",
        "Manages the projects, policies, access rules and people of a department, and everything in its projects.",
        ((*_TRAIN, *_SERVE, *_ASSETS), ALL),
        (("project", "policies", "access_rules", "users", "service-account"), ALL),
        (("department", "cluster", *_MACHINES), "V"),
    ),
    _role(
        4,
        "Editor",
        "Manages departments, projects, policies and access rules, training workloads and assets.",
        ((*_TRAIN, *_ASSETS), ALL),
        (_SERVE, "V"),
        (("department", "project", "policies", "access_rules"), ALL),
        (("cluster", *_MACHINES), "V"),
    ),
    _role(
        5,
        "Research manager",
        "Manages projects, their access rules and assets; sees workloads.",
        ((*_TRAIN, *_SERVE), "V"),
        (_ASSETS, ALL),
        (("credentials",), "V"),
        (("department", "cluster", "policies", *_MACHINES), "V"),
        (("project", "access_rules"), ALL),
    ),
    _role(
        6,
        "L2 researcher",
        "Submits training workloads with the assets that others made.",
        (_TRAIN, ALL),
        (_ASSETS, "V"),
        ((*_PLACES, "nodepools"), "V"),
    ),
    _role(
        7,
        "ML engineer",
        "Deploys and manages inference workloads; sees training workloads.",
        (_TRAIN, "V"),
        (_SERVE, ALL),
        (("credentials", "datavolumes"), "V"),
        ((*_PLACES, *_MACHINES), "V"),
    ),
    _role(
        8,
        "Viewer",
        "Sees workloads, assets, organization and nodes.",
        ((*_TRAIN, *_SERVE, *_ASSETS, *_PLACES, *_MACHINES), "V"),
    ),
    _role(
        9,
        "Department viewer",
        "Sees workloads, assets and organization, but neither credentials nor nodes.",
        ((*_TRAIN, *_SERVE, *_ASSETS, *_PLACES), "V"),
        (("credentials",), ""),
    ),
    _asset_administrator(10, "Environment administrator", "environments", "environments"),
    _asset_administrator(11, "Credentials administrator", "credentials", "credentials"),
    _asset_administrator(12, "Data source administrator", "data sources", *_DATA),
    _asset_administrator(13, "Compute resource administrator", "compute resources", "compute-resources"),
    _asset_administrator(14, "Data volume administrator", "data volumes", "datavolumes"),
    _asset_administrator(15, "Template administrator", "templates", "templates"),
)
#: The id of the first custom role; lower ones are reserved for predefined roles.
FIRST_CUSTOM = 1001


class PermissionSet(NamedTuple):
    id: str
    name: str
    description: str
    type: ResourceType
    #: Letters.
    allowed: str


def _permission_set(type: ResourceType, word: str, allowed: str) -> PermissionSet:
    id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"fairlead/permission-sets/{type.name}/{word}"))
    what = {"V": "See", ALL: "See, create, change and delete"}[allowed]
    return PermissionSet(id, f"{type.title}: {word}", f"{what}: {type.title.lower()}", type, allowed)


PERMISSION_SETS: dict[str, PermissionSet] = {
    made.id: made
    for type in RESOURCE_TYPES
    for made in (_permission_set(type, "view", "V"), _permission_set(type, "manage", ALL))
}


def resolve_role(record: CustomRole) -> Role:
    """A custom role with what its permission sets allow; nothing while it is disabled."""
    sets = [PERMISSION_SETS[id] for id in record.permission_sets if id in PERMISSION_SETS]
    permissions = frozenset(f"{one.type.name}:{ACTIONS[letter]}" for one in sets for letter in one.allowed)
    return Role(
        id=record.id,
        name=record.name,
        description=record.description,
        permissions=permissions if record.enabled else frozenset(),
        permission_sets=record.permission_sets,
        enabled=record.enabled,
        is_custom=True,
        created_at=record.created_at,
        created_by=record.created_by,
        updated_at=record.updated_at,
    )
