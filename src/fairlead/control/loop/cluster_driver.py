"""The loop's part for engines that take whole workloads: the cluster creates and places their pods.

Called by `reconcile.py`. Keeps the last report of every workload on the board; a later one replaces it.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from fairlead.control.assets.pod_supplies import load_retained
from fairlead.control.context import Context
from fairlead.control.decide.cluster.orders import workload_orders
from fairlead.control.decide.cluster.reports import ClusterState, apply_cluster_report
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.manifests import podsets_of_other_templates
from fairlead.control.decide.phases import decide
from fairlead.control.decide.pods.specs import identity
from fairlead.control.loop.board import Board
from fairlead.control.loop.driver import DirectoryReaction, drop_deleted_claims, make_inputs
from fairlead.control.loop.kai_comparison import KaiComparison
from fairlead.control.serving.urls import render_routes
from fairlead.engines.base import (
    ApplyOrganization,
    CapacityChanged,
    DesiredOrganization,
    DesiredWorkload,
    MaintainNode,
    WorkloadEngine,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.model.clock import Millis
from fairlead.model.dialect import Dialect
from fairlead.model.records.organization import Node, namespace_of, with_cordon_by_cluster
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import DEPARTMENTS, NODE_POOLS, NODES, PODS, PROJECTS, WORKLOADS

_ORGANIZED = frozenset({DEPARTMENTS.name, PROJECTS.name, NODE_POOLS.name})
_BATCH = 500


class ClusterDriver:
    def __init__(self, context: Context, engine: WorkloadEngine) -> None:
        self.engine = engine
        self.board = Board(context.open_workloads, context.url_registry)
        self._context = context
        self._comparison = KaiComparison(context, self.board)
        self._inputs = make_inputs(context, engine.review)
        #: The last report of each workload on the board, and of others until they are looked at.
        self._seen: dict[str, WorkloadReport] = {}
        #: Workloads with a report that waits for a decision.
        self._reported: set[str] = set()
        #: Pods whose end is recorded, by workload: the cluster may report them for as long as their workload exists.
        self._ended: dict[str, set[str]] = {}
        #: The last order for each node.
        self._maintained: dict[str, MaintainNode] = {}

    @property
    def next_change_at(self) -> Millis | None:
        """Placement is the cluster's. It is compared with ours when KAI is done."""
        return self._comparison.due

    async def recover(self, workloads: Iterable[Workload]) -> None:
        existing = await self._load_existing()
        await self._load_ended_pods(existing)
        retain = await load_retained(self._context, existing)
        await self.engine.apply((ApplyOrganization(self._organization()), retain))

    async def _load_existing(self) -> frozenset[str]:
        """All workloads that are not gone. Finished ones are among them: their output is still read."""
        not_deleted = Where("deleted_at", Comparison.IS_NULL, True)
        being_deleted = Where("is_active", Comparison.EQUAL, 1)
        return frozenset(
            [
                workload.id
                for where in (not_deleted, being_deleted)
                for workload in await self._context.store.find(
                    Query(collection=WORKLOADS, where=(where, *self._context.own_workload_conditions))
                )
            ]
        )

    async def _load_ended_pods(self, workload_ids: Collection[str]) -> None:
        ids = sorted(workload_ids)
        for start in range(0, len(ids), _BATCH):
            of_them = Where("workload_id", Comparison.ONE_OF, tuple(ids[start : start + _BATCH]))
            self._remember_ends(await self._context.store.find(Query(collection=PODS, where=(of_them,))))

    def _remember_ends(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod.has_ended:
                self._ended.setdefault(pod.workload_id, set()).add(pod.id)

    async def resume(self) -> list[WorkloadOrder]:
        """The cluster keeps its pods itself, and every decision gives their desired state again; nodes have none."""
        return [*self._maintain_nodes()]

    async def observe(self) -> bool:
        observed = await self.engine.observe()
        reports = {report.workload_id: report for report in observed if isinstance(report, WorkloadReport)}
        self._seen |= reports
        self._reported |= reports.keys()
        return any(isinstance(report, CapacityChanged) for report in observed)

    async def take_reported(self) -> set[str]:
        """Reports of workloads that are not on the board are dropped, unless they show a pod that no record has."""
        for id in self._find_unrecorded():
            workload = await self._context.store.get(WORKLOADS, id)
            if workload is not None and not workload.gone and self._context.covers(workload):
                self.board.put(workload, ())
        reported, self._reported = self._reported, set()
        # Not `intersection`: with a mapping it walks through all workloads, for every single report.
        on_board = {id for id in reported if id in self.board.entries}
        for id in reported - on_board:
            del self._seen[id]
        return on_board

    def _find_unrecorded(self) -> list[str]:
        """Ended workloads of which a further pod came to light: a watch on pods may be behind one on jobs."""
        return [
            id
            for id in self._reported
            if id not in self.board.entries
            and any(pod.node and pod.id not in self._ended.get(id, ()) for pod in self._seen[id].pods)
        ]

    def retry_reports(self, workload_ids: Collection[str]) -> None:
        """The last report of each is kept anyway."""

    def decide(self, entry: WorkloadEntry, now: Millis) -> Draft:
        report = self._report(entry.workload.id)
        ended: Collection[str] = self._ended.get(entry.workload.id, frozenset())
        state = ClusterState(report=report, ended=ended, nodes=self._find_nodes(entry, report))
        return decide(entry, partial(apply_cluster_report, state=state), now, self._inputs[entry.workload.kind])

    def _report(self, workload_id: str) -> WorkloadReport:
        return self._seen.get(workload_id) or WorkloadReport(workload_id=workload_id)

    async def place(self, drafts: dict[str, Draft], now: Millis) -> bool:
        """Placement is the cluster's."""
        self._comparison.note(drafts, now)
        return False

    def orders(self, draft: Draft) -> list[WorkloadOrder]:
        return workload_orders(draft, self._report(draft.workload.id), self._render)

    def _find_nodes(self, entry: WorkloadEntry, report: WorkloadReport) -> dict[str, Node]:
        """The nodes of its pods, if a pod's share of a GPU depends on the GPU's memory."""
        if not any(podset.request.gpu_memory_bytes for podset in entry.podsets):
            return {}
        node_names = {pod.node for pod in report.pods}
        return {node.name: node for node in self._context.directory.nodes.values() if node.name in node_names}

    def on_recorded(self, draft: Draft, workload: Workload) -> None:
        """Remember the ends in the draft, and forget a workload of which nothing is left."""
        self._remember_ends(draft.pods.values())
        if workload.gone:
            self._seen.pop(workload.id, None)
            self._ended.pop(workload.id, None)

    def on_read_again(self, before: WorkloadEntry, after: WorkloadEntry, pods: Sequence[Pod]) -> list[WorkloadOrder]:
        self._remember_ends(pods)
        return []

    async def on_directory_change(self, changed: Sequence[tuple[str, str]]) -> DirectoryReaction[WorkloadOrder]:
        collections = {collection for collection, _ in changed}
        orders: list[WorkloadOrder] = [*await drop_deleted_claims(self._context, changed)]
        if collections & _ORGANIZED:
            orders.append(ApplyOrganization(self._organization()))
        if NODES.name in collections:
            orders += self._maintain_nodes()
        return DirectoryReaction(orders, self._find_affected_by_pools() if NODE_POOLS.name in collections else set())

    def _maintain_nodes(self) -> list[MaintainNode]:
        """Orders for nodes of which something else is wanted than at the last order."""
        nodes = self._context.directory.nodes.values()
        wanted = {node.name: MaintainNode(node.name, node.cordon_request, node.draining) for node in nodes}
        before, self._maintained = self._maintained, wanted
        return [order for name, order in wanted.items() if order != before.get(name, MaintainNode(name))]

    def with_cordon(self, observed: Node, before: Node | None) -> Node:
        return with_cordon_by_cluster(observed, before)

    async def finish(self) -> None:
        await self._comparison.stop()

    def _find_affected_by_pools(self) -> set[str]:
        """Workloads that may have another pool to wait in after one was created or deleted."""
        return {id for id, entry in self.board.entries.items() if len(entry.workload.node_pools) > 1}

    def _organization(self) -> DesiredOrganization:
        directory = self._context.directory
        return DesiredOrganization(
            departments=tuple(directory.departments.values()),
            projects=tuple(directory.projects.values()),
            node_pools=tuple(directory.node_pools.values()),
        )

    def _render(self, workload: Workload, entry: WorkloadEntry) -> DesiredWorkload:
        project = self._context.directory.projects.get(workload.project_id)
        routes = render_routes(workload, entry.podsets, workload.urls, self._context.url_registry.settings)
        return DesiredWorkload(
            workload_id=workload.id,
            name=workload.name,
            project=workload.project_name,
            namespace=project.namespace if project else namespace_of(workload.project_name),
            run=workload.run,
            podsets=(*entry.podsets, *podsets_of_other_templates(workload)),
            manifest=workload.manifest.encode() if workload.dialect is Dialect.OBJECT else b"",
            priority_class=workload.priority_class,
            is_preemptible=workload.preemptible,
            created_by=workload.created_by,
            node_pools=workload.node_pools,
            missing_pools=self._find_missing_pools(workload),
            node_types=workload.node_types,
            identity=identity(workload),
            urls=tuple(route.for_engine for route in routes),
        )

    def _find_missing_pools(self, workload: Workload) -> tuple[str, ...]:
        known = {pool.name for pool in self._context.directory.node_pools.values()}
        return tuple(name for name in workload.node_pools if name not in known)
