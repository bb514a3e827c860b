"""What follows for a workload whose pods a cluster makes and places: phases from what is there. Pure.

Stands beside `decide.py`, for engines that take whole workloads. A report says all that is there now, so nothing here
depends on having seen the steps in between; orders are wishes that an engine may be given again and again.
"""

from collections.abc import Collection, Mapping

import msgspec

from fairlead.control.decide.cluster_pods import fold_pods, last_failure
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.phases import (
    PhaseInputs,
    count_running,
    decide_review,
    enforce_time_limit,
    finish,
    follow_outcome,
    has_exceeded_time_limit,
    is_to_be_reviewed,
    set_states,
)
from fairlead.control.decide.rollout import revise
from fairlead.engines.base import ClusterPod, SchedulingBlocker, WorkloadReport
from fairlead.kinds.kind import Outcome
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import RestartPolicy
from fairlead.model.records.organization import Node
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import PendingMessage, Workload

#: The two reasons for which the contract has a word of its own.
_ENUM = frozenset({"OverLimit", "NonPreemptibleOverQuota"})
#: Whose word on why a workload waits is the cluster's.
CLUSTER = "cluster"
_BEFORE = frozenset({Phase.CREATING, Phase.RESUMING})
#: Ends that a job takes note of.
_COUNTED = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class ClusterObservation(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a workload in the cluster: the last report, and the pods whose end is recorded already."""

    report: WorkloadReport
    ended: Collection[str] = frozenset()
    #: The nodes of the cluster by name: what a request for GPU memory amounts to depends on them.
    nodes: Mapping[str, Node] = {}


def decide_from_cluster_report(
    entry: WorkloadEntry, seen: ClusterObservation, now: Millis, rules: PhaseInputs
) -> Draft:
    """Everything that follows now for one workload."""
    draft = Draft(entry, now)
    if is_to_be_reviewed(entry.workload):
        decide_review(draft, rules)
    report = seen.report
    if report.run == draft.workload.run:
        fold_pods(draft, report, seen.ended, seen.nodes)
    elif entry.pods and report.run == 0:
        fold_pods(draft, _of_known(entry, report), seen.ended, seen.nodes)
    if entry.revises:
        revise(draft, rules.load(entry.workload.id), rules.review, report.replicas_wanted)
    _by_desire(draft, report, rules)
    enforce_time_limit(draft)
    count_running(draft)
    return draft


def _of_known(entry: WorkloadEntry, report: WorkloadReport) -> WorkloadReport:
    """What is said of pods on record while nothing that makes them is there: somebody removed it, or it is only not
    seen yet. How they ended is true either way."""
    known = {pod.id for pod in entry.pods}
    pods = tuple(pod for pod in report.pods if pod.id in known)
    return WorkloadReport(workload_id=report.workload_id, pods=pods, are_counts_known=False)


def _by_desire(draft: Draft, report: WorkloadReport, rules: PhaseInputs) -> None:
    workload = draft.workload
    if workload.desired_phase is DesiredPhase.DELETED:
        _follow_deletion(draft, report)
    elif workload.phase in TERMINAL:
        return
    elif (
        has_exceeded_time_limit(draft)
        or workload.desired_phase is DesiredPhase.STOPPED
        or workload.phase is Phase.STOPPING
    ):
        _follow_stop(draft, report, rules)
    else:
        _follow_run(draft, report, rules)


def _follow_deletion(draft: Draft, report: WorkloadReport) -> None:
    draft.set_phase(Phase.DELETING, "Its pods are ending" if draft.active_pods() else "")
    if report.is_removed and not draft.workload.gone:
        draft.set(gone=True, delete_at=None)
        draft.add_event("Deleted", "Nothing of it is left; its record stays readable for some days", source="control")


def _follow_stop(draft: Draft, report: WorkloadReport, rules: PhaseInputs) -> None:
    if draft.workload.phase is Phase.STOPPED:
        return
    if report.run == draft.workload.run and report.ended is Phase.COMPLETED and draft.workload.phase in _FINISHING:
        finish(draft, _final(draft, report, rules))
        return
    draft.set_phase(Phase.STOPPING, "Its pods are ending" if draft.active_pods() else "")
    if not report.has_no_pods:
        return
    draft.set_phase(Phase.STOPPED, "Suspended; resume starts it again from its beginning")
    draft.set(blocked_by=None, pending_messages=())
    if draft.workload.desired_phase is DesiredPhase.RUNNING:
        _follow_run(draft, report, rules)


_FINISHING = frozenset({Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED})


def _follow_run(draft: Draft, report: WorkloadReport, rules: PhaseInputs) -> None:
    if draft.workload.phase is Phase.STOPPED:
        draft.set_phase(Phase.RESUMING, "Its pods are being made again")
        draft.set(run=draft.workload.run + 1, tallies={}, groups={})
    if draft.fatal or report.refused:
        if draft.workload.phase in _BEFORE:
            draft.set_phase(Phase.PENDING)
        finish(draft, Outcome(Phase.FAILED, draft.fatal or report.refused))
        return
    if draft.workload.waits_for:
        draft.set_phase(Phase.PENDING, f"Waits until its project has: {', '.join(draft.workload.waits_for)}")
        return
    if report.run != draft.workload.run:
        if report.retrying_because:
            _tell_trouble(draft, report.retrying_because)
        return
    if draft.workload.phase in _BEFORE:
        draft.set_phase(Phase.PENDING, "Waits to be scheduled")
    if draft.workload.phase is Phase.TERMINATING and not _finish_eviction(draft, report):
        return
    _follow_states(draft, report, rules)


def _tell_trouble(draft: Draft, trouble: str) -> None:
    """Its objects cannot be made, or not be made again after somebody removed them."""
    if draft.workload.phase in _FINISHING and not draft.active_pods():
        draft.set_phase(Phase.DEGRADED, trouble)
    elif draft.workload.phase in (*_BEFORE, Phase.PENDING):
        draft.set_phase(draft.workload.phase, trouble)


def _follow_states(draft: Draft, report: WorkloadReport, rules: PhaseInputs) -> None:
    """The phase that pods and objects amount to. Only the cluster says that it is over."""
    if report.ended is not None:
        finish(draft, _final(draft, report, rules))
        return
    outcome = rules.outcome(set_states(draft, last_failure(report)))
    if outcome is None:
        if draft.workload.phase in (Phase.INITIALIZING, Phase.RUNNING) and not _is_uncounted(draft, report):
            draft.set_phase(Phase.DEGRADED, _transition_message(report))
    elif outcome.phase not in TERMINAL and not (outcome.phase is Phase.DEGRADED and _is_uncounted(draft, report)):
        words = _starting_words(report)
        if words and outcome.phase is Phase.INITIALIZING:
            outcome = Outcome(outcome.phase, words)
        follow_outcome(draft, outcome)
    _explain(draft, report)


def _transition_message(report: WorkloadReport) -> str:
    """What to say while no pod runs of a workload that has run: its next one waits, or is not made yet."""
    failure = "" if any(pod.phase is PodPhase.STARTING for pod in report.pods) else last_failure(report)
    return (
        f"{failure}; the next pod follows after a pause" if failure else "No pod runs; the next one waits for a place"
    )


def _is_uncounted(draft: Draft, report: WorkloadReport) -> bool:
    """Whether a pod has ended of which its job has not taken note yet: what follows from that is the job's to say.

    What keeps its pods running counts none.
    """
    ended = [pod for pod in _counted(draft, report) if pod.phase in _COUNTED and not pod.eviction]
    return len(ended) > sum(report.succeeded.values()) + sum(report.failed.values())


def _counted(draft: Draft, report: WorkloadReport) -> list[ClusterPod]:
    roles = {podset.role for podset in draft.entry.podsets if podset.restart is not RestartPolicy.ALWAYS}
    return [pod for pod in report.pods if pod.role in roles]


def _starting_words(report: WorkloadReport) -> str:
    """What the runtime says of a pod that has its place and does not start."""
    stuck = next((pod for pod in report.pods if pod.message and _is_blocked(pod.reason)), None)
    if stuck is None:
        return ""
    before = f"; before, it ended with {stuck.last_end} (restart {stuck.restarts})" if stuck.last_end else ""
    return f"Pod {stuck.name}: {stuck.message}{before}"


def _is_blocked(reason: str) -> bool:
    return reason not in ("", "ContainerCreating", "PodInitializing", "Completed")


def _explain(draft: Draft, report: WorkloadReport) -> None:
    """Say why it waits, in the cluster's own words; in the record when they are others."""
    workload = draft.workload
    if report.retrying_because and workload.phase is Phase.PENDING:
        draft.set_phase(Phase.PENDING, report.retrying_because)
        return
    if not report.waits:
        if workload.blocked_by is not None and workload.phase is not Phase.PENDING:
            draft.set(blocked_by=None, pending_messages=())
        return
    first = report.waits[0]
    known = workload.blocked_by or {}
    if known.get("code") != first.code:
        reason, source = ("Unschedulable", "scheduler") if first.can_create_pods else (first.code, "engine")
        draft.add_event(reason, first.message, warning=True, source=source)
    draft.set(
        blocked_by={"code": first.code, "detail": first.message, "source": CLUSTER},
        pending_messages=tuple(_pending(wait, workload) for wait in report.waits if wait.code in _ENUM),
    )
    if workload.phase is Phase.PENDING:
        draft.set_phase(Phase.PENDING, first.message, reason=first.code if first.code in _ENUM else None)


def _pending(wait: SchedulingBlocker, workload: Workload) -> PendingMessage:
    org = "PROJECT" if wait.queue.startswith(workload.project_name) else "DEPARTMENT"
    return PendingMessage(node_pool=wait.node_pool, reason=wait.code, message=wait.message, org_type=org)


def _final(draft: Draft, report: WorkloadReport, rules: PhaseInputs) -> Outcome:
    """How it ended, as the cluster says; in the kind's words where they say the same."""
    ended = report.ended or Phase.FAILED
    outcome = rules.outcome(set_states(draft, last_failure(report)))
    if outcome is not None and outcome.phase is ended:
        return outcome
    words = last_failure(report) if ended is Phase.FAILED else ""
    return Outcome(ended, "; ".join(text for text in (report.message, words) if text))


def _finish_eviction(draft: Draft, report: WorkloadReport) -> bool:
    """Whether the evicted pods are all gone, and the workload therefore Pending again (or at its end)."""
    if any(pod.stopping_for == "evict" for pod in draft.active_pods()):
        return False
    if sum(pod.phase is PodPhase.SUCCEEDED for pod in _counted(draft, report)) > sum(report.succeeded.values()):
        # One ended well within its grace, and its job is about to say so.
        return False
    borne, suffered = draft.entry.max_preemptions, draft.workload.preemptions
    if borne is not None and suffered > borne and report.ended is not Phase.COMPLETED:
        times = "once" if suffered == 1 else f"{suffered} times"
        words = f"It was preempted {times}; terminateAfterPreemption or preemptionLimit asks for its end after {borne}"
        finish(draft, Outcome(Phase.FAILED, words))
        return False
    draft.set_phase(Phase.PENDING, "Preempted; waits to be scheduled again")
    return True
