"""All collections, with the columns that queries can filter and sort by.

`control` names them in queries and changes; the stores keep a table for each. A column only repeats a value of the
record and is derived at every write. A new column needs a migration in `migrations.py`.
"""

from collections.abc import Callable
from operator import attrgetter

from fairlead.model.records.access import AccessRule
from fairlead.model.records.assets import Asset, Claim, ConfigMap, DataVolume, NamedRecord, Secret
from fairlead.model.records.caller_environment import CallerEnvironment
from fairlead.model.records.cycle import CyclePiece
from fairlead.model.records.event import AuditLine, Event
from fairlead.model.records.lease import Lease
from fairlead.model.records.ledger import SupplyInterval, UsageInterval
from fairlead.model.records.notifications import Delivery, NotificationPosition, NotificationRule
from fairlead.model.records.organization import Cluster, Department, Node, NodePool, Project
from fairlead.model.records.people import ProviderSession, User
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.policies import PolicyRecord
from fairlead.model.records.revision import Revision
from fairlead.model.records.templates import Template
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Collection, Column, R, Value


def _text(name: str, take: Callable[[R], Value] | None = None, *, indexed: bool = False) -> Column[R]:
    return Column(name, "text", take or attrgetter(name), indexed)


def _integer(name: str, take: Callable[[R], Value] | None = None, *, indexed: bool = False) -> Column[R]:
    return Column(name, "integer", take or attrgetter(name), indexed)


def _real(name: str, take: Callable[[R], Value] | None = None) -> Column[R]:
    return Column(name, "real", take or attrgetter(name))


WORKLOADS: Collection[Workload] = Collection(
    name="workloads",
    record=Workload,
    columns=(
        # Named after the fields that the workload list filters and sorts by.
        _text("type", attrgetter("kind")),
        _text("name"),
        _text("cluster_id"),
        _text("project_id"),
        _text("project_name"),
        _text("department_id"),
        _text("department_name"),
        _integer("created_at", indexed=True),
        _integer("deleted_at", indexed=True),
        _text("submitted_by", attrgetter("created_by")),
        _text("phase", attrgetter("phase.value")),
        _integer("completed_at"),
        _text("nodepool", lambda workload: ",".join(workload.node_pools)),
        _real("allocated_gpu"),
        _integer("phase_updated_at"),
        _text("category"),
        _integer("total_pending_time_seconds", lambda workload: workload.pending_time // 1000),
        _integer("total_running_time_seconds", lambda workload: workload.running_time // 1000),
        _integer("priority"),
        _text("priority_class_name", attrgetter("priority_class")),
        # The loop loads workloads by these.
        _integer("is_active", lambda workload: int(workload.is_active), indexed=True),
        _integer("delete_at", indexed=True),
        # A name is free again as soon as deletion of its workload was requested.
        _text("live_name", lambda workload: workload.name if workload.deleted_at is None else None),
        # Names that its project does not have and workloads that must end before it starts.
        _text("waits_for", lambda workload: ",".join(workload.waits_for) or None, indexed=True),
        _text("distributed_framework", attrgetter("framework")),
        # Whether lists show it if deleted workloads are not asked for.
        _integer("is_listed", lambda workload: int(workload.is_listed), indexed=True),
    ),
    unique=(("project_id", "live_name"),),
    # A page of the list: of all workloads by age, and of those of a few projects.
    indexes=(("is_listed", "created_at"), ("is_listed", "project_id", "created_at", "id")),
)

PODS: Collection[Pod] = Collection(
    name="pods",
    record=Pod,
    columns=(
        _text("workload_id", indexed=True),
        _text("project_id"),
        _text("name"),
        # A pod whose name a newer one has is queried as stopped; its record keeps how it ended.
        _text("phase", lambda pod: PodPhase.STOPPED.value if pod.is_replaced else pod.phase.value),
        _text("node"),
        _text("node_pool"),
        _integer("run"),
        _integer("created_at"),
        _integer("completed_at"),
        _integer("is_active", lambda pod: int(not pod.has_ended), indexed=True),
        _text("revision_id"),
    ),
)

REVISIONS: Collection[Revision] = Collection(
    name="revisions",
    record=Revision,
    columns=(_text("workload_id", indexed=True), _integer("number"), _integer("created_at")),
)

CLUSTERS: Collection[Cluster] = Collection(
    name="clusters",
    record=Cluster,
    columns=(_text("name"), _integer("created_at")),
    unique=(("name",),),
)

DEPARTMENTS: Collection[Department] = Collection(
    name="departments",
    record=Department,
    columns=(_text("name"), _text("cluster_id"), _integer("created_at")),
    unique=(("cluster_id", "name"),),
)

PROJECTS: Collection[Project] = Collection(
    name="projects",
    record=Project,
    columns=(
        _text("name"),
        _text("cluster_id"),
        _text("department_id"),
        _text("department_name"),
        _integer("created_at"),
    ),
    unique=(("cluster_id", "name"),),
)

NODE_POOLS: Collection[NodePool] = Collection(
    name="node_pools",
    record=NodePool,
    columns=(_text("name"), _text("cluster_id"), _integer("created_at"), _integer("updated_at")),
    unique=(("cluster_id", "name"),),
)

NODES: Collection[Node] = Collection(
    name="nodes",
    record=Node,
    columns=(
        _text("name", lambda node: node.unique_name),
        _integer("ready", lambda node: int(node.ready)),
        _text("gpu_type", lambda node: node.gpus[0].model if node.gpus else ""),
        _integer("created_at"),
    ),
    unique=(("name",),),
)

USERS: Collection[User] = Collection(
    name="users",
    record=User,
    columns=(
        _text("type"),
        _text("name"),
        _text("created_by"),
        _integer("created_at"),
        _integer("last_login_at"),
    ),
    unique=(("type", "name"),),
)

EVENTS: Collection[Event] = Collection(
    name="events",
    record=Event,
    columns=(
        _integer("at"),
        _text("subject"),
        _text("subject_id", indexed=True),
        _text("project_id"),
    ),
    key="revision",
    numbered=True,
)

AUDIT: Collection[AuditLine] = Collection(
    name="audit",
    record=AuditLine,
    columns=(
        _integer("at", indexed=True),
        _text("caller"),
        _text("operation"),
        _text("subject"),
        _text("subject_id"),
        _text("caller_type"),
        _text("action"),
        _text("subject_name"),
        _text("result"),
        _text("address"),
        _text("method"),
        _text("url"),
        _text("cluster_id"),
    ),
    key="number",
    numbered=True,
)

LEASES: Collection[Lease] = Collection(
    name="leases",
    record=Lease,
    columns=(_text("holder"), _integer("expires_at")),
)

#: Columns of all records that workloads refer to by name.
_KEPT: tuple[Column[NamedRecord], ...] = (
    _text("name"),
    _text("place", attrgetter("scope_key")),
    _text("created_by"),
    _integer("created_at"),
    _integer("updated_at"),
)

SECRETS: Collection[Secret] = Collection(
    name="secrets",
    record=Secret,
    columns=(*_KEPT, _text("type"), _text("asset_id")),
    unique=(("place", "name"),),
)

CONFIG_MAPS: Collection[ConfigMap] = Collection(
    name="config_maps",
    record=ConfigMap,
    columns=_KEPT,
    unique=(("place", "name"),),
)

CLAIMS: Collection[Claim] = Collection(
    name="claims",
    record=Claim,
    columns=(*_KEPT, _text("asset_id")),
    unique=(("place", "name"),),
)

DATA_VOLUMES: Collection[DataVolume] = Collection(
    name="data_volumes",
    record=DataVolume,
    columns=(*_KEPT, _text("project_id")),
    unique=(("name",),),
)

ASSETS: Collection[Asset] = Collection(
    name="assets",
    record=Asset,
    columns=(*_KEPT, _text("kind")),
    unique=(("kind", "place", "name"),),
)

TEMPLATES: Collection[Template] = Collection(
    name="templates",
    record=Template,
    columns=(
        *_KEPT,
        _text("updated_by"),
        _text("kind"),
        _text("scope_type", attrgetter("scope.type")),
        _text("scope_id", attrgetter("scope.id")),
    ),
    unique=(("place", "name"),),
)

CALLER_ENVIRONMENTS: Collection[CallerEnvironment] = Collection(
    name="caller_environments",
    record=CallerEnvironment,
    columns=(_text("workload_id", indexed=True), _text("created_by"), _integer("created_at")),
)

ACCESS_RULES: Collection[AccessRule] = Collection(
    name="access_rules",
    record=AccessRule,
    columns=(_text("subject_id"), _text("subject_type"), _integer("created_at")),
)

POLICIES: Collection[PolicyRecord] = Collection(
    name="policies",
    record=PolicyRecord,
    columns=(*_KEPT, _text("type")),
    # A scope has one policy of each type.
    unique=(("type", "place"),),
)

USAGE: Collection[UsageInterval] = Collection(
    name="usage",
    record=UsageInterval,
    columns=(_integer("until", indexed=True), _integer("since"), _text("project_id")),
)

SUPPLY: Collection[SupplyInterval] = Collection(
    name="supply",
    record=SupplyInterval,
    columns=(_integer("until"), _text("type"), _text("subject")),
)

PROVIDER_SESSIONS: Collection[ProviderSession] = Collection(
    name="provider_sessions",
    record=ProviderSession,
    columns=(_text("user_id"), _integer("expires_at", indexed=True)),
)

#: Scheduling cycles; found by id alone.
CYCLES: Collection[CyclePiece] = Collection(name="cycles", record=CyclePiece)

NOTIFICATION_RULES: Collection[NotificationRule] = Collection(
    name="notification_rules",
    record=NotificationRule,
    columns=(_text("owner_id"), _text("project_id"), _integer("created_at")),
)

DELIVERIES: Collection[Delivery] = Collection(
    name="deliveries",
    record=Delivery,
    columns=(
        _text("owner_id"),
        _integer("created_at", indexed=True),
        _integer("next_at", indexed=True),
        _integer("has_failed", lambda delivery: int(bool(delivery.error))),
    ),
)

NOTIFICATION_POSITIONS: Collection[NotificationPosition] = Collection(
    name="notification_positions", record=NotificationPosition
)

COLLECTIONS: tuple[Collection[object], ...] = (
    WORKLOADS,
    PODS,
    REVISIONS,
    CLUSTERS,
    DEPARTMENTS,
    PROJECTS,
    NODE_POOLS,
    NODES,
    USERS,
    EVENTS,
    AUDIT,
    LEASES,
    SECRETS,
    CONFIG_MAPS,
    CLAIMS,
    DATA_VOLUMES,
    ASSETS,
    TEMPLATES,
    ACCESS_RULES,
    POLICIES,
    CALLER_ENVIRONMENTS,
    USAGE,
    SUPPLY,
    PROVIDER_SESSIONS,
    CYCLES,
    NOTIFICATION_RULES,
    DELIVERIES,
    NOTIFICATION_POSITIONS,
)
