"""The workload and its pods as they are stored: what was asked, and how far it has come.

`control` alone makes new versions of these records; everybody else reads them.
"""

from typing import Any

import msgspec

from fairlead.model.clock import Millis
from fairlead.model.records.phase import ENDED, TERMINAL, DesiredPhase, Phase, PodPhase
from fairlead.model.records.revision import Revision

#: The condition of a workload that waits for names which its project lacks; False when they are all there.
WAITS_FOR_NAMES = "WaitsForNames"


class Condition(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A lasting statement about a workload, such as a field that is not enforced here."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Millis = 0


class PendingMessage(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Why a node pool did not take a workload; only the two reasons that the contract's enum has."""

    node_pool: str
    #: NonPreemptibleOverQuota or OverLimit.
    reason: str
    message: str
    #: PROJECT or DEPARTMENT: whose quota or limit it is.
    org_type: str = "PROJECT"


class EvictionNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How a workload last lost a pod to another: by whom, under which rule, and what it had."""

    at: Millis
    pod: str
    node: str
    #: preempted, reclaimed, consolidated or stale.
    rule: str
    by_workload: str = ""
    by_workload_id: str = ""
    by_project: str = ""
    #: Since when it ran.
    since: Millis | None = None
    gpus: float = 0.0
    #: How far its project was above its quota of GPUs, and that quota; None for an unlimited one.
    over_quota_gpus: float = 0.0
    quota_gpus: float | None = None
    #: The node on which a place is kept for it, if it was only moved.
    moved_to: str = ""
    message: str = ""


class Tally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was counted of one pod set in the present run."""

    #: Pods that ended well and badly; failures count against the backoff limit.
    succeeded: int = 0
    failed: int = 0
    #: Pods started so far; the next pod's index where indices grow.
    made: int = 0
    #: The indices whose pods ended well, where they are places.
    done: tuple[int, ...] = ()
    #: No replacement starts before this time.
    retry_at: Millis | None = None


NOTHING_YET = Tally()


class GroupTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often a group was made again since it was last well for long, and from when on it may start."""

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
    #: What the user sent, unset members left out, null kept: it goes back as it came.
    spec: msgspec.Raw
    #: The dialect it arrived in (`rest`, `rest-older`, `workload-yaml`, `cli`); shown as its origin.
    dialect: str = "rest"
    #: Of an object of a cluster: what tells each member of its spec, as it was taken, from another.
    applied: dict[str, str] = {}

    priority_class: str = ""
    priority: int = 0
    preemptible: bool = True
    category: str = ""
    #: By which framework its pods find each other; empty where that is not said by its kind.
    framework: str = ""
    node_pools: tuple[str, ...] = ()
    #: How long it may run in all, as its project said when it was submitted; None for ever.
    time_limit: Millis | None = None

    desired_phase: DesiredPhase = DesiredPhase.RUNNING
    phase: Phase = Phase.CREATING
    phase_message: str = ""
    #: NonPreemptibleOverQuota, OverLimit or nothing: the contract's enum.
    phase_reason: str | None = None
    #: Why it waits, as data (`scheduling.Reason` in plain form): the answer to `why`.
    blocked_by: dict[str, Any] | None = None
    pending_messages: tuple[PendingMessage, ...] = ()
    conditions: tuple[Condition, ...] = ()
    #: Names that its project does not have (yet), which only the older dialect may wait for.
    waits_for: tuple[str, ...] = ()
    phase_updated_at: Millis = 0
    updated_at: Millis = 0
    started_at: Millis | None = None
    completed_at: Millis | None = None
    #: When its deletion was asked for; it is gone when nothing of it is left, and purged some days later.
    deleted_at: Millis | None = None
    gone: bool = False
    #: When a finished workload deletes itself.
    delete_at: Millis | None = None
    #: Time spent in the phases that wait and that run, up to `phase_updated_at`.
    pending_time: Millis = 0
    running_time: Millis = 0

    #: Which run this is: 1, and one more with every resume. Pods of earlier runs are history.
    run: int = 1
    #: What was counted in this run, by pod set.
    tallies: dict[str, Tally] = {}
    #: The groups that were made again, by number.
    groups: dict[int, GroupTally] = {}
    #: The revisions that still have pods, in their order; empty for kinds that have none.
    revisions: tuple[Revision, ...] = ()
    #: Failed or lost pods that were replaced, and containers restarted in place, over all runs.
    restarts: int = 0
    #: How often it lost pods to others, and how it did last.
    preemptions: int = 0
    last_eviction: EvictionNote | None = None
    running_pods: int = 0
    allocated_gpu: float = 0.0
    #: What its exposed URLs are called, in the order of its spec (`control/serving/urls.py` reads and writes these).
    urls: tuple[str, ...] = ()

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
        """When the next pod or group may start again that waits for its time."""
        return None if self.is_terminal else min(self.retries, default=None)

    @property
    def retries(self) -> list[Millis]:
        """The times before which something does not start again, past ones included."""
        sets = [tally.retry_at for tally in self.tallies.values()]
        groups = [group.retry_at for group in self.groups.values()]
        return [time for time in (*sets, *groups) if time is not None]

    @property
    def is_terminal(self) -> bool:
        return self.phase in TERMINAL

    @property
    def is_active(self) -> bool:
        """Whether the loop has anything to do with it now: neither finished nor gone."""
        return not self.gone and (self.deleted_at is not None or not self.is_terminal)


class Pod(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod: made when it is given a node, kept until its workload is purged."""

    id: str
    version: int
    workload_id: str
    project_id: str
    name: str
    #: The pod set it belongs to, its group there, and its place in the group.
    role: str
    group: int = 0
    index: int
    #: The workload's run that made it, and the revision that it belongs to.
    run: int
    revision_id: str = ""
    #: How many times its process was started here: one more with every restart in place.
    attempt: int = 1
    phase: PodPhase = PodPhase.STARTING
    node: str = ""
    node_pool: str = ""
    #: Devices on the node, by index, and which part of each is this pod's (1000 = the whole device).
    gpu_devices: tuple[int, ...] = ()
    gpu_groups: tuple[str, ...] = ()
    gpu_thousandths: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    created_at: Millis = 0
    started_at: Millis | None = None
    #: Whether its readiness probe passes now, and since when it did for the first time.
    ready: bool = False
    ready_at: Millis | None = None
    #: Where its ports are reached from outside: (port of the container, port of the machine).
    ports: tuple[tuple[int, int], ...] = ()
    completed_at: Millis | None = None
    #: A code word for how it ended or why it does not start (OOMKilled, StartError, SupervisorLost, Evicted …).
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    restarts: int = 0
    #: On a cluster, its own word for the pod's phase and its name for the container that runs the workload.
    cluster_phase: str = ""
    container: str = ""
    #: Not restarted in place before this time.
    restart_at: Millis | None = None
    #: Set when it was told to end, with the cause (`suspend`, `delete`, `evict`, `surplus`, `group`).
    stopping_for: str = ""
    #: It gets no new requests and ends when it has answered those that it has, at the latest at this time.
    drain_until: Millis | None = None

    @property
    def has_ended(self) -> bool:
        return self.phase in ENDED

    def exists_at(self, at: Millis) -> bool:
        """Whether it held its place at a time."""
        return self.created_at <= at and (self.completed_at is None or at < self.completed_at)


class LaunchRecord(msgspec.Struct, frozen=True):
    """The records of a pod and its workload when the pod was started; its engine keeps them beside the pod.

    After a restore the database may know neither: the engine's copy is then the newest there is.
    """

    workload: Workload
    pod: Pod
