"""Reads the reports of an engine of single pods into the draft: success, failure, requested stop, loss, restart. Pure.

Called by the phase machine. An attempt counts once: reports of earlier attempts and of ended pods change nothing.
"""

from collections.abc import Callable, Iterable

from fairlead.control.decide.autoscale import Load
from fairlead.control.decide.draft import Draft, podset_of
from fairlead.control.decide.observation import Observation
from fairlead.control.decide.pods.restarting import Backoff, break_group, forget_successes, restart_due
from fairlead.control.decide.pods.stopping import stop_on_lost_nodes, stop_surplus
from fairlead.engines.base import PodReport, PodState
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod

#: The reason by which an engine says that a process cannot be started at all: a retry would not help.
START_ERROR = "StartError"
#: The reason of a running pod whose program has ended and whose changes are being uploaded.
UPLOADING = "Uploading"


class PodObservation(Observation, frozen=True, kw_only=True):
    """Of an engine of single pods: we start and stop them, and the pods of the draft are all there is."""

    def controlled_pods(self, draft: Draft) -> list[Pod]:
        return draft.active_pods()

    def is_scaling_from_zero(self, draft: Draft) -> bool:
        is_scaled = any(podset.scaling is not None for podset in draft.entry.podsets)
        return is_scaled and not draft.active_pods() and draft.workload.blocked_by is None

    def stop_unwanted(self, draft: Draft, has_node: Callable[[str], bool], load: Load) -> None:
        stop_on_lost_nodes(draft, draft.active_pods(), has_node)
        stop_surplus(draft, draft.active_pods(), load)

    def forget_evicted(self, draft: Draft) -> None:
        forget_successes(draft)

    def follow_up(self, draft: Draft) -> None:
        restart_due(draft, draft.active_pods())


def apply_pod_reports(draft: Draft, reports: Iterable[PodReport], backoff: Backoff) -> PodObservation:
    """Write reports into the pods of the draft. Beyond the pods there is only what one that starts waits for."""
    for report in reports:
        _apply(draft, report, backoff)
    starting = (pod for pod in draft.pods.values() if pod.phase is PodPhase.STARTING and pod.exit_code is None)
    slow = next((pod for pod in starting if pod.message), None)
    uploading = next((pod for pod in draft.active_pods() if pod.reason == UPLOADING), None)
    return PodObservation(
        starting_message=f"Pod {slow.name}: {slow.message}" if slow is not None else "",
        uploading_message=uploading.message if uploading is not None else "",
    )


def _apply(draft: Draft, report: PodReport, backoff: Backoff) -> None:
    """Write one report into its pod."""
    pod = draft.pods.get(report.pod_id)
    if pod is None or pod.has_ended or report.attempt != pod.attempt or pod.restart_at is not None:
        return
    if report.state is PodState.STARTING:
        _apply_starting(draft, pod, report)
    elif report.state is PodState.RUNNING:
        _apply_running(draft, pod, report)
    elif report.state is PodState.LOST:
        _apply_lost(draft, pod, report, backoff)
    elif report.state is PodState.EXITED:
        _apply_exit(draft, pod, report, backoff)


def _apply_starting(draft: Draft, pod: Pod, report: PodReport) -> None:
    """What it waits for before its program runs. How it ended last time, if it did, says more."""
    is_new = report.message and (report.reason, report.message) != (pod.reason, pod.message)
    if is_new and pod.phase is PodPhase.STARTING and pod.exit_code is None:
        draft.set_pod(pod, reason=report.reason, message=report.message)


def _apply_running(draft: Draft, pod: Pod, report: PodReport) -> None:
    ready_at = pod.ready_at or (draft.now if report.ready else None)
    if pod.phase is PodPhase.STARTING:
        draft.add_event("Started", f"Pod {pod.name} is running on node {pod.node}", pod=pod)
        started_at = report.started_at or draft.now
        reported: dict[str, object] = {"ready": report.ready, "ready_at": ready_at, "ports": report.ports}
        if pod.exit_code is None:
            reported |= {"reason": "", "message": ""}
        draft.set_pod(pod, phase=PodPhase.RUNNING, started_at=started_at, **reported)
    elif report.ready != pod.ready:
        pod = draft.set_pod(pod, ready=report.ready, ready_at=ready_at)
    if report.reason == UPLOADING and report.message != pod.message and pod.phase is PodPhase.RUNNING:
        draft.set_pod(pod, reason=report.reason, message=report.message)


def _apply_lost(draft: Draft, pod: Pod, report: PodReport, backoff: Backoff) -> None:
    """Nobody knows how it ended. That is not a failure of the workload, so the next attempt does not count."""
    draft.add_event(
        report.reason or "SupervisorLost", f"Pod {pod.name} was lost: {report.message}", pod=pod, warning=True
    )
    if pod.phase is PodPhase.STOPPING:
        _end(draft, pod, report, PodPhase.STOPPED)
        return
    if podset_of(draft.entry.podsets, pod.role).restart_scope is RestartScope.GROUP:
        _end(draft, pod, report, PodPhase.STOPPED)
        break_group(draft, pod, backoff)
        return
    draft.set(restarts=draft.workload.restarts + 1)
    _restart_in_place(draft, pod, report, draft.now)


def _apply_exit(draft: Draft, pod: Pod, report: PodReport, backoff: Backoff) -> None:
    succeeded = report.exit_code == 0
    if pod.phase is PodPhase.STOPPING:
        _apply_requested_stop(draft, pod, report)
        return
    podset = podset_of(draft.entry.podsets, pod.role)
    if succeeded and not _serves(podset):
        draft.count_success(pod)
        _end(draft, pod, report, PodPhase.SUCCEEDED)
        return
    draft.add_event(
        report.reason or "Failed", f"Pod {pod.name}: {_describe_end(report)}", pod=pod, warning=not succeeded
    )
    if report.reason == START_ERROR and not (_serves(podset) and draft.workload.started_at is not None):
        # The operating system would refuse it again.
        draft.count_failure(pod.role)
        draft.fatal = f"Pod {pod.name} could not be started: {_describe_end(report)}"
        _end(draft, pod, report, PodPhase.FAILED)
    elif podset.restart_scope is RestartScope.GROUP:
        if podset.completions is not None:
            draft.count_failure(pod.role)
        _end(draft, pod, report, PodPhase.FAILED)
        break_group(draft, pod, backoff)
    elif podset.restart is RestartPolicy.NEVER:
        wait = backoff.after(draft.workload.tally(pod.role).failed + 1)
        draft.count_failure(pod.role, draft.now + wait)
        draft.set(restarts=draft.workload.restarts + 1)
        _end(draft, pod, report, PodPhase.FAILED)
    else:
        _restart_counted(draft, pod, report, backoff)


def _serves(podset: PodSet) -> bool:
    """Whether its pods are meant to run for ever, so that even exit code 0 is followed by a restart."""
    is_endless_group = podset.restart_scope is RestartScope.GROUP and podset.completions is None
    return podset.restart is RestartPolicy.ALWAYS or is_endless_group


def _restart_counted(draft: Draft, pod: Pod, report: PodReport, backoff: Backoff) -> None:
    """Restart in place with a growing delay; with OnFailure each failure counts against the backoff limit."""
    podset = podset_of(draft.entry.podsets, pod.role)
    if podset.restart is RestartPolicy.ON_FAILURE and draft.count_failure(pod.role) > podset.backoff_limit:
        _end(draft, pod, report, PodPhase.FAILED)
        return
    draft.set(restarts=draft.workload.restarts + 1)
    _restart_in_place(draft, pod, report, draft.now + backoff.after(pod.restarts + 1))


def _apply_requested_stop(draft: Draft, pod: Pod, report: PodReport) -> None:
    """A pod that ends after the signal has neither succeeded nor failed, whatever its exit code: it may have saved its
    state and left. A program that had succeeded before the signal has succeeded."""
    serves = _serves(podset_of(draft.entry.podsets, pod.role))
    has_succeeded = report.by_itself and report.exit_code == 0 and not serves
    if has_succeeded and pod.stopping_for in ("suspend", "evict"):
        draft.count_success(pod)
        _end(draft, pod, report, PodPhase.SUCCEEDED)
    else:
        _end(draft, pod, report, PodPhase.STOPPED)


def _restart_in_place(draft: Draft, pod: Pod, report: PodReport, at: Millis) -> None:
    draft.set_pod(
        pod,
        phase=PodPhase.STARTING,
        attempt=pod.attempt + 1,
        restarts=pod.restarts + 1,
        restart_at=at,
        started_at=None,
        ready=False,
        ready_at=None,
        exit_code=report.exit_code,
        signal=report.signal,
        reason=report.reason,
        message=_describe_end(report),
    )


def _end(draft: Draft, pod: Pod, report: PodReport, phase: PodPhase) -> None:
    draft.set_pod(
        pod,
        phase=phase,
        started_at=pod.started_at or report.started_at,
        completed_at=report.ended_at or draft.now,
        exit_code=report.exit_code,
        signal=report.signal,
        reason=report.reason or ("Completed" if phase is PodPhase.SUCCEEDED else "Error"),
        message=_describe_end(report),
    )


def _describe_end(report: PodReport) -> str:
    if report.message:
        return report.message
    if report.signal:
        return f"killed by signal {report.signal}"
    return f"exit code {report.exit_code}"


def is_lost(pod: Pod, known: Iterable[str], has_node: Callable[[str], bool]) -> bool:
    """After a start: whether the engine does not know a pod that had surely started, or that can no longer start."""
    if pod.id in known or pod.restart_at is not None:
        return False
    return pod.phase in (PodPhase.RUNNING, PodPhase.STOPPING) or not has_node(pod.node)


def report_lost(pod: Pod) -> PodReport:
    """The report that an engine cannot give about a pod that it does not know."""
    return PodReport(
        pod_id=pod.id,
        workload_id=pod.workload_id,
        attempt=pod.attempt,
        state=PodState.LOST,
        reason="SupervisorLost",
        message="The engine has no trace of it",
    )
