"""The loop's part for engines that run single pods: our scheduler places them, orders start and stop them.

Called by `reconcile.py`. Keeps the reports that are not recorded yet, because the engine gives each only once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import partial

import msgspec

from fairlead import __version__
from fairlead.control.assets.pod_supplies import load_retained
from fairlead.control.context import Context
from fairlead.control.cycles.recorder import CycleRecorder
from fairlead.control.decide.draft import Draft, WorkloadEntry, podset_of
from fairlead.control.decide.phases import decide, describe_start
from fairlead.control.decide.pods.orders import pod_orders, start_order
from fairlead.control.decide.pods.reports import apply_pod_reports, is_lost, report_lost
from fairlead.control.decide.pods.restarting import Backoff
from fairlead.control.decide.pods.specs import render_pod
from fairlead.control.loop.board import Board
from fairlead.control.loop.driver import DirectoryReaction, drop_deleted_claims, has_node, make_inputs
from fairlead.control.loop.pod_adopter import PodAdopter
from fairlead.control.loop.refresh import find_changed, find_mounting
from fairlead.control.loop.schedule import Scheduler
from fairlead.engines.base import CapacityChanged, PodEngine, PodOrder, PodReport, PodState, Start, Stop
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.organization import Node, with_cordon_by_us
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS


class PodDriver:
    def __init__(self, context: Context, engine: PodEngine) -> None:
        self.engine = engine
        self.board = Board(context.open_workloads, context.url_registry)
        self._recorder = CycleRecorder(context, __version__)
        self.scheduler = Scheduler(context, self.board, self._recorder)
        self._context = context
        self._inputs = make_inputs(context, engine.review)
        self._backoff = Backoff(context.settings.retry_delay, context.settings.max_retry_delay)
        #: Reports that no record holds yet; and those of this turn, by workload.
        self._unrecorded: list[PodReport] = []
        self._reports: dict[str, list[PodReport]] = {}

    @property
    def next_change_at(self) -> Millis | None:
        return self.scheduler.next_change_at

    async def recover(self, workloads: Iterable[Workload]) -> None:
        running = (workload.id for workload in workloads if workload.phase is not Phase.STOPPED)
        await self.engine.apply((await load_retained(self._context, running),))

    async def resume(self) -> list[PodOrder]:
        """A pod of which the engine has no trace is taken as lost. Mounted objects may have changed meanwhile."""
        self._unrecorded += await PodAdopter(self._context, self.engine, self.board).adopt(self._unrecorded)
        self._group_reports()
        orders: list[PodOrder] = []
        for id, entry in self.board.entries.items():
            known = {report.pod_id for report in self._reports.get(id, ())}
            self._unrecorded += [report_lost(pod) for pod in entry.pods if is_lost(pod, known, self._has_node)]
            orders += self._unfinished(entry, known)
        self._group_reports()
        self.scheduler.needed = True
        return [*orders, *find_mounting(self.board.entries.values(), self._pod_spec)]

    def _unfinished(self, entry: WorkloadEntry, known: Collection[str]) -> list[PodOrder]:
        """Orders that were durable but perhaps never given: a start without a trace, and every stop."""
        orders: list[PodOrder] = []
        for pod in entry.pods:
            podset = podset_of(entry.podsets, pod.role)
            is_unknown = pod.id not in known and self._has_node(pod.node)
            if pod.phase is PodPhase.STARTING and pod.restart_at is None and is_unknown:
                orders.append(start_order(entry.workload, pod, self._pod_spec(entry.workload, pod, podset)))
            elif pod.phase is PodPhase.STOPPING:
                orders.append(Stop(pod.id, pod.attempt, podset.container.termination_grace_seconds))
        return orders

    async def observe(self) -> bool:
        observed = await self.engine.observe()
        self._unrecorded += [report for report in observed if isinstance(report, PodReport)]
        has_other_capacity = any(isinstance(report, CapacityChanged) for report in observed)
        self.scheduler.needed |= has_other_capacity
        return has_other_capacity

    async def take_reported(self) -> set[str]:
        self._group_reports()
        return {id for id, reports in self._reports.items() if not self._is_known_start(id, reports)}

    def _is_known_start(self, workload_id: str, reports: Iterable[PodReport]) -> bool:
        """Whether these only say that pods start whose placement was recorded with the message that they do."""
        is_initializing = self.board.entries[workload_id].workload.phase is Phase.INITIALIZING
        return is_initializing and all(
            report.state is PodState.STARTING and not report.message and report.attempt == 1 for report in reports
        )

    def _group_reports(self) -> None:
        """By workload; reports of pods that nobody knows are dropped."""
        self._reports = defaultdict(list)
        for report in self._unrecorded:
            workload_id = self.board.pods.get(report.pod_id)
            if workload_id is not None:
                self._reports[workload_id].append(report)

    def retry_reports(self, workload_ids: Collection[str]) -> None:
        self._unrecorded = [report for id in workload_ids for report in self._reports.get(id, ())]

    def decide(self, entry: WorkloadEntry, now: Millis) -> Draft:
        reports = self._reports.get(entry.workload.id, ())
        observe = partial(apply_pod_reports, reports=reports, backoff=self._backoff)
        return decide(entry, observe, now, self._inputs[entry.workload.kind])

    async def place(self, drafts: dict[str, Draft], now: Millis) -> bool:
        """The scheduler is asked only if something that it looks at may have changed."""
        if not self.scheduler.is_needed(drafts, now):
            return False
        await self.scheduler.decide(drafts, now)
        for draft in drafts.values():
            if draft.has_new_pods():
                describe_start(draft, self._inputs[draft.workload.kind])
                await self._find_replaced(draft)
        return True

    async def _find_replaced(self, draft: Draft) -> None:
        """Find the ended pods whose names new pods of the draft have, as in a group that starts again."""
        names = draft.names_used_again()
        if names:
            where = (
                Where("workload_id", Comparison.EQUAL, draft.workload.id),
                Where("name", Comparison.ONE_OF, names),
                Where("phase", Comparison.ONE_OF, (PodPhase.SUCCEEDED, PodPhase.FAILED)),
            )
            ended = await self._context.store.find(Query(collection=PODS, where=where))
            draft.replaced = [pod for pod in ended if pod.id not in draft.pods]

    def orders(self, draft: Draft) -> list[PodOrder]:
        return pod_orders(draft, self._pod_spec)

    def on_recorded(self, draft: Draft, workload: Workload) -> None:
        self.scheduler.note(workload)

    def on_read_again(self, before: WorkloadEntry, after: WorkloadEntry, pods: Sequence[Pod]) -> list[PodOrder]:
        self.scheduler.note(after.workload)
        draft = Draft(msgspec.structs.replace(after, workload=before.workload, pods=before.pods), self._context.clock())
        draft.workload = after.workload
        known = {pod.id for pod in before.pods}
        draft.pods = {pod.id: pod for pod in pods if pod.id in known or not pod.has_ended}
        return [order for order in self.orders(draft) if not isinstance(order, Start) or self._has_node(order.pod.node)]

    async def on_directory_change(self, changed: Sequence[tuple[str, str]]) -> DirectoryReaction[PodOrder]:
        refreshes = await find_changed(self._context, self.board.entries.values(), changed, self._pod_spec)
        drops = await drop_deleted_claims(self._context, changed)
        self.scheduler.needed = True
        return DirectoryReaction([*refreshes, *drops], self._find_on_draining_nodes())

    def _find_on_draining_nodes(self) -> set[str]:
        names = {node.name for node in self._context.directory.nodes.values() if node.draining}
        entries = self.board.entries if names else {}
        return {id for id, entry in entries.items() if any(pod.node in names for pod in entry.pods)}

    def with_cordon(self, observed: Node, before: Node | None) -> Node:
        return with_cordon_by_us(observed, before)

    async def finish(self) -> None:
        await self._recorder.close()

    def _has_node(self, name: str) -> bool:
        return has_node(self._context, name)

    def _pod_spec(self, workload: Workload, pod: Pod, podset: PodSet) -> PodSpec:
        return render_pod(workload, pod, podset, self._context.directory.projects.get(workload.project_id))
