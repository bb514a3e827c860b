"""The seam to whatever runs pods: three verbs, and beside them the sessions that people open into a pod.

An engine acts on orders and reports what it sees. It decides nothing: restarts, retries and phases are `control`'s.
Every order is idempotent by (pod, attempt): a repeated start finds the attempt there, a repeated stop finds it gone.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.pods.urls import UrlRoute
from fairlead.model.records.organization import Department, Node, NodePool, Project
from fairlead.model.records.phase import Phase, PodPhase


class Start(msgspec.Struct, frozen=True):
    pod: PodSpec


class Stop(msgspec.Struct, frozen=True):
    """TERM to the main process, after the grace KILL to everything that is left; 0 kills at once."""

    pod_id: str
    attempt: int
    grace_seconds: int


class Refresh(msgspec.Struct, frozen=True):
    """A config map or secret that a running pod mounts has changed: its files follow, without a restart."""

    pod: PodSpec


class Forget(msgspec.Struct, frozen=True):
    """The pod has ended and its state is recorded: drop everything of it except its logs, or those too."""

    pod_id: str
    logs_too: bool = False


class DropClaims(msgspec.Struct, frozen=True):
    """Remove the storage behind claims that are gone: these, and the ephemeral ones of a workload without pods."""

    claim_ids: tuple[str, ...] = ()
    workload_id: str = ""


class RetainClaims(msgspec.Struct, frozen=True):
    """After a start: these are all claims and workloads there are; storage that others of them left behind goes."""

    claim_ids: frozenset[str]
    workload_ids: frozenset[str]


class DesiredWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A whole workload, for an engine whose cluster makes and places its pods."""

    workload_id: str
    name: str
    project: str
    namespace: str
    #: Which run of the workload this is; what is there of earlier ones goes first.
    run: int
    podsets: tuple[PodSet, ...]
    priority_class: str
    is_preemptible: bool
    created_by: str = ""
    node_pools: tuple[str, ...] = ()
    #: Those of them that do not exist, or no longer.
    missing_pools: tuple[str, ...] = ()
    #: Variables that say who it is (`RUNAI_JOB_NAME` …), set after the user's own.
    identity: dict[str, str] = {}
    #: Where it is reached from outside, in the order in which its pod sets expose ports.
    urls: tuple[UrlRoute, ...] = ()

    @property
    def tried_pools(self) -> tuple[str, ...]:
        """The pools that it can wait in; where none exists, it waits for those that it names."""
        return tuple(name for name in self.node_pools if name not in self.missing_pools) or self.node_pools


class ApplyWorkload(msgspec.Struct, frozen=True):
    """Have a workload run as it is described now; given again with a change, what is there follows."""

    workload: DesiredWorkload


class DeleteWorkload(msgspec.Struct, frozen=True):
    """Remove a workload's objects and pods: all of them, or all but the claims that outlive a suspension."""

    workload_id: str
    namespace: str
    keeps_claims: bool = False


class SyncOrganization(msgspec.Struct, frozen=True):
    """All departments, projects and node pools that there are; what others of ours are left in the cluster goes."""

    departments: tuple[Department, ...]
    projects: tuple[Project, ...]
    node_pools: tuple[NodePool, ...]


class RetainWorkloads(msgspec.Struct, frozen=True):
    """After a start: these are all workloads there are; what others of ours left in the cluster goes."""

    workload_ids: frozenset[str]


Order = (
    Start
    | Stop
    | Refresh
    | Forget
    | DropClaims
    | RetainClaims
    | ApplyWorkload
    | DeleteWorkload
    | SyncOrganization
    | RetainWorkloads
)


class PodState(StrEnum):
    """What an engine sees of one attempt of a pod."""

    STARTING = "Starting"
    RUNNING = "Running"
    EXITED = "Exited"
    #: Whoever watched over it is gone, or the machine was restarted: it ended, and how is not known.
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
    #: A code word (StartError, OOMKilled, SupervisorLost, NodeRebooted …) and the words of whoever knows.
    reason: str = ""
    message: str = ""
    #: Whether its readiness probe passes; pods without a probe are ready when they run.
    ready: bool = True
    #: Where its ports are reached from outside: (port of the container, port of this machine).
    ports: tuple[tuple[int, int], ...] = ()


class ClusterPod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that a cluster made and placed, as it is now."""

    id: str
    name: str
    role: str
    group: int = 0
    #: Its place in the group; None where the cluster counts none.
    index: int | None = None
    phase: PodPhase
    #: Empty until it is placed.
    node: str = ""
    node_pool: str = ""
    #: The shared GPUs that it has a part of, by the scheduler's names for them.
    gpu_groups: tuple[str, ...] = ()
    created_at: Millis = 0
    started_at: Millis | None = None
    ended_at: Millis | None = None
    #: How its container ended, or how it ended last before it was started again.
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    ready: bool = False
    #: How often its container was started again in place, and how it ended before the last time, in words.
    restarts: int = 0
    last_end: str = ""
    #: The cluster's own word for its phase, and its name for the container that runs the workload.
    cluster_phase: str = ""
    container: str = ""
    #: Why it lost its place to others; empty unless it did.
    eviction: str = ""


class SchedulingBlocker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why the cluster's scheduler has not placed a workload in a node pool, or why there is nothing to place."""

    #: OverLimit, NonPreemptibleOverQuota or another word of the scheduler's.
    code: str
    message: str
    node_pool: str = ""
    #: Whose quota or limit it is, by the name of the queue.
    queue: str = ""
    #: False where pods cannot even be made, so that nobody could place them.
    can_create_pods: bool = True


class WorkloadReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is there of a workload now. A later report says everything again."""

    workload_id: str
    #: The run whose objects are there; 0 for none.
    run: int = 0
    pods: tuple[ClusterPod, ...] = ()
    #: Pods that ended well and badly in this run, by role; and whether that is known.
    succeeded: dict[str, int] = {}
    failed: dict[str, int] = {}
    are_counts_known: bool = True
    #: COMPLETED or FAILED once the cluster says that it is over, and its words.
    ended: Phase | None = None
    message: str = ""
    waits: tuple[SchedulingBlocker, ...] = ()
    #: How many pods the cluster wants of sets whose number it decides on itself, by role; None where it does not.
    replicas_wanted: dict[str, int] | None = None
    #: Why the cluster does not take it; trying again would not help.
    refused: str = ""
    #: What keeps the order from being carried out at the moment; it is tried again.
    retrying_because: str = ""
    #: After a `Remove` and until the next `Run`: no object or pod is left, perhaps claims; not even a claim is.
    has_no_pods: bool = False
    is_removed: bool = False


class CapacityChanged(msgspec.Struct, frozen=True):
    """The nodes are others than at the last call of `capacity`."""


Report = PodReport | WorkloadReport | CapacityChanged


class AppliedObject(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that somebody applied to the cluster as an object; its workload has the object's id."""

    id: str
    namespace: str
    name: str
    #: The object without its status, as JSON, which is YAML too.
    text: bytes
    #: Counts the changes of its spec.
    generation: int
    #: Whether it waits to be removed, and whether it waits for us.
    is_leaving: bool = False
    is_held: bool = False
    #: What we wrote last.
    status: dict[str, Any] = {}


class AppliedObjects(Protocol):
    """Workloads as objects of the cluster: who applied what, and what became of it."""

    def listen(self, notify: Callable[[], None]) -> None:
        """From now on call `notify` when there is something new to take."""
        ...

    def take_applied(self) -> set[str]:
        """The ids of objects that changed since the last call; on the first call, all that are there."""
        ...

    def applied(self, id: str) -> AppliedObject | None: ...

    def has_synced(self, kind: str) -> bool:
        """Whether all objects of this kind (`Kind.resource`) are seen, so that one that is not there is gone."""
        ...

    async def belongs_to_other_installation(self, applied: AppliedObject) -> bool:
        """Whether it lies in a namespace of another Fairlead, whose it then is."""
        ...

    async def hold_applied(self, applied: AppliedObject) -> None:
        """Keep it from going before we let it."""
        ...

    async def release_applied(self, applied: AppliedObject) -> None: ...

    async def delete_applied(self, applied: AppliedObject) -> None: ...

    async def change_active(self, applied: AppliedObject, *, is_active: bool) -> int:
        """Write whether it is to run; the object's generation afterwards."""
        ...

    async def change_owned(self, applied: AppliedObject, owned: dict[str, str]) -> int:
        """Write members of its spec that are the system's alone; the object's generation afterwards."""
        ...

    async def record_status(self, applied: AppliedObject, status: dict[str, Any]) -> None: ...


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    pod_id: str
    #: Which attempt; None for the latest.
    attempt: int | None = None
    follow: bool = False
    #: The last so many lines; None for all that is kept.
    tail: int | None = None
    since: Millis | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run beside a pod's own, in its namespaces and as its user."""

    pod_id: str
    command: tuple[str, ...]
    tty: bool = False
    stdin: bool = False
    columns: int = 80
    rows: int = 24


#: Where a pod sees its machine as it is.
NO_ISOLATION = "None"


class Review(msgspec.Struct, frozen=True):
    """What an engine says of a pod before it is started, as (path of the field, why)."""

    #: It cannot be provided and may not be ignored: the workload fails before its start.
    refused: tuple[tuple[str, str], ...] = ()
    #: It has no or less effect here; the workload says so in a condition.
    advisory: tuple[tuple[str, str], ...] = ()
    #: What keeps the pod apart from the machine, as (its name, or `NO_ISOLATION`; words); None where it goes unsaid.
    isolation: tuple[str, str] | None = None


class Engine(Protocol):
    """Runs pods. Made with a function to call (from the event loop) whenever there is something new to observe."""

    async def start(self, notify: Callable[[], None]) -> None:
        """Find again whatever still runs from before; from now on call `notify` when something changes."""
        ...

    async def capacity(self) -> Sequence[Node]:
        """The nodes and what each can give."""
        ...

    async def observe(self) -> Sequence[Report]:
        """Every pod or workload that changed since the last call; on the first call, every one that is known."""
        ...

    async def apply(self, orders: Sequence[Order]) -> None:
        """Set the orders going. What comes of them is observed, a failure to start included."""
        ...

    async def close(self) -> None:
        """Let go; pods run on."""
        ...


class Session(Protocol):
    """A running command and whoever looks at it. Closing it hangs up on a command that was run for it."""

    async def read(self) -> tuple[str, bytes]:
        """The next piece: (`output` or `error`, bytes), and at last (`exit`, the code or nothing)."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def close(self) -> None: ...


class Sessions(Protocol):
    """What people open into a pod."""

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        """The output of a pod, while it runs and as long as it is kept afterwards."""
        ...

    async def exec(self, request: ExecRequest) -> Session:
        """Run a command beside the pod's own."""
        ...

    async def attach(self, pod_id: str) -> Session:
        """The pod's own input and its output from now on."""
        ...

    async def dial(self, pod_id: str, port: int) -> int:
        """A connection to a port on which the pod listens, in its own network: a socket's open file, the caller's."""
        ...


class WholeEngine(Engine, Sessions, Protocol):
    """What a server has: the verbs, the sessions, and what is asked of pods before their start and after their end."""

    def review(self, podset: PodSet) -> Review: ...

    async def expire_logs(self, before: Millis) -> int:
        """Remove the output of pods that nobody knows any more and that wrote nothing since then; of how many."""
        ...
