"""The workload and its pods as they are stored: the desired state and the observed state.

Only `control` writes new versions of these records.
"""

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.dialect import Dialect
from fairlead.model.records.named_message import NamedMessage, VisibleProjects, choose_message
from fairlead.model.records.phase import ENDED, TERMINAL, DesiredPhase, Phase, PodPhase
from fairlead.model.records.revision import Revision

#: The condition of a workload that waits for objects which its project lacks; False when all of them exist.
WAITS_FOR_NAMES = "WaitsForNames"


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A lasting statement about a workload, such as a field that is not enforced here."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Millis = 0


#: The two reasons of a pending workload for which the REST contract has an enum value.
PENDING_REASONS = frozenset({"OverLimit", "NonPreemptibleOverQuota"})


class PendingMessage(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Why a node pool did not accept a workload; only the two reasons of the contract's enum."""

    node_pool: str
    #: NonPreemptibleOverQuota or OverLimit.
    reason: str
    message: str
    #: PROJECT or DEPARTMENT: whose quota or limit it is.
    org_type: str = "PROJECT"


class EvictionNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a workload last lost a pod: to which other one, under which rule, and what it held."""

    at: Millis
    #: The run of the workload that it ended.
    run: int = 1
    pod: str
    node: str
    #: preempted, reclaimed, consolidated, stale or drained.
    rule: str
    by_workload: str = ""
    by_workload_id: str = ""
    by_project: str = ""
    by_project_id: str = ""
    #: Since when it ran.
    since: Millis | None = None
    gpus: float = 0.0
    #: How far its project was above its quota of GPUs, and that quota; None for an unlimited one.
    over_quota_gpus: float = 0.0
    quota_gpus: float | None = None
    #: The node on which a place is kept for it, if it was only moved.
    moved_to: str = ""
    message: str = ""
    #: The message with the name of the other workload, if that belongs to another project.
    named: NamedMessage | None = None

    def message_for(self, visible: VisibleProjects) -> str:
        return choose_message(self.message, self.named, visible)


class Tally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The counts of one pod set in the current run."""

    #: Pods that succeeded and failed; failures count against the backoff limit.
    succeeded: int = 0
    failed: int = 0
    #: Pods started so far; the index of the next pod if indices grow.
    made: int = 0
    #: The indices whose pods succeeded, if indices are fixed or an array; those below `done_below` are not listed.
    done: tuple[int, ...] = ()
    done_below: int = 0
    #: No replacement starts before this time.
    retry_at: Millis | None = None


NOTHING_YET = Tally()


class GroupTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often a group was recreated since its last long healthy period, and when it may start again."""

    recreated: int = 0
    retry_at: Millis | None = None


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One workload of any kind."""

    id: str
    version: int
    #: The key of its kind in `kinds.KINDS`.
    kind: str
    name: str
    requested_name: str
    project_id: str
    project_name: str
    department_id: str
    department_name: str
    cluster_id: str
    created_by: str
    created_at: Millis
    #: The spec as the user sent it, without unset members, with nulls.
    spec: msgspec.Raw
    #: The dialect in which it was submitted; shown as its origin.
    dialect: Dialect = Dialect.REST
    #: The Kubernetes manifest that it was read from, as JSON; empty if it was submitted in another way.
    manifest: str = ""
    #: The specs of the pod templates besides the first, with what policies add, if its manifest itself is applied.
    other_specs: tuple[msgspec.Raw, ...] = ()
    #: The account of the machine as which its pods run; empty for the server's choice.
    machine_user: str = ""
    #: The id of its caller's environment, which its pods take over; empty for none.
    caller_environment: str = ""
    #: If it has a custom resource: the digest of each member of the object's accepted spec.
    applied: dict[str, str] = {}
    #: Members of that spec that an update has changed and that are still to be written to the object.
    resource_changes: tuple[str, ...] = ()

    priority_class: str = ""
    priority: int = 0
    preemptible: bool = True
    category: str = ""
    #: The framework by which its pods find each other; empty for kinds without one.
    framework: str = ""
    node_pools: tuple[str, ...] = ()
    #: The node types that its project allowed when it was submitted; empty for any.
    node_types: tuple[str, ...] = ()
    #: The total run time that its project allowed when it was submitted; None for no limit.
    time_limit: Millis | None = None
    #: How long its GPUs may be idle before it is stopped; None for no limit, or if that is not measured.
    idle_limit: Millis | None = None

    desired_phase: DesiredPhase = DesiredPhase.RUNNING
    phase: Phase = Phase.CREATING
    phase_message: str = ""
    #: NonPreemptibleOverQuota, OverLimit or nothing: the contract's enum.
    phase_reason: str | None = None
    #: Why it is pending, as data (`scheduling.Reason` in plain form): the answer to `why`.
    blocked_by: dict[str, object] | None = None
    pending_messages: tuple[PendingMessage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    #: Workloads that must end before it starts, and names that do not exist in its project yet; only workloads in the
    #: older dialect may wait for those. `control/decide/dependencies.py` reads and writes the former.
    waits_for: tuple[str, ...] = ()
    phase_updated_at: Millis = 0
    updated_at: Millis = 0
    started_at: Millis | None = None
    completed_at: Millis | None = None
    #: When its deletion was requested; it is gone when nothing of it is left, and purged some days later.
    deleted_at: Millis | None = None
    gone: bool = False
    #: When a finished workload is deleted automatically.
    delete_at: Millis | None = None
    #: Time spent in pending and in running phases, up to `phase_updated_at`.
    pending_time: Millis = 0
    running_time: Millis = 0

    #: The number of its run: 1, and one more with every resume. Pods of earlier runs are history.
    run: int = 1
    #: The counts of this run, by pod set.
    tallies: dict[str, Tally] = {}
    #: The groups that were recreated, by number.
    groups: dict[int, GroupTally] = {}
    #: The revisions that still have pods, in order; empty for kinds without revisions.
    revisions: tuple[Revision, ...] = ()
    #: Failed or lost pods that were replaced, and containers restarted in place, over all runs.
    restarts: int = 0
    #: How often it lost pods to other workloads, and the last such loss.
    preemptions: int = 0
    last_eviction: EvictionNote | None = None
    running_pods: int = 0
    allocated_gpu: float = 0.0
    #: Its exposed URLs in the order of its spec (`control/serving/urls.py` reads and writes these).
    urls: tuple[str, ...] = ()

    def phase_message_for(self, visible: VisibleProjects) -> str:
        """The phase message as a reader may see it: only that of an eviction may name another project's workload."""
        last = self.last_eviction
        if last is not None and last.message == self.phase_message:
            return last.message_for(visible)
        return self.phase_message

    def tally(self, role: str) -> Tally:
        return self.tallies.get(role, NOTHING_YET)

    @property
    def succeeded(self) -> int:
        return sum(tally.succeeded for tally in self.tallies.values())

    @property
    def failed(self) -> int:
        return sum(tally.failed for tally in self.tallies.values())

    @property
    def retry_at(self) -> Millis | None:
        """The next time at which a pod or group in backoff may start again."""
        return None if self.is_terminal else min(self.retries, default=None)

    @property
    def retries(self) -> list[Millis]:
        """The times at which backoffs end, past ones included."""
        sets = [tally.retry_at for tally in self.tallies.values()]
        groups = [group.retry_at for group in self.groups.values()]
        return [time for time in (*sets, *groups) if time is not None]

    @property
    def is_terminal(self) -> bool:
        return self.phase in TERMINAL

    @property
    def is_active(self) -> bool:
        """Whether the loop still has to reconcile it: it is neither finished nor gone."""
        return not self.gone and (self.deleted_at is not None or not self.is_terminal)

    @property
    def is_listed(self) -> bool:
        """Whether lists show it: until its deletion is complete, because its pods may run until then."""
        return self.deleted_at is None or not self.gone


class Pod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod: created when it gets a node, kept until its workload is purged."""

    id: str
    version: int
    workload_id: str
    project_id: str
    name: str
    #: Its pod set, its group there, and its index in the group.
    role: str
    group: int = 0
    index: int
    #: Its place among the completions of its set; a replacement has its predecessor's. None if there is only one.
    array_index: int | None = None
    #: The run of the workload that created it, and its revision.
    run: int
    revision_id: str = ""
    #: How often its process was started: one more with every restart in place.
    attempt: int = 1
    phase: PodPhase = PodPhase.STARTING
    node: str = ""
    node_pool: str = ""
    #: Its devices on the node, by index, and its share of each (1000 = the whole device).
    gpu_devices: tuple[int, ...] = ()
    gpu_groups: tuple[str, ...] = ()
    gpu_thousandths: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    created_at: Millis = 0
    started_at: Millis | None = None
    #: Whether its readiness probe passes now, and when it passed for the first time.
    ready: bool = False
    ready_at: Millis | None = None
    #: Where its ports are reached from outside: (port of the container, port of the machine).
    ports: tuple[tuple[int, int], ...] = ()
    completed_at: Millis | None = None
    #: The reason why it ended or does not start (OOMKilled, StartError, SupervisorLost, Evicted …).
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    #: On a cluster: the cluster's phase of the pod, and the name of its main container.
    cluster_phase: str = ""
    container: str = ""
    #: Not restarted in place before this time.
    restart_at: Millis | None = None
    #: Set when it is being stopped: the cause (`suspend`, `delete`, `evict`, `surplus`, `group`).
    stopping_for: str = ""
    #: It has ended and a newer pod has its name; lists show it among the deleted ones.
    is_replaced: bool = False
    #: Draining: it gets no new requests and stops when it has answered its open ones, at the latest at this time.
    drain_until: Millis | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED

    def exists_at(self, at: Millis) -> bool:
        """Whether it held its resources at that time."""
        return self.created_at <= at and (self.completed_at is None or at < self.completed_at)


class LaunchRecord(msgspec.Struct, frozen=True):
    """The records of a pod and its workload when the pod was started; its engine keeps them beside the pod.

    After a restore the database may know neither: the engine's copy is then the newest there is.
    """

    workload: Workload
    pod: Pod
