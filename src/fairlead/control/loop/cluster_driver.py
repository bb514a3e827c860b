"""The loop's part for engines that take whole workloads: what was last seen of each, and the orders that concern all.

Called by `reconcile.py` in place of the scheduler and of the orders per pod. Decisions are made by `follow.py`.
"""

from collections.abc import Collection, Container, Iterable, Sequence

from fairlead.control.context import Context
from fairlead.control.decide.cluster_reports import ClusterObservation, decide_from_cluster_report
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import PhaseInputs
from fairlead.control.decide.pod_specs import identity
from fairlead.control.serving.urls import render_routes
from fairlead.engines.base import DesiredWorkload, Report, RetainWorkloads, SyncOrganization, WorkloadReport
from fairlead.model.clock import Millis
from fairlead.model.records.organization import Node, namespace_of
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import DEPARTMENTS, NODE_POOLS, PODS, PROJECTS, WORKLOADS

_ORGANIZED = frozenset({DEPARTMENTS.name, PROJECTS.name, NODE_POOLS.name})
_BATCH = 500


class ClusterDriver:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: dict[str, WorkloadReport] = {}
        #: Workloads of which something was said that nobody has looked at yet.
        self._news: set[str] = set()
        #: Pods whose end is recorded, by workload: they may be there for as long as their workload is.
        self._ended: dict[str, set[str]] = {}

    async def load(self, workload_ids: Collection[str]) -> None:
        """Which pods of these workloads have their end on record."""
        ids = sorted(workload_ids)
        for start in range(0, len(ids), _BATCH):
            of_them = Where("workload_id", Comparison.ONE_OF, tuple(ids[start : start + _BATCH]))
            self.learn(await self._context.store.find(Query(collection=PODS, where=(of_them,))))

    def learn(self, pods: Iterable[Pod]) -> None:
        """These are on record."""
        for pod in pods:
            if pod.has_ended:
                self._ended.setdefault(pod.workload_id, set()).add(pod.id)

    def record_report(self, reports: Iterable[Report]) -> None:
        """Keep what the engine says."""
        said = {report.workload_id: report for report in reports if isinstance(report, WorkloadReport)}
        self._seen |= said
        self._news |= said.keys()

    def find_unrecorded(self, held: Container[str]) -> list[str]:
        """News of workloads that the loop does not hold, of a pod that no record has: a watch on pods may be behind one
        on jobs."""
        return [
            id
            for id in self._news
            if id not in held and any(pod.node and pod.id not in self._ended.get(id, ()) for pod in self._seen[id].pods)
        ]

    def take_news(self, held: Collection[str]) -> set[str]:
        """The workloads that the loop holds and of which there is news; what was seen of others is forgotten."""
        news, self._news = self._news, set()
        for id in news.difference(held):
            del self._seen[id]
        return news.intersection(held)

    def decide(self, entry: WorkloadEntry, now: Millis, rules: PhaseInputs) -> Draft:
        id = entry.workload.id
        report = self._seen.get(id) or WorkloadReport(workload_id=id)
        ended: Collection[str] = self._ended.get(id, frozenset())
        seen = ClusterObservation(report=report, ended=ended, nodes=self._find_nodes(entry, report))
        return decide_from_cluster_report(entry, seen, now, rules, self._render_run)

    def _find_nodes(self, entry: WorkloadEntry, report: WorkloadReport) -> dict[str, Node]:
        """The nodes of its pods, where what a pod has of them depends on how large their GPUs are."""
        if not any(podset.request.gpu_memory_bytes for podset in entry.podsets):
            return {}
        named = {pod.node for pod in report.pods}
        return {node.name: node for node in self._context.directory.nodes.values() if node.name in named}

    def note(self, draft: Draft) -> None:
        """A draft was recorded: remember the ends in it, and forget a workload of which nothing is left."""
        id = draft.workload.id
        self.learn(draft.pods.values())
        if draft.workload.gone:
            self._seen.pop(id, None)
            self._ended.pop(id, None)

    def _render_run(self, workload: Workload, entry: WorkloadEntry) -> DesiredWorkload:
        project = self._context.directory.projects.get(workload.project_id)
        routes = render_routes(workload, entry.podsets, workload.urls, self._context.exposure.settings)
        return DesiredWorkload(
            workload_id=workload.id,
            name=workload.name,
            project=workload.project_name,
            namespace=project.namespace if project else namespace_of(workload.project_name),
            run=workload.run,
            podsets=entry.podsets,
            priority_class=workload.priority_class,
            is_preemptible=workload.preemptible,
            created_by=workload.created_by,
            node_pools=workload.node_pools,
            missing_pools=self._find_missing(workload),
            identity=identity(workload),
            urls=tuple(route.seen_by_engine for route in routes),
        )

    def _find_missing(self, workload: Workload) -> tuple[str, ...]:
        known = {pool.name for pool in self._context.directory.node_pools.values()}
        return tuple(name for name in workload.node_pools if name not in known)

    def find_affected_by_pools(self, entries: Iterable[WorkloadEntry], changed: Sequence[tuple[str, str]]) -> set[str]:
        """Workloads for which a pool that came or went may mean another one to wait in."""
        if all(collection != NODE_POOLS.name for collection, _ in changed):
            return set()
        return {entry.workload.id for entry in entries if len(entry.workload.node_pools) > 1}

    def organize(self) -> SyncOrganization:
        directory = self._context.directory
        return SyncOrganization(
            departments=tuple(directory.departments.values()),
            projects=tuple(directory.projects.values()),
            node_pools=tuple(directory.node_pools.values()),
        )

    def affects_organization(self, changed: Sequence[tuple[str, str]]) -> bool:
        """Whether any of these changes concerns what the cluster is told of projects and quotas."""
        return any(collection in _ORGANIZED for collection, _ in changed)

    async def retain(self) -> RetainWorkloads:
        """All workloads that are not gone, finished ones included: their output is still read."""
        kept = Where("deleted_at", Comparison.IS_NULL, True)
        leaving = Where("is_active", Comparison.EQUAL, 1)
        found = [
            workload.id
            for where in (kept, leaving)
            for workload in await self._context.store.find(Query(collection=WORKLOADS, where=(where,)))
        ]
        return RetainWorkloads(frozenset(found))
