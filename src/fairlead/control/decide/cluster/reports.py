"""Reads a cluster's report of a workload into an observation, and its pods into the draft. Pure.

Called by the phase machine for engines of whole workloads. A report says everything that exists now, so nothing here
depends on having seen the steps in between.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from fairlead.control.decide.cluster.blockers import explain_blockers
from fairlead.control.decide.cluster.pods import describe_last_failure, fold_pods
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.observation import Observation
from fairlead.engines.base import ClusterPod, SchedulingBlocker, WorkloadReport
from fairlead.kinds.kind import Outcome
from fairlead.model.pods.podset import RestartPolicy
from fairlead.model.records.organization import Node
from fairlead.model.records.phase import TERMINAL, Phase, PodPhase

#: Ends that a job counts.
_COUNTED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})
#: Reasons of a pod whose start goes as usual.
_USUAL = frozenset({"", "ContainerCreating", "PodInitializing", "Completed"})


class ClusterState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a workload in the cluster: the last report, and the pods whose end is already recorded."""

    report: WorkloadReport
    ended: Collection[str] = frozenset()
    #: The nodes of its pods by name: a pod's share of a GPU may depend on the GPU's memory.
    nodes: Mapping[str, Node] = {}


class ClusterObservation(Observation, frozen=True, kw_only=True):
    """Of an engine of whole workloads: the cluster controls the pods, and alone says when a workload is over."""

    #: The run whose objects exist.
    run: int
    #: How it ended, as the cluster reports it.
    ended: Outcome | None = None
    #: Why the cluster's scheduler has not placed it.
    blockers: tuple[SchedulingBlocker, ...] = ()
    #: A pod has ended that its job has not counted yet.
    has_uncounted_end: bool = False

    def shows(self, run: int) -> bool:
        return self.run == run

    def find_end(self, outcome: Outcome | None, run: int) -> Outcome | None:
        ended = self.ended
        if ended is None or not self.shows(run):
            return None
        if outcome is not None and outcome.phase is ended.phase:
            return outcome
        failure = self.last_failure if ended.phase is Phase.FAILED else ""
        return Outcome(ended.phase, "; ".join(text for text in (ended.message, failure) if text))

    def leaves_open(self, outcome: Outcome | None) -> bool:
        if outcome is None or outcome.phase is Phase.DEGRADED:
            return self.has_uncounted_end
        return outcome.phase in TERMINAL

    def follow_up(self, draft: Draft) -> None:
        explain_blockers(draft, self.blockers, self.retrying_because)


def apply_cluster_report(draft: Draft, state: ClusterState) -> ClusterObservation:
    """Write the pods of the report into the draft, and read the rest."""
    report = state.report
    if report.run == draft.workload.run:
        fold_pods(draft, report, state.ended, state.nodes)
    elif draft.entry.pods and report.run == 0:
        fold_pods(draft, _report_of_known(draft.entry, report), state.ended, state.nodes)
    counted = _counted_pods(draft, report)
    ended = [pod for pod in counted if pod.phase in _COUNTED and not pod.eviction]
    succeeded = sum(pod.phase is PodPhase.SUCCEEDED for pod in counted)
    last_failure = describe_last_failure(report)
    is_replaced = any(pod.phase is PodPhase.STARTING for pod in report.pods)
    return ClusterObservation(
        run=report.run,
        has_no_pods=report.has_no_pods,
        is_removed=report.is_removed,
        ended=None if report.ended is None else Outcome(report.ended, report.message),
        refused=report.refused,
        retrying_because=report.retrying_because,
        blockers=report.waits,
        replicas_wanted=report.replicas_wanted,
        last_failure=last_failure,
        unreplaced_failure="" if is_replaced else last_failure,
        starting_message=_starting_message(report.pods),
        has_uncounted_end=len(ended) > sum(report.succeeded.values()) + sum(report.failed.values()),
        has_uncounted_success=succeeded > sum(report.succeeded.values()),
    )


def _report_of_known(entry: WorkloadEntry, report: WorkloadReport) -> WorkloadReport:
    """The recorded pods alone, while their controller does not exist or is not seen yet. How they ended is true in
    both cases."""
    recorded = {pod.id for pod in entry.pods}
    pods = tuple(pod for pod in report.pods if pod.id in recorded)
    return WorkloadReport(workload_id=report.workload_id, pods=pods, evicted=report.evicted, are_counts_known=False)


def _counted_pods(draft: Draft, report: WorkloadReport) -> list[ClusterPod]:
    """Pods of sets whose ends are counted; controllers that keep their pods running count none."""
    roles = {podset.role for podset in draft.entry.podsets if podset.restart is not RestartPolicy.ALWAYS}
    return [pod for pod in report.pods if pod.role in roles]


def _starting_message(pods: Sequence[ClusterPod]) -> str:
    """What the runtime says about a placed pod that does not start."""
    stuck = next((pod for pod in pods if pod.message and pod.reason not in _USUAL), None)
    if stuck is None:
        return ""
    before = f"; it ended before with {stuck.last_end} (restart {stuck.restarts})" if stuck.last_end else ""
    return f"Pod {stuck.name}: {stuck.message}{before}"
