"""What `decide` returns: instructions and reasons, as data.

Nothing here acts. `messages.py` makes a sentence of a `Reason`; numbers are in the units of the snapshot (GPUs as
devices, CPU in thousandths of a core, memory in bytes).
"""

from __future__ import annotations

from typing import Literal

from fairlead.scheduling.model.snapshot import Action, Plain

ReasonCode = Literal[
    "OverLimit",
    "NonPreemptibleOverQuota",
    "NeverFits",
    "NoNodeFits",
    "GangIncomplete",
    "Gated",
    "NotReady",
    "Topology",
    "Fragmented",
    "WaitsForVictims",
    "PreemptionDelayNotElapsed",
    "QueueDoesNotExist",
    "QueueIsNotALeaf",
    "NoSuchNodePool",
    "QueueDepth",
    "NextCycle",
    "Failed",
]


class NodeCause(Plain, frozen=True, kw_only=True):
    """Why nodes refuse a task: `nodes` of them for this cause, and the one that came nearest."""

    #: cpu, memory, gpu, pods, an extended resource, or nodeSelector, nodeAffinity, taint, notReady, cordoned,
    #: podAffinity, podAntiAffinity, mig, gpuMemoryUnknown, limit, quota, topology.
    cause: str
    nodes: int
    #: No node of this cause could ever take it: what is asked exceeds what the whole node has.
    never: bool = False
    asked: float | None = None
    #: Free (idle and being released) on the node with most of it.
    free: float | None = None
    best_node: str | None = None
    #: What the largest of these nodes has at all, free or not.
    largest: float | None = None
    largest_node: str | None = None


class Reason(Plain, frozen=True, kw_only=True):
    """Why a job does not start."""

    code: ReasonCode
    #: Which resource, for limits and quotas: gpu, cpu or memory.
    resource: str | None = None
    queue: str | None = None
    #: The name of that queue in the snapshot; `queue` is the one to show.
    queue_id: str | None = None
    requested: float | None = None
    quota: float | None = None
    limit: float | None = None
    used: float | None = None
    #: The task that found no node, and how many were placed before it.
    task: str | None = None
    placed: int | None = None
    required: int | None = None
    nodes: int | None = None
    causes: tuple[NodeCause, ...] = ()
    waits_for: tuple[str, ...] = ()
    until: float | None = None
    detail: str | None = None

    @property
    def is_lasting(self) -> bool:
        """Whether only other nodes, another quota or limit, or another request would remove it."""
        bound = {"OverLimit": self.limit, "NonPreemptibleOverQuota": self.quota}.get(self.code)
        return self.code == "NeverFits" or (bound is not None and bound >= 0 and (self.requested or 0) > bound)


class PoolReason(Plain, frozen=True, kw_only=True):
    node_pool: str
    reason: Reason


class Pending(Plain, frozen=True, kw_only=True):
    """A job with tasks that did not get a place: one reason per node pool tried.

    The last one is told first, of those that may pass.
    """

    job: str
    tasks: tuple[str, ...]
    reason: Reason
    pools: tuple[PoolReason, ...] = ()


class Bind(Plain, frozen=True, kw_only=True):
    task: str
    job: str
    node: str
    node_pool: str
    #: One id per shared device; empty for whole GPUs.
    gpu_groups: tuple[str, ...] = ()
    #: Device indices; aligned with `gpu_groups` for shared GPUs.
    devices: tuple[int, ...] = ()
    action: Action = "allocate"


class Pipelined(Plain, frozen=True, kw_only=True):
    """A place that is kept for a task until what is leaving has left; it is decided anew in the next cycle."""

    task: str
    job: str
    node: str
    node_pool: str
    gpu_groups: tuple[str, ...] = ()
    action: Action = "allocate"
    #: Tasks on that node that are leaving.
    waits_for: tuple[str, ...] = ()


class QueueFigures(Plain, frozen=True, kw_only=True):
    """A queue at the moment of an eviction."""

    name: str
    priority: int
    allocated: tuple[float, float, float]
    quota: tuple[float, float, float]
    fair_share: tuple[float, float, float]


class Eviction(Plain, frozen=True, kw_only=True):
    task: str
    job: str
    node: str
    action: Action
    #: The job that benefits; None for a broken gang.
    by_job: str | None
    #: preempted, reclaimed, consolidated or stale.
    rule: str
    message: str
    #: The node it is kept a place on, if it was moved rather than ended.
    moved_to: str | None = None
    #: It had only just been bound in this same cycle: it does not run yet.
    never_started: bool = False
    since: float | None = None
    victim_queue: QueueFigures | None = None
    winner_queue: QueueFigures | None = None
    #: How far the victim's queue was above its quota, per GPU, CPU, memory; 0 where it was not.
    over_quota: tuple[float, float, float] = (0, 0, 0)


class FairShare(Plain, frozen=True, kw_only=True):
    """Per queue and pool: GPU, CPU, memory."""

    queue: str
    node_pool: str
    fair_share: tuple[float, float, float]
    requested: tuple[float, float, float]
    allocated: tuple[float, float, float]
    allocated_non_preemptible: tuple[float, float, float]


class StaleMark(Plain, frozen=True, kw_only=True):
    """Since when a job is a broken gang; None clears it."""

    job: str
    since: float | None


class LastStart(Plain, frozen=True, kw_only=True):
    job: str
    at: float


class Notice(Plain, frozen=True, kw_only=True):
    code: str
    subject: str
    message: str


class Failure(Plain, frozen=True, kw_only=True):
    """A job that could not be decided on because of an error; all others were."""

    job: str
    action: str
    error: str


class TaskState(Plain, frozen=True, kw_only=True):
    """Where a task stands after the cycle, for tasks whose state changed."""

    task: str
    status: str
    node: str | None = None


class Decisions(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """Every member is written, empty or not."""

    binds: tuple[Bind, ...] = ()
    #: Places that are promised in `pipelined` and wait for no pod that has started: they can be bound at once.
    early_binds: tuple[Bind, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pipelined: tuple[Pipelined, ...] = ()
    pending: tuple[Pending, ...] = ()
    states: tuple[TaskState, ...] = ()
    fair_shares: tuple[FairShare, ...] = ()
    stale: tuple[StaleMark, ...] = ()
    last_starts: tuple[LastStart, ...] = ()
    notices: tuple[Notice, ...] = ()
    failures: tuple[Failure, ...] = ()
    #: When the result may change though nothing but time passes; None: not by time alone.
    next_change_at: float | None = None

    @property
    def starts(self) -> tuple[Bind, ...]:
        """All tasks that start now. Whoever carries the decisions out uses this."""
        return (*self.binds, *self.early_binds) if self.early_binds else self.binds
