"""The state of a cluster as plain data: everything that a scheduling decision looks at, `now` included.

Frozen and without behaviour. The same types are the JSON format of `docs/reference/snapshot.md`, in camelCase there.
Whoever builds one must not leave out a limit: -1 says unlimited, and 0 really means nothing.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

UNLIMITED = -1
DEFAULT_POOL = "default"
DEFAULT_POD_SET = "default"

Strategy = Literal["binpack", "spread", "defragment"]
Action = Literal["allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"]
TaskStatus = Literal[
    "Pending",
    "Gated",
    "Allocated",
    "Pipelined",
    "Binding",
    "Bound",
    "Running",
    "Releasing",
    "StuckInReleasing",
    "Succeeded",
    "Failed",
    "Unknown",
    "Deleted",
]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

#: In KAI's order.
ALL_ACTIONS: tuple[Action, ...] = get_args(Action)


class Plain(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """What all parts of a snapshot share: frozen, named arguments, camelCase in JSON, unknown fields refused."""


class Requirement(Plain, frozen=True, kw_only=True):
    """One comparison of a label, as in Kubernetes' match expressions."""

    key: str
    operator: Operator = "In"
    values: tuple[str, ...] = ()


class TaskToleration(Plain, frozen=True, kw_only=True):
    key: str = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    #: Empty tolerates every effect.
    effect: str = ""


class NodeTaint(Plain, frozen=True, kw_only=True):
    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class PodTerm(Plain, frozen=True, kw_only=True):
    """Pods in the same (or, for anti-affinity, not in the same) domain of `topology_key` as the pods it selects."""

    topology_key: str
    match_labels: dict[str, str] = {}
    match_expressions: tuple[Requirement, ...] = ()
    #: Empty: the namespace of the task itself.
    namespaces: tuple[str, ...] = ()


class PreferredTerm(Plain, frozen=True, kw_only=True):
    """Kept for completeness: KAI filters by required node affinity only and gives no score for a preferred one."""

    weight: int
    requirements: tuple[Requirement, ...]


class ForeignUsage(Plain, frozen=True, kw_only=True):
    """Amounts in use on a node by pods that are not ours to schedule."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu: int = 0
    pods: int = 0
    extended: dict[str, int] = {}


class SnapshotNode(Plain, frozen=True, kw_only=True):
    name: str
    cpu_milli: int = 0
    memory_bytes: int = 0
    pods: int = 110
    gpu: int = 0
    #: Memory of each device in MiB; 0 is unknown, and then requests by GPU memory are refused here.
    gpu_memory_mib: int = 0
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    #: Profile, such as 1g.5gb, to the number of instances.
    mig: dict[str, int] = {}
    extended: dict[str, int] = {}
    labels: dict[str, str] = {}
    taints: tuple[NodeTaint, ...] = ()
    ready: bool = True
    #: Cordoned: takes nothing new, keeps what runs and counts in the cluster's total.
    unschedulable: bool = False
    node_pool: str = DEFAULT_POOL
    foreign: ForeignUsage = ForeignUsage()


class Share(Plain, frozen=True, kw_only=True):
    """What a queue may have of one resource: GPUs as devices, CPU in thousandths of a core, memory in bytes."""

    #: -1 is unlimited, and 0 really is a limit of nothing; there is no default.
    limit: float
    quota: float = 0
    over_quota_weight: float = 0


class QueueShares(Plain, frozen=True, kw_only=True):
    gpu: Share
    cpu: Share
    memory: Share


class QueueUsage(Plain, frozen=True, kw_only=True):
    """Use in the past as a part of the cluster's capacity, 0 to 1 per resource."""

    gpu: float = 0
    cpu: float = 0
    memory: float = 0


class Queue(Plain, frozen=True, kw_only=True):
    """One project or department in one node pool; `(name, node_pool)` is its identity."""

    name: str
    resources: QueueShares
    node_pool: str = DEFAULT_POOL
    display_name: str = ""
    parent: str | None = None
    priority: int = 100
    created: float = 0
    #: Seconds; None asks the parent, in the end the settings.
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None
    usage: QueueUsage = QueueUsage()


class TopologyConstraint(Plain, frozen=True, kw_only=True):
    """Levels are names of node labels, as in the topology itself."""

    topology: str
    required: str | None = None
    preferred: str | None = None


class JobPodSet(Plain, frozen=True, kw_only=True):
    name: str
    min_available: int = 1
    topology: TopologyConstraint | None = None


class SubGroup(Plain, frozen=True, kw_only=True):
    """An inner node of a job's tree of subgroups; its members are groups and pod sets."""

    name: str
    #: How many members must be satisfied; None is all.
    min_sub_group: int | None = None
    topology: TopologyConstraint | None = None
    groups: tuple[SubGroup, ...] = ()
    pod_sets: tuple[JobPodSet, ...] = ()


class Task(Plain, frozen=True, kw_only=True):
    """One pod. `gpu` asks for whole devices; `gpu_portion` or `gpu_memory_mib` for a part of each of `gpu_devices`."""

    id: str
    name: str = ""
    namespace: str = ""
    pod_set: str = DEFAULT_POD_SET
    status: TaskStatus = "Pending"
    node: str | None = None
    #: Shared GPUs it is on, one id per device.
    gpu_groups: tuple[str, ...] = ()
    #: Indices of the devices it holds on its node; aligned with `gpu_groups` for shared GPUs.
    devices: tuple[int, ...] = ()
    cpu_milli: int = 0
    memory_bytes: int = 0
    gpu: int = 0
    gpu_portion: float = 0
    gpu_memory_mib: int = 0
    gpu_devices: int = 1
    #: Profile to the number of instances.
    mig: dict[str, int] = {}
    #: A pod of the old MIG style: never placed, and it keeps new MIG pods off its node.
    legacy_mig: bool = False
    extended: dict[str, int] = {}
    created: float = 0
    #: Larger goes first inside its pod set; None goes after all numbers.
    priority: int | None = None
    #: Master or head of its pod set: placed before all others.
    leader: bool = False
    labels: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    #: Alternatives; all requirements of one of them must hold. None at all: no constraint.
    node_affinity: tuple[tuple[Requirement, ...], ...] = ()
    preferred_node_affinity: tuple[PreferredTerm, ...] = ()
    pod_affinity: tuple[PodTerm, ...] = ()
    #: Nodes with pods that these select in the same domain are better.
    preferred_pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    tolerations: tuple[TaskToleration, ...] = ()
    nominated_node: str | None = None


class Job(Plain, frozen=True, kw_only=True):
    """One pod group: what is placed, grown, shrunk and evicted together."""

    id: str
    queue: str
    tasks: tuple[Task, ...]
    name: str = ""
    namespace: str = ""
    priority: int = 50
    preemptible: bool = True
    created: float = 0
    last_start: float | None = None
    last_eviction: float | None = None
    #: Seconds after creation or the last eviction in which it evicts nobody; it may still take what is free.
    preemption_delay: float = 0
    #: Minimum of the one pod set of a job without `groups` and `pod_sets`.
    min_available: int = 1
    min_sub_group: int | None = None
    topology: TopologyConstraint | None = None
    groups: tuple[SubGroup, ...] = ()
    pod_sets: tuple[JobPodSet, ...] = ()
    #: Seconds; None takes the setting, negative is never.
    staleness_grace: float | None = None
    stale_since: float | None = None
    #: Tried in this order until one takes it; a job with placed tasks stays in the pool of its first one.
    node_pools: tuple[str, ...] = (DEFAULT_POOL,)
    #: Its evicted tasks are on their way out and never come back.
    deleting: bool = False


class Topology(Plain, frozen=True, kw_only=True):
    name: str
    #: Node labels, widest first.
    levels: tuple[str, ...]


class Placement(Plain, frozen=True, kw_only=True):
    """`gpu` chooses nodes for tasks with GPUs, `cpu` for all others; `device` chooses a shared GPU of a node."""

    gpu: Strategy = "binpack"
    cpu: Strategy = "binpack"
    #: None follows `gpu`.
    device: Literal["binpack", "spread"] | None = None

    @property
    def spreads_devices(self) -> bool:
        return (self.device or self.gpu) == "spread"


class PoolSettings(Plain, frozen=True, kw_only=True):
    """What one node pool does differently; None follows the settings."""

    name: str
    placement: Placement | None = None
    k_value: float | None = None
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None


class Settings(Plain, frozen=True, kw_only=True):
    #: None: all five, without consolidation in pools that spread, as Run:ai sets it up. A list is obeyed as it is.
    actions: tuple[Action, ...] | None = None
    placement: Placement = Placement()
    pools: tuple[PoolSettings, ...] = ()
    #: -1 is unlimited, 0 turns consolidation off. As in KAI one job more than this number gets in.
    max_consolidation_victims: int = 16
    allow_consolidating_reclaim: bool = True
    #: Whether queues within their share keep their pods where they are. KAI 0.12 does not ask: it may move them.
    filter_reclaim_victims: bool = True
    #: Whether the victims for a gang may be looked for on several nodes at once. KAI before 0.16 frees node after node.
    multi_node_victims: bool = True
    k_value: float = 1
    saturation_multiplier: float = 1
    #: Seconds a broken gang may stay; negative is for ever.
    staleness_grace: float = 0
    #: Jobs looked at per leaf queue, by action; absent is all.
    queue_depth: dict[Action, int] = {}
    min_runtime_method: Literal["lca", "queue"] = "lca"
    preempt_min_runtime: float = 0
    reclaim_min_runtime: float = 0
    #: Skip a job when one with the same signature that is not harder has failed in this action.
    use_signatures: bool = True


class Snapshot(Plain, frozen=True, kw_only=True):
    now: float
    nodes: tuple[SnapshotNode, ...] = ()
    queues: tuple[Queue, ...] = ()
    jobs: tuple[Job, ...] = ()
    topologies: tuple[Topology, ...] = ()
    settings: Settings = Settings()
