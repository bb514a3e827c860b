"""The organization: cluster, departments, projects, node pools, nodes."""

from typing import Any

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.access import CustomRole

#: The pool of all nodes that no other pool selects by its label.
DEFAULT_NODE_POOL = "default"
#: The prefix of a project's namespace, unless the project requested another namespace.
NAMESPACE_PREFIX = "runai-"


def namespace_of(project: str) -> str:
    """The namespace of a project that did not request another one."""
    return NAMESPACE_PREFIX + project


def project_in(namespace: str) -> str:
    """The name of the project that a namespace belongs to, derived from the namespace's name."""
    return namespace.removeprefix(NAMESPACE_PREFIX)


#: Ranks of queues by name; Run:ai documents only the default one.
RANKS = {"VeryLow": 50, "Low": 75, "MediumLow": 100, "Medium": 125, "MediumHigh": 150, "High": 175, "VeryHigh": 200}


class NetworkTopology(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How nodes are connected: node labels, from the widest domain to the narrowest."""

    id: str
    name: str
    levels: tuple[str, ...]
    created_at: Millis
    created_by: str = ""


class WorkloadType(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kind of Kubernetes object that users may submit as a manifest, and what its workloads get by default."""

    id: str
    #: The object's kind and the group of its API; empty for the core group.
    name: str
    group: str
    category: str
    priority: str
    #: How its pods are found in the object, as it was given.
    resource_interfaces: tuple[dict[str, object], ...] = ()
    created_at: Millis
    created_by: str = ""
    updated_at: Millis
    updated_by: str = ""


class ClusterConnection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the server reaches a cluster that was added to it."""

    #: `kubernetes`, or `local` for the machine of the server.
    engine: str
    #: The kubeconfig, encrypted for the cluster's record.
    sealed: str = ""
    #: For `local`, the machine: a server elsewhere leaves it alone.
    machine: str = ""


class Cluster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    version: int
    name: str
    tenant_id: int
    created_at: Millis
    domain: str = ""
    #: The fingerprint of the key that signs tokens; all servers of the installation must have the same key.
    key_fingerprint: str = ""
    #: The fingerprint of the key that encrypts secrets.
    vault_fingerprint: str = ""
    #: The engine that runs its workloads. Another engine would not know what they left behind.
    engine: str = ""
    #: Whether it was added to the installation, unlike the first one.
    is_added: bool = False
    #: For a cluster that was added; None for the first one, and for one that waits to be connected.
    connection: ClusterConnection | None = None
    #: The last number that was assigned as an id, per collection; numbers are never reused.
    numbers: dict[str, int] = {}
    network_topologies: tuple[NetworkTopology, ...] = ()
    roles: tuple[CustomRole, ...] = ()
    #: The types that an administrator added to the built-in ones.
    workload_types: tuple[WorkloadType, ...] = ()


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
    #: The unit in which the memory was given and is shown.
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
    #: Scheduling rules and node types of the contract, as sent.
    scheduling_rules: dict[str, int | None] = {}
    node_types: dict[str, object] = {}
    #: When its deletion was requested; it is removed when none of its workloads runs any more.
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
    #: Members of the contract that are stored and shown but have no effect on one machine.
    settings: dict[str, Any] = {}


class RecoveredOrganization(msgspec.Struct, frozen=True, kw_only=True):
    """The organization as the cluster knows it, for a server whose database was lost."""

    cluster_id: str
    departments: tuple[Department, ...]
    projects: tuple[Project, ...]
    node_pools: tuple[NodePool, ...]


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
    """A machine, or a declared part of a machine, and its capacity."""

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
    #: Since when it is not ready; None while it is, and if that is not known.
    not_ready_since: Millis | None = None
    #: Cordoned: no new pod is placed on it.
    cordoned: bool = False
    #: Whether somebody asked to cordon or uncordon it, until its engine has done so; None if nobody did.
    cordon_request: bool | None = None
    #: Drained: its pods are evicted for as long as it is cordoned.
    draining: bool = False
    created_at: Millis = 0
    #: Which of CPU, memory and GPUs were declared by the operator instead of detected.
    declared: tuple[str, ...] = ()
    #: The cluster that was added and has it; empty for the first cluster.
    cluster_id: str = ""

    @property
    def unique_name(self) -> str:
        """Its name in the store and in the ledger; nodes of two clusters may be called the same."""
        return f"{self.cluster_id}/{self.name}" if self.cluster_id else self.name

    @property
    def gpu_type(self) -> str:
        """The model of its GPUs, or a word for one that is not known; empty if it has none."""
        return (self.gpus[0].model or "GPU") if self.gpus else ""

    @property
    def will_be_cordoned(self) -> bool:
        """Whether it takes no new pods once the last request has been carried out."""
        return self.cordoned if self.cordon_request is None else self.cordon_request


def with_not_ready_since(observed: Node, before: Node | None, now: Millis) -> Node:
    """The observed node with the time since which it is not ready: the engine's, the recorded one, or now."""
    if observed.ready:
        return msgspec.structs.replace(observed, not_ready_since=None)
    if before is not None and not before.ready:
        now = before.not_ready_since or now
    return msgspec.structs.replace(observed, not_ready_since=observed.not_ready_since or now)


def with_cordon_by_us(observed: Node, before: Node | None) -> Node:
    """The observed node of an engine that cannot cordon: the record says whether it is."""
    if before is None:
        return observed
    return msgspec.structs.replace(observed, cordoned=before.will_be_cordoned, draining=before.draining)


def with_cordon_by_cluster(observed: Node, before: Node | None) -> Node:
    """The observed node of a cluster, which cordons by itself; with the request that it has not carried out yet."""
    if before is None:
        return observed
    request = None if before.cordon_request is observed.cordoned else before.cordon_request
    is_cordoned = observed.cordoned if request is None else request
    return msgspec.structs.replace(observed, cordon_request=request, draining=before.draining and is_cordoned)
