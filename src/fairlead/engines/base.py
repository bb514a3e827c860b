"""The seams to whatever runs pods. An engine acts on orders and reports what it observes; `control` decides.

There are two kinds of engine. A `PodEngine` starts and stops single pods, which our scheduler placed. A
`WorkloadEngine` takes whole workloads, and its cluster creates and places their pods. Each takes only its own orders.
Beside them stand `Sessions` (what people open into a pod), `LogStore` and `CustomResources`; an engine has those that
it can provide.

Every order is idempotent: a repeated start finds the attempt there, a repeated stop finds it gone.
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.custom_resource import CustomResource, NewResource
from fairlead.model.pods.origin import PodOrigin
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.pods.urls import UrlRoute
from fairlead.model.records.organization import Department, Node, NodePool, Project
from fairlead.model.records.phase import Phase, PodPhase


class Start(msgspec.Struct, frozen=True):
    """Run one attempt of a pod on the node that its spec names."""

    pod: PodSpec
    #: An encoded `LaunchRecord`, which the engine keeps for as long as it knows the attempt.
    record: bytes = b""


class Stop(msgspec.Struct, frozen=True):
    """Send TERM to the main process and, after the grace period, KILL to what is left. A grace of 0 kills at once."""

    pod_id: str
    attempt: int
    grace_seconds: int


class Refresh(msgspec.Struct, frozen=True):
    """Update the mounted config maps and secrets of a running pod, without a restart."""

    pod: PodSpec


class Forget(msgspec.Struct, frozen=True):
    """Remove everything of an ended pod except its logs; its end is recorded."""

    pod_id: str


class DropEphemeralClaims(msgspec.Struct, frozen=True):
    """Remove the storage behind the ephemeral claims of a workload that has no pods."""

    workload_id: str


#: What a `PodEngine` is told to do.
PodOrder = Start | Stop | Refresh | Forget | DropEphemeralClaims


class DesiredWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A whole workload as it should run, for an engine whose cluster creates and places the pods."""

    workload_id: str
    name: str
    project: str
    namespace: str
    #: The number of the run; objects of earlier runs are deleted first.
    run: int
    podsets: tuple[PodSet, ...]
    #: The object to apply, as JSON; one pod set for each of its pod templates. Empty: the pod sets decide.
    manifest: bytes = b""
    priority_class: str
    is_preemptible: bool
    created_by: str = ""
    node_pools: tuple[str, ...] = ()
    #: Those of them that do not exist.
    missing_pools: tuple[str, ...] = ()
    #: The node types on which its pods may run, unless they name one; empty for any.
    node_types: tuple[str, ...] = ()
    #: Variables that identify it (`RUNAI_JOB_NAME` …), set after the user's own.
    identity: dict[str, str] = {}
    #: Its URLs, in the order in which its pod sets expose ports.
    urls: tuple[UrlRoute, ...] = ()

    @property
    def tried_pools(self) -> tuple[str, ...]:
        """The pools in which it can wait: those that exist or, if none does, all that it names."""
        return tuple(name for name in self.node_pools if name not in self.missing_pools) or self.node_pools


class ApplyWorkload(msgspec.Struct, frozen=True):
    """Run a workload as described. Given again with a change, the existing objects are updated."""

    workload: DesiredWorkload


class DeleteWorkload(msgspec.Struct, frozen=True):
    """Delete a workload's objects and pods: all, or all except the claims that outlive a suspension."""

    workload_id: str
    namespace: str
    keeps_claims: bool = False
    #: The manifest that was applied; empty if there was none.
    manifest: bytes = b""


class MaintainNode(msgspec.Struct, frozen=True):
    """Cordon or uncordon a node, or leave that as it is; evict our pods from it until the next order for it."""

    name: str
    cordon: bool | None = None
    evicts: bool = False


#: What a `WorkloadEngine` is told to do.
WorkloadOrder = ApplyWorkload | DeleteWorkload | MaintainNode


class DesiredOrganization(msgspec.Struct, frozen=True):
    """All departments, projects and node pools. Others that Fairlead created in the cluster are deleted."""

    departments: tuple[Department, ...]
    projects: tuple[Project, ...]
    node_pools: tuple[NodePool, ...]


class Retained(msgspec.Struct, frozen=True):
    """The claims and workloads that still exist when a server starts."""

    claim_ids: frozenset[str]
    workload_ids: frozenset[str]


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


class CustomResourceReader(Protocol):
    """The custom resources of workloads, as the cluster has them."""

    def listen(self, notify: Callable[[], None]) -> None:
        """Call `notify` from now on whenever `take_changed` has something new."""
        ...

    def take_changed(self) -> set[str]:
        """The ids of objects that changed since the last call; on the first call, of all objects."""
        ...

    def get(self, id: str) -> CustomResource | None: ...

    def has_synced(self, kind: str) -> bool:
        """Whether all objects of this kind (`Kind.resource`) are known, so that an unknown one does not exist."""
        ...

    def is_installed(self, kind: str) -> bool:
        """Whether the cluster has this kind (`Kind.resource`), so that objects of it can be created."""
        ...

    def find_other_installation(self, namespace: str) -> str:
        """The id of the other Fairlead installation to which a namespace belongs; empty if it belongs to none."""
        ...


class CustomResourceWriter(Protocol):
    """The custom resources of workloads: what is written back."""

    async def create(self, wanted: NewResource) -> bool:
        """Create it, held by our finalizer; False if another object has that name. Raises Refused."""
        ...

    async def hold(self, resource: CustomResource) -> None:
        """Add our finalizer, so that the object stays until `release`."""
        ...

    async def release(self, resource: CustomResource) -> None: ...

    async def delete(self, resource: CustomResource) -> None: ...

    async def patch_spec(self, resource: CustomResource, members: Mapping[str, object]) -> int:
        """Replace members of its spec, remove those that are None; returns its new generation, 0 if it is gone."""
        ...

    async def set_status(self, resource: CustomResource, status: Mapping[str, object]) -> None: ...

    async def add_event(self, resource: CustomResource, type: str, reason: str, message: str) -> None:
        """Add an event to it, for `kubectl describe`; one that cannot be written is dropped."""
        ...


class CustomResources(CustomResourceReader, CustomResourceWriter, Protocol):
    """Both halves, as the sync of custom resources needs them."""


class LogRequest(msgspec.Struct, frozen=True, kw_only=True):
    pod_id: str
    origin: PodOrigin | None = None
    #: Which attempt; None for the latest.
    attempt: int | None = None
    follow: bool = False
    #: The number of last lines; None for all that are kept.
    tail: int | None = None
    since: Millis | None = None
    timestamps: bool = False
    limit_bytes: int | None = None


class ExecRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run beside a pod's main process, in its namespaces and as its user."""

    pod_id: str
    command: tuple[str, ...]
    tty: bool = False
    stdin: bool = False
    columns: int = 80
    rows: int = 24


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


class Engine(Protocol):
    """What every engine can do."""

    async def start(self, notify: Callable[[], None]) -> None:
        """Find everything that still runs; call `notify` from now on (on the event loop) when something changes."""
        ...

    async def capacity(self) -> Sequence[Node]:
        """The nodes and what each can give."""
        ...

    def review(self, podset: PodSet) -> Review:
        """What the engine refuses or ignores of a pod set, asked before its start."""
        ...

    async def retain(self, retained: Retained) -> None:
        """Remove what claims and workloads other than these left behind, or report it. Called once after a start.

        A cluster keeps and reports it: a custom resource may be the only record of a workload that runs.
        """
        ...

    async def drop_claims(self, claim_ids: Collection[str]) -> None:
        """Remove the storage behind deleted claims."""
        ...

    async def close(self) -> None:
        """Let go; pods run on."""
        ...


class PodEngine(Engine, Protocol):
    """Runs single pods on the nodes that our scheduler chose."""

    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        """Every pod that changed since the last call; on the first call, every known pod."""
        ...

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        """Begin to carry out the orders. Their effect is observed later, a failed start included."""
        ...

    def load_record(self, pod_id: str, attempt: int) -> bytes:
        """The record that the attempt was started with; empty if there is none."""
        ...


class WorkloadEngine(Engine, Protocol):
    """Runs whole workloads on a cluster that creates and places their pods."""

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        """Every workload that changed since the last call; on the first call, every known workload."""
        ...

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        """Begin to carry out the orders. Their effect is observed later."""
        ...

    async def sync_organization(self, organization: DesiredOrganization) -> None:
        """Bring namespaces, queues, priority classes and node labels in line with the organization."""
        ...


class Session(Protocol):
    """A terminal or pipe to a process in a pod. Closing it ends a command that was started for it."""

    async def read(self) -> tuple[str, bytes]:
        """The next piece: (`output` or `error`, bytes), and last (`exit`, the exit code or nothing)."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close_input(self) -> None:
        """This session sends no more; the pod's own input stays open for others."""
        ...

    def finish_input(self) -> None:
        """Nobody sends more: the pod's own input ends too."""
        ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def close(self) -> None: ...


class Sessions(Protocol):
    """What people open into a pod."""

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        """The output of a pod, while it runs and as long as it is kept afterwards."""
        ...

    async def exec(self, request: ExecRequest) -> Session:
        """Run a command beside the pod's main process."""
        ...

    async def attach(self, pod_id: str, *, from_start: bool = False) -> Session:
        """Attach to the pod's main process: its input, and its output from now on, or from the start if it is kept."""
        ...

    async def dial(self, pod_id: str, port: int) -> int:
        """Connect to a port on which the pod listens, in its own network; returns a socket's file descriptor."""
        ...


class LogStore(Protocol):
    """Keeps the output of ended pods."""

    async def drop_logs(self, pod_ids: Collection[str]) -> None:
        """Remove the output of these pods, and everything else of them."""
        ...

    async def expire_logs(self, before: Millis) -> int:
        """Remove the output of forgotten pods that have written nothing since then; returns the number of pods."""
        ...
