"""What workloads live in: cluster, departments, projects, node pools, nodes; and who asks: users and applications."""

from typing import Any

import msgspec

from fairlead.model.clock import Millis

#: The pool that catches every node no other pool's label names.
DEFAULT_NODE_POOL = "default"
#: What a project's name follows in the name of its namespace, unless another was asked for.
NAMESPACE_PREFIX = "runai-"


def namespace_of(project: str) -> str:
    """The namespace of a project that did not ask for one by name."""
    return NAMESPACE_PREFIX + project


def project_in(namespace: str) -> str:
    """The project that a namespace belongs to, by its name alone."""
    return namespace.removeprefix(NAMESPACE_PREFIX)


#: Ranks of queues by name; only the default one is documented, the others stand around it.
RANKS = {"VeryLow": 50, "Low": 75, "MediumLow": 100, "Medium": 125, "MediumHigh": 150, "High": 175, "VeryHigh": 200}


class NetworkTopology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the nodes of node pools are connected: labels of nodes, the widest domain first."""

    id: str
    name: str
    levels: tuple[str, ...]
    created_at: Millis
    created_by: str = ""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    name: str
    tenant_id: int
    created_at: Millis
    domain: str = ""
    #: Of the key that signs its tokens; every server of the installation must have that key.
    key_fingerprint: str = ""
    #: Of the key that its users' secrets are encrypted with.
    vault_fingerprint: str = ""
    #: The engine that runs its workloads: another one knows nothing of what they left where.
    engine: str = ""
    #: The last number given as an id, by collection; a deleted project's number is never given again.
    numbers: dict[str, int] = {}
    network_topologies: tuple[NetworkTopology, ...] = ()


class Quota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resource of one owner in one node pool. Units: GPU devices, millicores, bytes. None means unlimited."""

    deserved: float | None = 0.0
    limit: float | None = None
    over_quota_weight: float = 2.0


class PoolQuota(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an owner may use in one node pool."""

    node_pool_id: str
    node_pool_name: str
    gpu: Quota = Quota()
    cpu: Quota = Quota(deserved=None)
    memory: Quota = Quota(deserved=None)
    #: The rank's name; siblings of higher rank are served first.
    priority: str = "MediumLow"
    #: In which unit the memory was written, and is shown again.
    memory_units: str = "Mib"


class Department(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    name: str
    cluster_id: str
    created_at: Millis
    updated_at: Millis
    created_by: str
    updated_by: str
    description: str = ""
    resources: tuple[PoolQuota, ...] = ()
    default_node_pools: tuple[str, ...] = ()
    #: The members of the contract's scheduling rules and node types, as sent.
    scheduling_rules: dict[str, int | None] = {}
    node_types: dict[str, Any] = {}
    #: When its deletion was asked for; it is gone when nothing of it runs any more.
    deleted_at: Millis | None = None


class Project(Department, frozen=True, kw_only=True, omit_defaults=True):
    department_id: str
    department_name: str
    requested_namespace: str = ""
    enforce_scheduler: bool = True

    @property
    def namespace(self) -> str:
        return self.requested_namespace or namespace_of(self.name)


class NodePool(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    name: str
    cluster_id: str
    created_at: Millis
    updated_at: Millis
    created_by: str = ""
    updated_by: str = ""
    label_key: str = ""
    label_value: str = ""
    placement_gpu: str = "binpack"
    placement_cpu: str = "binpack"
    min_guaranteed_runtime_seconds: int = 0
    network_topology_id: str = ""
    #: Members of the contract that are kept and shown, and have no effect on one machine.
    settings: dict[str, Any] = {}


class GpuDevice(msgspec.Struct, frozen=True, omit_defaults=True):
    index: int
    uuid: str = ""
    model: str = ""
    memory_mib: int = 0


class Taint(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine, or a part of one declared as if it were one, and what it can give."""

    id: str
    version: int = 1
    name: str
    cpu_milli: int
    memory_bytes: int
    pods: int = 1000
    gpus: tuple[GpuDevice, ...] = ()
    #: Extended resources by name, whole numbers.
    extended: dict[str, int] = {}
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    #: Nothing new is placed on it, as `kubectl cordon` asks for.
    cordoned: bool = False
    created_at: Millis = 0
    #: Names which of CPU, memory and GPUs were declared by the operator rather than found.
    declared: tuple[str, ...] = ()


class User(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person, or an application that acts as one; the secret is kept as a salted hash."""

    id: str
    version: int
    #: `user`, `app`, `service-account` or `access-key`.
    type: str
    #: The mail address of a person, the client id of everything else: one account has it.
    name: str
    secret_hash: str
    created_at: Millis
    created_by: str = ""
    updated_at: Millis = 0
    enabled: bool = True
    groups: tuple[str, ...] = ()
    last_login_at: Millis | None = None
    #: What an access key is called by the user that it belongs to, and who that is.
    label: str = ""
    owner_id: str = ""
    #: One more with every change after which tokens given out before are no longer good.
    generation: int = 0
    #: The password was drawn by somebody else and is to be changed.
    must_change_password: bool = False


class Caller(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who makes a request, as its token says."""

    #: The token's subject: a user's name or an application's client id. It becomes `createdBy`.
    name: str
    id: str
    type: str = "user"
    groups: tuple[str, ...] = ()
    #: Whether a rule makes them administrator of everything.
    is_administrator: bool = False
    #: The projects in which a rule gives them a role, and the departments that a rule covers as a whole.
    projects: frozenset[str] = frozenset()
    departments: frozenset[str] = frozenset()
