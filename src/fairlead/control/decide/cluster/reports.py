"""Reads a cluster's report of a workload into an observation, and its pods into the draft. Pure.

Called by the phase machine for engines of whole workloads. A report says everything that exists now, so nothing here
depends on having seen the steps in between.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from fairlead.control.decide.cluster.pods import describe_last_failure, fold_pods
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.observation import Observation
from fairlead.engines.base import ClusterPod, WorkloadReport
from fairlead.kinds.kind import Outcome
from fairlead.model.pods.podset import RestartPolicy
from fairlead.model.records.organization import Node
from fairlead.model.records.phase import PodPhase

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


def apply_cluster_report(draft: Draft, state: ClusterState) -> Observation:
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
    return Observation(
        controls_pods=False,
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
    return WorkloadReport(workload_id=report.workload_id, pods=pods, are_counts_known=False)


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
