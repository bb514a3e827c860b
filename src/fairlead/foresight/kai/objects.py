"""The objects of a cluster that KAI's decisions depend on, as Kubernetes writes them. Other members are ignored."""

from __future__ import annotations

import msgspec


class _Object(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class KaiMetadata(_Object, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class KaiResources(_Object, frozen=True, kw_only=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class KaiContainer(_Object, frozen=True, kw_only=True):
    resources: KaiResources = KaiResources()


class KaiExpression(_Object, frozen=True, kw_only=True):
    key: str
    operator: str
    values: tuple[str, ...] | None = None


class KaiTerm(_Object, frozen=True, kw_only=True):
    match_expressions: tuple[KaiExpression, ...] | None = None


class KaiTerms(_Object, frozen=True, kw_only=True):
    node_selector_terms: tuple[KaiTerm, ...] | None = None


class KaiNodeAffinity(_Object, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: KaiTerms | None = None


class KaiSelector(_Object, frozen=True, kw_only=True):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[KaiExpression, ...] | None = None


class KaiPodTerm(_Object, frozen=True, kw_only=True):
    topology_key: str = ""
    label_selector: KaiSelector | None = None
    namespaces: tuple[str, ...] | None = None


class KaiPodAffinity(_Object, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: tuple[KaiPodTerm, ...] | None = None


class KaiAffinity(_Object, frozen=True, kw_only=True):
    node_affinity: KaiNodeAffinity | None = None
    pod_affinity: KaiPodAffinity | None = None
    pod_anti_affinity: KaiPodAffinity | None = None


class KaiToleration(_Object, frozen=True, kw_only=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class KaiPodSpec(_Object, frozen=True, kw_only=True):
    scheduler_name: str = ""
    node_name: str = ""
    containers: tuple[KaiContainer, ...] | None = None
    init_containers: tuple[KaiContainer, ...] | None = None
    node_selector: dict[str, str] | None = None
    affinity: KaiAffinity | None = None
    tolerations: tuple[KaiToleration, ...] | None = None
    scheduling_gates: tuple[dict[str, str], ...] | None = None


class KaiPodStatus(_Object, frozen=True, kw_only=True):
    phase: str = "Pending"
    nominated_node_name: str = ""


class KaiPod(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiPodSpec = KaiPodSpec()
    status: KaiPodStatus = KaiPodStatus()


class KaiCondition(_Object, frozen=True, kw_only=True):
    type: str
    status: str


class KaiTaint(_Object, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class KaiNodeSpec(_Object, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[KaiTaint, ...] | None = None


class KaiNodeStatus(_Object, frozen=True, kw_only=True):
    allocatable: dict[str, str | int | float] | None = None
    conditions: tuple[KaiCondition, ...] | None = None


class KaiNode(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiNodeSpec = KaiNodeSpec()
    status: KaiNodeStatus = KaiNodeStatus()


class KaiShare(_Object, frozen=True, kw_only=True):
    """A member that is left out counts as zero, as in KAI."""

    quota: float = 0
    limit: float = 0
    over_quota_weight: float = 0


class KaiShares(_Object, frozen=True, kw_only=True):
    gpu: KaiShare = KaiShare()
    cpu: KaiShare = KaiShare()
    memory: KaiShare = KaiShare()


class KaiQueueSpec(_Object, frozen=True, kw_only=True):
    display_name: str = ""
    parent_queue: str = ""
    priority: int | None = None
    resources: KaiShares = KaiShares()
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class KaiQueue(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiQueueSpec = KaiQueueSpec()


class KaiTopologyConstraint(_Object, frozen=True, kw_only=True):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class KaiSubGroup(_Object, frozen=True, kw_only=True):
    name: str
    parent: str | None = None
    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: KaiTopologyConstraint | None = None


class KaiPodGroupSpec(_Object, frozen=True, kw_only=True):
    min_member: int | None = None
    min_sub_group: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: KaiTopologyConstraint | None = None
    sub_groups: tuple[KaiSubGroup, ...] | None = None


class KaiPodGroup(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiPodGroupSpec = KaiPodGroupSpec()


class KaiPriorityClass(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    value: int = 0


class KaiBindRequestSpec(_Object, frozen=True, kw_only=True):
    pod_name: str = ""
    selected_node: str = ""
    selected_g_p_u_groups: tuple[str, ...] | None = msgspec.field(default=None, name="selectedGPUGroups")


class KaiBindRequestStatus(_Object, frozen=True, kw_only=True):
    phase: str = ""


class KaiBindRequest(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiBindRequestSpec = KaiBindRequestSpec()
    status: KaiBindRequestStatus = KaiBindRequestStatus()


class KaiLevel(_Object, frozen=True, kw_only=True):
    node_label: str


class KaiTopologySpec(_Object, frozen=True, kw_only=True):
    levels: tuple[KaiLevel, ...] = ()


class KaiTopology(_Object, frozen=True, kw_only=True):
    metadata: KaiMetadata
    spec: KaiTopologySpec = KaiTopologySpec()


class KaiObjects(_Object, frozen=True, kw_only=True):
    """Everything that KAI's own snapshot archive has below `rawObjects`, as far as it is used here."""

    pods: tuple[KaiPod, ...] | None = None
    nodes: tuple[KaiNode, ...] | None = None
    queues: tuple[KaiQueue, ...] | None = None
    pod_groups: tuple[KaiPodGroup, ...] | None = None
    bind_requests: tuple[KaiBindRequest, ...] | None = None
    priority_classes: tuple[KaiPriorityClass, ...] | None = None
    topologies: tuple[KaiTopology, ...] | None = None


class KaiConfiguration(_Object, frozen=True, kw_only=True):
    #: Separated by commas.
    actions: str = ""


class KaiArchive(_Object, frozen=True, kw_only=True):
    """The file `snapshot.json` of KAI's archive."""

    raw_objects: KaiObjects
    config: KaiConfiguration | None = None
