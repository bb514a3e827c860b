"""What every use case gets: the store, the clock, the directory of projects, and the settings that limit work.

Made once by `app`; nothing here reads the environment.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from fairlead.admission.policies.merge import Policy
from fairlead.control.decide.placement.equivalence import Equivalent, Newcomer, SchedulingKey
from fairlead.control.directory import Directory
from fairlead.control.questions import Questions
from fairlead.control.serving.urls import UrlRegistry
from fairlead.control.usage_samples import UsageSampler
from fairlead.control.vault import Vault, draw_vault
from fairlead.engines.base import Review, Sessions
from fairlead.foresight.kai.agreement import Agreement
from fairlead.formats.losses import Loss
from fairlead.formats.plain import Plain
from fairlead.kinds.kind import Kind
from fairlead.model.clock import DAY, SECOND, Clock, Millis
from fairlead.model.errors import Unavailable
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.workload import Workload
from fairlead.scheduling.model.decisions import FairShare
from fairlead.store.base import Comparison, Store, Where

#: Kubernetes objects, and what they cannot express of the workload.
RenderedObjects = tuple[list[Plain], list[Loss]]


class ControlSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: The delay before a failed pod is replaced; it doubles with every further failure up to the maximum.
    retry_delay: Millis = 1 * SECOND
    max_retry_delay: Millis = 300 * SECOND
    #: How long a deleted workload's record stays readable, and how long events and audit lines are kept.
    keep_deleted: Millis = 14 * DAY
    keep_events: Millis = 14 * DAY
    keep_audit: Millis = 365 * DAY
    #: How far back the ledger of usage goes.
    keep_usage: Millis = 400 * DAY
    #: How long scheduling cycles are kept on record, and how many bytes of them; no bytes turn the recording off.
    keep_cycles: Millis = 14 * DAY
    keep_cycles_bytes: int = 1_000_000_000
    #: Logs of pods whose workload is gone are kept this long.
    keep_logs: Millis = 14 * DAY
    #: The most unfinished workloads of one project; submissions beyond that are refused for the time being.
    max_open_workloads: int = 200_000
    max_completions: int = 100_000
    #: The window over which a service's load is measured before pods are removed; a tenth of it before they are added.
    scaling_window: Millis = 60 * SECOND
    #: Whether running pods that no record knows are adopted when a server starts; otherwise they are stopped.
    adopts_unknown_pods: bool = True
    #: Whether users are bound to accounts of the machine that are called like them (`machine_accounts.py`).
    binds_equal_names: bool = False
    #: Whether only its creator, besides administrators, may change, stop or delete a workload.
    protects_ownership: bool = False
    #: Whether it has a mail server for notifications.
    sends_mail: bool = False


class EngineView(msgspec.Struct, frozen=True, kw_only=True):
    """What use cases ask the engine of this server; the defaults are those of a server without one."""

    #: What it refuses or ignores of a pod set.
    review: Callable[[PodSet], Review] = lambda podset: Review()
    #: Why its cluster cannot be reached now; empty while it can.
    unreachable_reason: Callable[[], str] = lambda: ""
    #: Why the namespace of a project cannot be used, such as that it belongs to another installation; empty if it can.
    find_namespace_problem: Callable[[str], str] = lambda namespace: ""
    #: Whether an autoscaler adds nodes, so that what fits no present node may start later.
    may_nodes_be_added: Callable[[], bool] = lambda: False
    #: Whether it measures how busy GPUs are, so that limits on idle GPUs are enforced.
    measures_gpus: bool = False
    #: Whether it is a cluster: names may refer to objects that only the cluster has, and the cluster checks them.
    is_cluster: bool = False


def render_no_objects(kind: Kind, name: str, project: str, spec: Plain, namespace: str = "") -> RenderedObjects:
    raise Unavailable("This server cannot write workloads as Kubernetes objects")


#: Why a cluster that was created without a connection runs nothing.
NOT_CONNECTED = "the server has no kubeconfig for it yet; pass one with `fairlead cluster connect`"


@dataclass
class Context:
    """One for the whole server, with all clusters; and a view of it for the loop of each cluster (`for_cluster`)."""

    store: Store
    clock: Clock
    directory: Directory
    #: None on a server without the lease: its holder opens sessions.
    sessions: Sessions | None
    settings: ControlSettings
    #: Make a new id (UUID text), and the random characters after a name that was given as a prefix.
    new_id: Callable[[], str]
    new_suffix: Callable[[], str]
    #: Unfinished workloads per project; empty on servers without the loop.
    open_workloads: dict[str, int] = field(default_factory=dict)
    #: What every queue holds and requests, as of the last scheduling cycle; empty on servers without the loop.
    fair_shares: tuple[FairShare, ...] = ()
    #: On a cluster: how often Fairlead's scheduler and KAI decided the same since the start of its loop.
    agreement: Agreement = field(default_factory=Agreement)
    #: Encrypts users' secrets. The default's key is lost at a restart; `app` passes a vault with the stored key.
    vault: Vault = field(default_factory=draw_vault)
    #: Shared by submissions and the loop of the same server: records that were just written, by id; and by scheduling
    #: key a pending workload, whose equals would wait for the same reason (`decide/placement/equivalence.py`).
    has_local_loop: bool = False
    just_recorded: dict[str, Newcomer] = field(default_factory=dict)
    pending_equivalents: dict[SchedulingKey, Equivalent] = field(default_factory=dict)
    #: Called by the loop for each workload that it records without an event, of which the store notifies nobody.
    notify_without_event: Callable[[str], None] = lambda workload_id: None
    #: The merged policies by project and type, each with the revision of the directory that it was made from.
    effective_policies: dict[tuple[str, str], tuple[int, Policy]] = field(default_factory=dict)
    #: The URLs of workloads; filled by the loop.
    url_registry: UrlRegistry = field(default_factory=UrlRegistry)
    #: Usage over time; None on a server without the loop.
    usage_samples: UsageSampler | None = None
    #: Questions about the future that callers ask.
    questions: Questions = field(default_factory=Questions)
    #: Whether people of this name sign on with an identity provider. Set if the server has one.
    may_sign_on: Callable[[str], bool] = lambda name: False
    #: What use cases ask the engine. Set once the engine exists, because it loads records through this context.
    engine: EngineView = field(default_factory=EngineView)
    #: A workload of a kind, by name, project and spec, as the objects that it would be in a cluster; `app` passes it.
    render_objects: Callable[..., RenderedObjects] = render_no_objects
    #: The newest revision of the store that the loop knows.
    revision: int = 0
    #: What use cases ask the engines of added clusters, by the cluster's id; `engine` is that of the first cluster.
    engines: dict[str, EngineView] = field(default_factory=dict)
    #: The contexts of the clusters' loops, by the cluster's id; and in such a context the one that it was made from.
    views: dict[str, "Context"] = field(default_factory=dict)
    made_from: "Context | None" = None
    #: Set when the server is about to stop: it is not ready, so that load balancers leave it, but it still serves.
    draining: bool = False
    #: Set when the server is stopping: new work is refused, running work continues.
    stopping: bool = False

    @property
    def all_clusters(self) -> "Context":
        """The context with all clusters."""
        return self.made_from or self

    def for_cluster(self, cluster_id: str) -> "Context":
        """A view in which only this cluster exists; the whole context if there is one cluster and no view of it."""
        whole = self.all_clusters
        view = whole.views.get(cluster_id)
        if view is None and len(whole.directory.clusters) <= 1:
            return whole
        return view or whole.add_view(cluster_id)

    def add_view(self, cluster_id: str) -> "Context":
        """A new view, without anything that an earlier loop of the cluster remembered."""
        whole = self.all_clusters
        view = whole.views[cluster_id] = replace(
            whole,
            directory=whole.directory.for_cluster(cluster_id),
            engine=whole.engine_of(cluster_id),
            has_local_loop=False,
            just_recorded={},
            pending_equivalents={},
            fair_shares=(),
            agreement=Agreement(),
            views={},
            made_from=whole,
        )
        return view

    def engine_of(self, cluster_id: str) -> EngineView:
        whole = self.all_clusters
        known = whole.engines.get(cluster_id)
        cluster = whole.directory.clusters.get(cluster_id)
        if known is not None or cluster is None or cluster_id == whole.directory.cluster.id:
            return known or whole.engine
        if cluster.connection is None:
            return EngineView(unreachable_reason=lambda: NOT_CONNECTED, is_cluster=True)
        return EngineView(is_cluster=cluster.connection.engine != "local")

    @property
    def own_workload_conditions(self) -> tuple[Where, ...]:
        """What a query needs to find only workloads of this view's cluster; nothing if there is one cluster."""
        if self.made_from is None or len(self.directory.clusters) <= 1:
            return ()
        return (Where("cluster_id", Comparison.EQUAL, self.directory.cluster_id),)

    def covers(self, workload: Workload) -> bool:
        """Whether a workload belongs to this view's cluster; the context with all clusters covers every workload."""
        return not self.own_workload_conditions or workload.cluster_id == self.directory.cluster_id

    @property
    def node_cluster_id(self) -> str:
        """What records of nodes have as their cluster: its id if it was added, nothing for the first cluster."""
        id = self.directory.cluster_id
        return "" if id == self.all_clusters.directory.cluster.id else id
