"""The engine's reports: which of them changed since the loop last observed, and each made from what is known now.

The parts of the engine note changes; the engine asks for reports when the loop observes.
"""

import logging
from collections.abc import Callable, Iterable

import msgspec

from fairlead.engines.base import WorkloadReport
from fairlead.engines.kubernetes.apply.reconciler import WAITING, WorkloadReconciler
from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods, render_report
from fairlead.engines.kubernetes.observe.unacknowledged import UnacknowledgedPods
from fairlead.engines.kubernetes.plan.recreate import find_recreated_jobs

log = logging.getLogger(__name__)


def _notify_nobody() -> None:
    """The loop does not listen yet."""


class Changes:
    """Workloads whose report may differ from the last one, and whether the nodes do. Wakes the loop."""

    def __init__(self) -> None:
        self._workload_ids: dict[str, None] = {}
        self._has_other_nodes = False
        self._wake: Callable[[], None] = _notify_nobody

    def listen(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def note(self, workload_id: str) -> None:
        self._workload_ids[workload_id] = None
        self._wake()

    def note_nodes(self) -> None:
        self._has_other_nodes = True
        self._wake()

    def take_workloads(self) -> list[str]:
        """The ids since the last call, in the order of their first change."""
        changed, self._workload_ids = self._workload_ids, {}
        return [id for id in changed if id]

    def take_nodes(self) -> bool:
        has_changed, self._has_other_nodes = self._has_other_nodes, False
        return has_changed


class WorkloadReports:
    def __init__(
        self, api: Api, cache: ClusterCache, reconciler: WorkloadReconciler, unacknowledged: UnacknowledgedPods
    ) -> None:
        self._api = api
        self._cache = cache
        self._reconciler = reconciler
        self._unacknowledged = unacknowledged

    def make_each(self, workload_ids: Iterable[str]) -> list[WorkloadReport]:
        reports = []
        for id in workload_ids:
            try:
                reports.append(self._make(id))
            except Exception:
                # Somebody may have edited labels: the reports of other workloads must not be lost with this one.
                log.exception("Cannot read what the cluster has of workload %s", id)
        return reports

    def _make(self, workload_id: str) -> WorkloadReport:
        """The report of a workload. What follows from it for the workload's reconciliation is begun."""
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
