"""What engines are told to do. `control` decides it; each kind of engine takes only its own orders.

Every order is idempotent: a repeated start finds the attempt there, a repeated stop finds it gone.
"""

import msgspec

from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.pods.urls import UrlRoute
from fairlead.model.records.organization import Department, NodePool, Project


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


class DropClaims(msgspec.Struct, frozen=True):
    """Remove the storage behind deleted claims."""

    claim_ids: frozenset[str]


class Retain(msgspec.Struct, frozen=True):
    """Remove what claims and workloads other than these left behind, or report it. Given once after a start.

    A cluster keeps and reports it: a custom resource may be the only record of a workload that runs.
    """

    claim_ids: frozenset[str]
    workload_ids: frozenset[str]


#: What a `PodEngine` is told to do.
PodOrder = Start | Stop | Refresh | Forget | DropEphemeralClaims | DropClaims | Retain


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


class DesiredOrganization(msgspec.Struct, frozen=True):
    """All departments, projects and node pools. Others that Fairlead created in the cluster are deleted."""

    departments: tuple[Department, ...]
    projects: tuple[Project, ...]
    node_pools: tuple[NodePool, ...]


class ApplyOrganization(msgspec.Struct, frozen=True):
    """Bring namespaces, queues, priority classes and node labels in line with the organization."""

    organization: DesiredOrganization


#: What a `WorkloadEngine` is told to do.
WorkloadOrder = ApplyWorkload | DeleteWorkload | MaintainNode | ApplyOrganization | DropClaims | Retain
