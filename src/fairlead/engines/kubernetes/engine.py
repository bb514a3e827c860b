"""The Kubernetes engine: takes orders for whole workloads, and reports what the cluster has of them.

Made by `app`, called by the loop of `control` through the seam. KAI places pods, controllers of the cluster create
them. Here orders go to the reconciler, and observed objects become reports.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial

import msgspec

from fairlead.engines.base import (
    ApplyWorkload,
    CapacityChanged,
    DeleteWorkload,
    DesiredOrganization,
    DesiredWorkload,
    ExecRequest,
    LogRequest,
    MaintainNode,
    Retained,
    Review,
    Sessions,
    WorkloadEngine,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.apply.executor import Executor
from fairlead.engines.kubernetes.apply.node_maintenance import NodeMaintenance
from fairlead.engines.kubernetes.apply.organization import OrganizationSync
from fairlead.engines.kubernetes.apply.reconciler import WAITING, WorkloadReconciler
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError, error_message, retry_forever
from fairlead.engines.kubernetes.client.resources import (
    ALWAYS_THERE,
    POD_GROUP,
    RESOURCE_CLAIM_TEMPLATE,
    RUNNERS,
    SHARD,
    Resource,
)
from fairlead.engines.kubernetes.client.tasks import BackgroundTasks
from fairlead.engines.kubernetes.client.writer import has_kind
from fairlead.engines.kubernetes.custom_resources import WatchedResources
from fairlead.engines.kubernetes.kept_logs import KeptLogs
from fairlead.engines.kubernetes.loki import Loki
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.devices import find_gpus
from fairlead.engines.kubernetes.observe.node_scaling import KARPENTER_POOL
from fairlead.engines.kubernetes.observe.nodes import RenderedNodes
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.unacknowledged import UnacknowledgedPods
from fairlead.engines.kubernetes.plan.recreate import find_recreated_jobs
from fairlead.engines.kubernetes.prometheus import Prometheus
from fairlead.engines.kubernetes.render import review as render_review
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL
from fairlead.engines.kubernetes.render.organization import find_pool_selectors
from fairlead.engines.kubernetes.sessions import CommandSession, dial, listening_port, stream_logs
from fairlead.model.allowed import NOTHING_ALLOWED, Allowed
from fairlead.model.clock import Millis
from fairlead.model.errors import NotFound, Refused, Unavailable
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import LoadKept, nothing_kept
from fairlead.model.pods.urls import IngressSettings
from fairlead.model.records.organization import Node
from fairlead.model.resource_usage import MeasuredUsage

log = logging.getLogger(__name__)

ReadLogs = Callable[[LogRequest], AsyncIterator[bytes]]


class KubernetesEngine(WorkloadEngine, Sessions):
    """Runs workloads on a cluster."""

    def __init__(
        self,
        api: Api,
        cluster_id: Callable[[], str],
        resource_kinds: Sequence[Resource] = (),
        load_kept: LoadKept = nothing_kept,
        allowed: Allowed = NOTHING_ALLOWED,
        ingress: IngressSettings | None = None,
    ) -> None:
        self._api = api
        api.notify_away = self._on_reachability_changed
        self._cluster_id = cluster_id
        self._resource_kinds = resource_kinds
        self._allowed = allowed
        self._tasks = BackgroundTasks()
        #: The custom resources of workloads.
        self.custom_resources = WatchedResources(api, cluster_id, lambda id: self._cache.newest_run(id))
        self._cache = ClusterCache(api, self)
        self._unacknowledged = UnacknowledgedPods(api, self._tasks.spawn, self._on_report_changed)
        self._applier = ObjectApplier(api, "", ALWAYS_THERE, self.custom_resources.owner, load_kept)
        self._applier.level, self._applier.ingress = self._cache.enforced_pod_security, ingress
        self._organization = OrganizationSync(api, "", self._cache.nodes)
        self._node_maintenance = NodeMaintenance(api, self._cache.pods)
        self._applier.namespaces = lambda: self._organization.namespaces
        self._applier.wait_for_namespaces = self._organization.wait_until_synced
        executor = Executor(api, self._applier, self._cache, self._organization, allowed)
        self._reconciler = WorkloadReconciler(self._applier, executor, self._cache, self._on_report_changed)
        #: Whether an autoscaler adds nodes: `on`, `off`, or `auto` to find out.
        self.node_autoscaler = "auto"
        self._has_karpenter = False
        #: The output of pods that are gone; None if it is not kept.
        self.kept_logs: KeptLogs | None = None
        #: Where an agent sends the output of pods; None for nowhere.
        self.loki: Loki | None = None
        #: What measures the pods; None for nothing.
        self.prometheus: Prometheus | None = None
        self._applier.pool_selectors = self._find_pool_selectors
        self._changed: dict[str, None] = {}
        self._nodes = RenderedNodes()
        self._have_nodes_changed = False
        self._notify: Callable[[], None] = lambda: None

    # The seam

    async def start(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        try:
            await self._discover()
        except (ApiError, OSError) as error:
            message = f"The cluster cannot be used: {error_message(error)}"
            raise Unavailable(f"{message}; `fairlead doctor --engine kubernetes` shows what it lacks") from error

    async def _discover(self) -> None:
        """Find the kinds that the cluster has, our objects, and the nodes."""
        cluster = self._cluster_id()
        self._applier.cluster = self._organization.cluster = cluster
        await self._organization.find_account()
        runners = tuple([runner for runner in RUNNERS if runner in ALWAYS_THERE or await has_kind(self._api, runner)])
        self._applier.runners = runners
        installed = [kind for kind in self._resource_kinds if await has_kind(self._api, kind)]
        missing = [kind for kind in self._resource_kinds if kind not in installed]
        await self.custom_resources.start(installed, missing)
        self._applier.groups = (POD_GROUP,) if await has_kind(self._api, POD_GROUP) else ()
        has_device_claims = await has_kind(self._api, RESOURCE_CLAIM_TEMPLATE)
        self._applier.device_claims = (RESOURCE_CLAIM_TEMPLATE,) if has_device_claims else ()
        if has_device_claims:
            await self._cache.watch_devices()
        self._organization.shards = (SHARD,) if await has_kind(self._api, SHARD) else ()
        self._has_karpenter = await has_kind(self._api, KARPENTER_POOL)
        await self._cache.start(
            f"{CLUSTER_LABEL}={cluster}",
            runners,
            has_groups=bool(self._applier.groups),
            watches_scaling=self.node_autoscaler != "off",
        )

    def review(self, podset: PodSet) -> Review:
        return render_review.review(podset, self._allowed)

    async def capacity(self) -> Sequence[Node]:
        self._have_nodes_changed = False
        return self._nodes.render(self._cache.nodes(), find_gpus(self._cache.slices()))

    async def apply(self, orders: Sequence[WorkloadOrder]) -> None:
        for order in orders:
            match order:
                case ApplyWorkload(workload):
                    self._reconciler.set_desired(workload.workload_id, workload)
                case DeleteWorkload():
                    self._reconciler.set_desired(order.workload_id, order)
                case MaintainNode():
                    self._node_maintenance.set_desired(order)

    async def sync_organization(self, organization: DesiredOrganization) -> None:
        self._organization.set_desired(organization)

    async def retain(self, retained: Retained) -> None:
        self._reconciler.retain(retained.workload_ids, self.custom_resources.has)
        report = partial(self._applier.report_unknown_claims, retained.claim_ids)
        self._tasks.spawn(retry_forever(report, "Cannot list the claims in the cluster yet"))

    async def drop_claims(self, claim_ids: Collection[str]) -> None:
        delete = partial(self._applier.delete_claims, frozenset(claim_ids))
        self._tasks.spawn(retry_forever(delete, "Deleted claims still exist in the cluster"))

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        changed, self._changed = self._changed, {}
        reports: list[WorkloadReport | CapacityChanged] = []
        for id in filter(None, changed):
            try:
                reports.append(self._report(id))
            except Exception:
                # Somebody may have edited labels: the reports of other workloads must not be lost with this one.
                log.exception("Cannot read what the cluster has of workload %s", id)
        if self._have_nodes_changed:
            self._have_nodes_changed = False
            reports.append(CapacityChanged())
        return reports

    def _report(self, workload_id: str) -> WorkloadReport:
        seen, state = self._cache.objects_of(workload_id), self._reconciler.find(workload_id)
        podsets = state.podsets if state is not None else ()
        report = render_report(workload_id, seen, podsets, find_recreated_jobs(podsets, seen))
        if state is None:
            return report
        controller = find_controller_ahead_of_pods(seen, podsets)
        if controller is not None:
            self._cache.ensure_consistent(workload_id, controller)
        self._reconciler.dry_run_after(report)
        self._reconciler.forget_if_removed(workload_id)
        away = self._api.unreachable_reason if self._reconciler.is_running(workload_id) else ""
        return msgspec.structs.replace(
            report,
            refused=state.refused,
            # One request may wait long for a server that is away.
            retrying_because=(f"{WAITING}: {away}" if away else state.retrying_because)
            or report.retrying_because
            or self._unacknowledged.message(workload_id, seen),
            has_no_pods=state.deleted is not None,
            is_removed=state.is_removed,
        )

    def away(self) -> str:
        """Why the cluster cannot be reached now; empty while it can."""
        return self._api.unreachable_reason

    def observe_usage(self) -> list[MeasuredUsage]:
        """What running pods use now; called from a thread."""
        if self.prometheus is None:
            return []
        running = {(pod.metadata.namespace, pod.metadata.name): pod.metadata.uid for pod in self._cache.running_pods()}
        return self.prometheus.observe(running) if running else []

    def find_namespace_problem(self, namespace: str) -> str:
        """Why the namespace of a project cannot be used; empty if it can."""
        return self._organization.find_problem(namespace)

    def may_nodes_be_added(self) -> bool:
        """Whether an autoscaler adds nodes for pods that fit none."""
        if self.node_autoscaler == "auto":
            return self._has_karpenter or self._cache.scaling.has_any
        return self.node_autoscaler == "on"

    def _find_pool_selectors(self, workload: DesiredWorkload) -> tuple[str, ...]:
        pools = self._organization.node_pools if self.may_nodes_be_added() else ()
        return find_pool_selectors(pools, workload.node_pools)

    async def close(self) -> None:
        parts = (self._reconciler, self._organization, self._node_maintenance)
        for part in (*parts, self._tasks, self._cache, self.custom_resources):
            await part.close()
        self._api.close()

    # Changes in the cache: `CacheListener`

    def on_changed(self, workload_id: str) -> None:
        self._reconciler.on_changed(workload_id)
        self._on_report_changed(workload_id)

    def on_object_added(self, workload_id: str) -> None:
        self._reconciler.on_object_added(workload_id)

    def on_controller_deleted(self, workload_id: str) -> None:
        self._reconciler.on_controller_deleted(workload_id)

    def on_nodes_changed(self) -> None:
        self._have_nodes_changed = True
        self._organization.on_nodes_changed()
        self._notify()

    def on_pod_changed(self, pod: objects.Pod) -> None:
        self._node_maintenance.on_pod_changed(pod)
        if self.kept_logs is not None:
            self.kept_logs.notice(pod, partial(stream_logs, self._api), self._tasks.spawn)

    def _on_report_changed(self, workload_id: str) -> None:
        self._changed[workload_id] = None
        self._notify()

    def _on_reachability_changed(self) -> None:
        for id in self._reconciler.running:
            self.on_changed(id)

    # Sessions

    def logs(self, request: LogRequest) -> AsyncIterator[bytes]:
        stored = self._find_stored_logs(request)
        if stored is not None and self._cache.pod(request.pod_id) is None:
            return stored(request)
        return self._logs(self._pod(request.pod_id), request, stored)

    def _find_stored_logs(self, request: LogRequest) -> ReadLogs | None:
        """Where the output of a pod is read if its node does not have it: what was kept, or Loki."""
        if self.kept_logs is not None and self.kept_logs.has(request.pod_id):
            return self.kept_logs.read
        return self.loki.read if self.loki is not None else None

    async def _logs(self, pod: objects.Pod, request: LogRequest, stored: ReadLogs | None) -> AsyncIterator[bytes]:
        """The node's output, or what is stored of it: the node, or its copy, may be gone before the pod is."""
        try:
            async for piece in stream_logs(self._api, pod, request):
                yield piece
                stored = None
        except (NotFound, Refused):
            if stored is None:
                raise
            async for piece in stored(request):
                yield piece

    async def drop_logs(self, pod_ids: Collection[str]) -> None:
        if self.kept_logs is not None:
            self.kept_logs.drop(pod_ids)

    async def expire_logs(self, before: Millis) -> int:
        return self.kept_logs.expire(before) if self.kept_logs is not None else 0

    async def exec(self, request: ExecRequest) -> CommandSession:
        return await CommandSession.run(self._api, self._pod(request.pod_id), request)

    async def attach(self, pod_id: str, *, from_start: bool = False) -> CommandSession:
        # Kubernetes has no attachment that begins with earlier output.
        return await CommandSession.attach(self._api, self._pod(pod_id), lambda: self._cache.pod(pod_id))

    async def dial(self, pod_id: str, port: int) -> int:
        pod = self._pod(pod_id)
        return await dial(self._api, pod, listening_port(pod, port))

    def _pod(self, pod_id: str) -> objects.Pod:
        pod = self._cache.pod(pod_id)
        if pod is None:
            raise NotFound("The pod was deleted from the cluster, and its output with it")
        return pod
