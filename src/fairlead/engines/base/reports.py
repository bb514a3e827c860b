"""What engines report of pods, workloads and nodes, and what they say about a pod set before its start.

Made by engines, read by `control`. A report holds what is there now; a later one replaces it.
"""

from enum import StrEnum

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.phase import Phase, PodPhase


class PodState(StrEnum):
    """The state of one attempt of a pod, as its engine observes it."""

    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    #: Its supervisor is gone or the machine was restarted: it ended, and nobody knows how.
    LOST = "Lost"


class PodReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pod_id: str
    workload_id: str
    attempt: int
    state: PodState
    started_at: Millis | None = None
    ended_at: Millis | None = None
    exit_code: int | None = None
    signal: int | None = None
    #: A code (StartError, Uploading, OOMKilled, SupervisorLost, NodeRebooted …) and a message.
    reason: str = ""
    message: str = ""
    #: Of an ended pod: whether its program ended before the pod was told to stop, if it was.
    by_itself: bool = False
    #: Whether its readiness probe passes. A pod without a probe is ready while it runs.
    ready: bool = True
    #: Where its ports are reached from outside: (port of the container, port of this machine).
    ports: tuple[tuple[int, int], ...] = ()


class ClusterPod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that a cluster created and placed, as it is now."""

    id: str
    name: str
    role: str
    group: int = 0
    #: Its index in the group; None if the cluster does not number the pods.
    index: int | None = None
    phase: PodPhase
    #: Empty until it is placed.
    node: str = ""
    node_pool: str = ""
    #: The shared GPUs of which it has a part, by the scheduler's names.
    gpu_groups: tuple[str, ...] = ()
    created_at: Millis = 0
    #: When the scheduler placed it; None if it is not placed.
    placed_at: Millis | None = None
    started_at: Millis | None = None
    ended_at: Millis | None = None
    #: How its container ended, or how it ended before its last restart.
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    ready: bool = False
    #: How often its container was restarted in place, and a description of how it ended before the last restart.
    restarts: int = 0
    last_end: str = ""
    #: The phase as the cluster names it, and the name of the container that runs the workload.
    cluster_phase: str = ""
    container: str = ""
    #: Why it was evicted; empty if it was not. And whether its node was the reason, not another workload.
    eviction: str = ""
    has_lost_node: bool = False


#: The code of a blocker that is being removed: an autoscaler adds a node for the pods.
SCALE_UP = "TriggeredScaleUp"


class SchedulingBlocker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why the cluster's scheduler has not placed a workload in a node pool, or why its pods cannot be created."""

    #: OverLimit, NonPreemptibleOverQuota or another code of the scheduler; or `SCALE_UP`.
    code: str
    message: str
    node_pool: str = ""
    #: The queue whose quota or limit blocks it.
    queue: str = ""
    #: False if the pods cannot even be created.
    can_create_pods: bool = True


class WorkloadReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything of a workload that exists now. A later report replaces it."""

    workload_id: str
    #: The run whose objects exist; 0 for none.
    run: int = 0
    pods: tuple[ClusterPod, ...] = ()
    #: Pods that were evicted and no longer exist: they may have gone before a report had them.
    evicted: tuple[ClusterPod, ...] = ()
    #: Pods that succeeded and failed in this run, by role; and whether the numbers are known.
    succeeded: dict[str, int] = {}
    failed: dict[str, int] = {}
    are_counts_known: bool = True
    #: COMPLETED or FAILED once the cluster reports the end, and its message.
    ended: Phase | None = None
    message: str = ""
    waits: tuple[SchedulingBlocker, ...] = ()
    #: By role, how many pods the cluster wants of sets that it scales itself; None if it scales none.
    replicas_wanted: dict[str, int] | None = None
    #: Why the cluster rejects it for good; a retry would not help.
    refused: str = ""
    #: Why the order could not be carried out yet; the engine retries.
    retrying_because: str = ""
    #: From `DeleteWorkload` to the next `ApplyWorkload`: no object or pod is left except claims; not even those.
    has_no_pods: bool = False
    is_removed: bool = False


class CapacityChanged(msgspec.Struct, frozen=True):
    """The nodes have changed since the last call of `capacity`."""


#: The isolation of a pod that shares everything with its machine.
NO_ISOLATION = "None"


class Review(msgspec.Struct, frozen=True):
    """What an engine says about a pod set before its start, as (path of the field, why)."""

    #: Cannot be provided and must not be ignored: the workload fails before its start.
    refused: tuple[tuple[str, str], ...] = ()
    #: Refused at submission already, because nothing can change that here; also in `refused`.
    forbidden: tuple[tuple[str, str], ...] = ()
    #: Has no or less effect here; the workload says so in a condition.
    advisory: tuple[tuple[str, str], ...] = ()
    #: What isolates the pod from the machine, as (name or `NO_ISOLATION`, message); None to say nothing.
    isolation: tuple[str, str] | None = None
