"""The Kubernetes engine: takes orders for whole workloads, and reports what the cluster has of them.

Made by `configuration.py`, called by the loop of `control` through the seam. KAI places pods, controllers of the
cluster create them. Here orders go to the reconciler, and observed objects become reports.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from fairlead.engines.base import (
    ApplyOrganization,
    ApplyWorkload,
    CapacityChanged,
    DeleteWorkload,
    DropClaims,
    MaintainNode,
    Retain,
    Review,
    WorkloadEngine,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.engines.kubernetes.apply.applier import ObjectApplier, RenderSources
from fairlead.engines.kubernetes.apply.executor import Executor
from fairlead.engines.kubernetes.apply.node_maintenance import NodeMaintenance
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.apply.reconciler import WorkloadReconciler
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message, retry_forever
from fairlead.engines.kubernetes.client.installed_kinds import InstalledKinds
from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.writer import has_kind
from fairlead.engines.kubernetes.custom_resources import WatchedResources
from fairlead.engines.kubernetes.kept_logs import KeptLogs
from fairlead.engines.kubernetes.loki import Loki
from fairlead.engines.kubernetes.node_autoscaling import NodeAutoscaling
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.devices import find_gpus
from fairlead.engines.kubernetes.observe.nodes import RenderedNodes
from fairlead.engines.kubernetes.observe.unacknowledged import UnacknowledgedPods
from fairlead.engines.kubernetes.pod_sessions import PodSessions
from fairlead.engines.kubernetes.prometheus import Prometheus
from fairlead.engines.kubernetes.render import review as render_review
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL
from fairlead.engines.kubernetes.reports import Changes, WorkloadReports
from fairlead.model.allowed import NOTHING_ALLOWED, Allowed
from fairlead.model.errors import Unavailable
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import LoadKept, nothing_kept
from fairlead.model.pods.urls import IngressSettings
from fairlead.model.records.organization import Node
from fairlead.model.resource_usage import MeasuredUsage


class EngineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator decided for this cluster."""

    #: The kinds of our custom resources, whether the cluster has them or not.
    resource_kinds: Sequence[Resource] = ()
    allowed: Allowed = NOTHING_ALLOWED
    #: None if no Ingress objects are wanted.
    ingress: IngressSettings | None = None
    #: Whether an autoscaler adds nodes: `on`, `off`, or `auto` to find out.
    node_autoscaler: str = "auto"
    #: The output of pods that are gone; None if it is not kept.
    kept_logs: KeptLogs | None = None
    #: Where an agent sends the output of pods; None for nowhere.
    loki: Loki | None = None
    #: What measures the pods; None for nothing.
    prometheus: Prometheus | None = None


DEFAULT_SETTINGS = EngineSettings()


class KubernetesEngine(WorkloadEngine):
    """Runs workloads on a cluster."""

    def __init__(
        self,
        api: Api,
        cluster_id: Callable[[], str],
        load_kept: LoadKept = nothing_kept,
        settings: EngineSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._api = api
        self._cluster_id = cluster_id
        self._settings = settings
        self._tasks = BackgroundTasks()
        self._changes = Changes()
        self._rendered_nodes = RenderedNodes()
        self._kinds = InstalledKinds()
        self._cache = ClusterCache(api, self)
        #: The custom resources of workloads.
        self.custom_resources = WatchedResources(api, cluster_id, self._cache.newest_run)
        self.sessions = PodSessions(api, self._cache.pod, settings.kept_logs, settings.loki)
        self._organization = OrganizationSync(api, cluster_id, self._kinds, self._cache.nodes)
        self._node_maintenance = NodeMaintenance(api, self._cache.pods)
        self.autoscaling = NodeAutoscaling(settings.node_autoscaler, self._kinds, self._cache, self._organization)
        sources = RenderSources(
            find_owner=self.custom_resources.owner,
            find_level=self._cache.enforced_pod_security,
            find_pool_selectors=self.autoscaling.find_pool_selectors,
            load_kept=load_kept,
            ingress=settings.ingress,
        )
        self._applier = ObjectApplier(api, cluster_id, self._kinds, self._organization, sources)
        executor = Executor(api, self._applier, self._cache, self._organization, settings.allowed)
        self._reconciler = WorkloadReconciler(self._applier, executor, self._cache, self._changes.note)
        unacknowledged = UnacknowledgedPods(api, self._tasks.spawn, self._changes.note)
        self._reports = WorkloadReports(api, self._cache, self._reconciler, unacknowledged)
        api.notify_away = self._on_reachability_changed

    # The seam

    async def start(self, notify: Callable[[], None]) -> None:
        self._changes.listen(notify)
        try:
            await self._discover()
        except (ApiError, OSError) as error:
            message = f"The cluster cannot be used: {error_message(error)}"
            raise Unavailable(f"{message}; `fairlead doctor --engine kubernetes` shows what it lacks") from error

    async def _discover(self) -> None:
        """Find the kinds that the cluster has, our objects, and the nodes."""
        await self._organization.find_account()
        await self._kinds.discover(self._api)
        kinds = self._settings.resource_kinds
        installed = [kind for kind in kinds if await has_kind(self._api, kind)]
        await self.custom_resources.start(installed, [kind for kind in kinds if kind not in installed])
        if self._kinds.has_device_claims:
            await self._cache.watch_devices()
        await self._cache.start(
            f"{CLUSTER_LABEL}={self._cluster_id()}",
            self._kinds.runners,
            has_groups=self._kinds.has_pod_groups,
            watches_scaling=self.autoscaling.is_watched,
        )

    def review(self, podset: PodSet) -> Review:
        return render_review.review(podset, self._settings.allowed)

    async def capacity(self) -> Sequence[Node]:
        self._changes.take_nodes()
        return self._rendered_nodes.render(self._cache.nodes(), find_gpus(self._cache.slices()))

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        for order in orders:
            match order:
                case ApplyWorkload(workload):
                    self._reconciler.set_desired(workload.workload_id, workload)
                case DeleteWorkload():
                    self._reconciler.set_desired(order.workload_id, order)
                case MaintainNode():
                    self._node_maintenance.set_desired(order)
                case ApplyOrganization(organization):
                    self._organization.set_desired(organization)
                case DropClaims(claim_ids):
                    self._drop_claims(claim_ids)
                case Retain(claim_ids, workload_ids):
                    self._retain(claim_ids, workload_ids)

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        reports = self._reports.make_each(self._changes.take_workloads())
        return [*reports, CapacityChanged()] if self._changes.take_nodes() else reports

    def _retain(self, claim_ids: frozenset[str], workload_ids: frozenset[str]) -> None:
        self._reconciler.retain(workload_ids, self.custom_resources.has)
        report = partial(self._applier.report_unknown_claims, claim_ids)
        self._tasks.spawn(retry_forever(report, "Cannot list the claims in the cluster yet"))

    def _drop_claims(self, claim_ids: frozenset[str]) -> None:
        delete = partial(self._applier.delete_claims, claim_ids)
        self._tasks.spawn(retry_forever(delete, "Deleted claims still exist in the cluster"))

    async def close(self) -> None:
        parts = (self._reconciler, self._organization, self._node_maintenance)
        for part in (*parts, self._tasks, self._cache, self.custom_resources):
            await part.close()
        self._api.close()

    # What use cases ask of a cluster

    def away(self) -> str:
        """Why the cluster cannot be reached now; empty while it can."""
        return self._api.unreachable_reason

    def find_namespace_problem(self, namespace: str) -> str:
        """Why the namespace of a project cannot be used; empty if it can."""
        return self._organization.find_problem(namespace)

    def observe_usage(self) -> list[MeasuredUsage]:
        """What running pods use now; called from a thread."""
        if self._settings.prometheus is None:
            return []
        running = {(pod.metadata.namespace, pod.metadata.name): pod.metadata.uid for pod in self._cache.running_pods()}
        return self._settings.prometheus.observe(running) if running else []

    # Changes in the cache: `CacheListener`

    def on_changed(self, workload_id: str) -> None:
        self._reconciler.on_changed(workload_id)
        self._changes.note(workload_id)

    def on_object_added(self, workload_id: str) -> None:
        self._reconciler.on_object_added(workload_id)

    def on_controller_deleted(self, workload_id: str) -> None:
        self._reconciler.on_controller_deleted(workload_id)

    def on_nodes_changed(self) -> None:
        self._organization.on_nodes_changed()
        self._changes.note_nodes()

    def on_pod_changed(self, pod: objects.Pod) -> None:
        self._node_maintenance.on_pod_changed(pod)
        self.sessions.keep_logs(pod, self._tasks.spawn)

    def _on_reachability_changed(self) -> None:
        for id in self._reconciler.running:
            self.on_changed(id)
