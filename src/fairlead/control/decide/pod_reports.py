"""How a pod's end is read: success, failure, our own doing, or nobody's; and whether its container starts again.

Called by `decide.py` for every report of an engine. Pure.
"""

from typing import Any

from fairlead.control.decide.draft import Draft, podset_of
from fairlead.control.decide.stopping import break_group, retry_delay
from fairlead.engines.base import PodReport, PodState
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod

#: A reason with which an engine says that the process could not be started at all: trying again would not help.
START_ERROR = "StartError"


def apply_pod_report(draft: Draft, report: PodReport, first: Millis, most: Millis) -> None:
    """Write one report into its pod. Reports of earlier attempts, and of pods that ended, change nothing."""
    pod = draft.pods.get(report.pod_id)
    if pod is None or pod.has_ended or report.attempt != pod.attempt or pod.restart_at is not None:
        return
    if report.state is PodState.STARTING:
        _fold_starting(draft, pod, report)
    elif report.state is PodState.RUNNING:
        _fold_running(draft, pod, report)
    elif report.state is PodState.LOST:
        _fold_lost(draft, pod, report, first, most)
    elif report.state is PodState.EXITED:
        _fold_exit(draft, pod, report, first, most)


def _fold_starting(draft: Draft, pod: Pod, report: PodReport) -> None:
    """What it waits for before its program runs; how it ended the last time says more, where it did."""
    is_news = report.message and (report.reason, report.message) != (pod.reason, pod.message)
    if is_news and pod.phase is PodPhase.STARTING and pod.exit_code is None:
        draft.set_pod(pod, reason=report.reason, message=report.message)


def _fold_running(draft: Draft, pod: Pod, report: PodReport) -> None:
    ready_at = pod.ready_at or (draft.now if report.ready else None)
    if pod.phase is PodPhase.STARTING:
        draft.add_event("Started", f"Pod {pod.name} runs on node {pod.node}", pod=pod)
        started_at = report.started_at or draft.now
        said: dict[str, Any] = {"ready": report.ready, "ready_at": ready_at, "ports": report.ports}
        if pod.exit_code is None:
            said |= {"reason": "", "message": ""}
        draft.set_pod(pod, phase=PodPhase.RUNNING, started_at=started_at, **said)
    elif report.ready != pod.ready:
        draft.set_pod(pod, ready=report.ready, ready_at=ready_at)


def _fold_lost(draft: Draft, pod: Pod, report: PodReport, first: Millis, most: Millis) -> None:
    """Nobody knows how it ended: not a failure of the workload, so a new attempt that does not count."""
    draft.add_event(
        report.reason or "SupervisorLost", f"Pod {pod.name} was lost: {report.message}", pod=pod, warning=True
    )
    if pod.phase is PodPhase.STOPPING:
        _end(draft, pod, report, PodPhase.STOPPED)
        return
    if podset_of(draft.entry.podsets, pod.role).restart_scope is RestartScope.GROUP:
        _end(draft, pod, report, PodPhase.STOPPED)
        break_group(draft, pod, first, most)
        return
    draft.set(restarts=draft.workload.restarts + 1)
    _restart_in_place(draft, pod, report, draft.now)


def _fold_exit(draft: Draft, pod: Pod, report: PodReport, first: Millis, most: Millis) -> None:
    succeeded = report.exit_code == 0
    if pod.phase is PodPhase.STOPPING:
        _apply_requested_stop(draft, pod, report)
        return
    podset = podset_of(draft.entry.podsets, pod.role)
    if succeeded and not _serves(podset):
        draft.count_success(pod)
        _end(draft, pod, report, PodPhase.SUCCEEDED)
        return
    draft.add_event(report.reason or "Failed", f"Pod {pod.name}: {_words(report)}", pod=pod, warning=not succeeded)
    if report.reason == START_ERROR and not (_serves(podset) and draft.workload.started_at is not None):
        # What the operating system refuses once it refuses again: no retry would help.
        draft.count_failure(pod.role)
        draft.fatal = f"Pod {pod.name} could not be started: {_words(report)}"
        _end(draft, pod, report, PodPhase.FAILED)
    elif podset.restart_scope is RestartScope.GROUP:
        if podset.completions is not None:
            draft.count_failure(pod.role)
        _end(draft, pod, report, PodPhase.FAILED)
        break_group(draft, pod, first, most)
    elif podset.restart is RestartPolicy.NEVER:
        wait = retry_delay(draft.workload.tally(pod.role).failed + 1, first, most)
        draft.count_failure(pod.role, draft.now + wait)
        draft.set(restarts=draft.workload.restarts + 1)
        _end(draft, pod, report, PodPhase.FAILED)
    else:
        _restart_counted(draft, pod, report, first, most)


def _serves(podset: PodSet) -> bool:
    """Whether its pods are meant to run for ever, so that even a good end is none."""
    is_endless_group = podset.restart_scope is RestartScope.GROUP and podset.completions is None
    return podset.restart is RestartPolicy.ALWAYS or is_endless_group


def _restart_counted(draft: Draft, pod: Pod, report: PodReport, first: Millis, most: Millis) -> None:
    """Restart in place with a growing delay; with OnFailure each failure counts against the backoff limit."""
    podset = podset_of(draft.entry.podsets, pod.role)
    if podset.restart is RestartPolicy.ON_FAILURE and draft.count_failure(pod.role) > podset.backoff_limit:
        _end(draft, pod, report, PodPhase.FAILED)
        return
    draft.set(restarts=draft.workload.restarts + 1)
    _restart_in_place(draft, pod, report, draft.now + retry_delay(pod.restarts + 1, first, most))


def _apply_requested_stop(draft: Draft, pod: Pod, report: PodReport) -> None:
    """A pod that exits 0 within its grace succeeded; any other end that we caused is no failure."""
    serves = _serves(podset_of(draft.entry.podsets, pod.role))
    if report.exit_code == 0 and pod.stopping_for in ("suspend", "evict") and not serves:
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
        message=_words(report),
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
        message=_words(report),
    )


def _words(report: PodReport) -> str:
    if report.message:
        return report.message
    if report.signal:
        return f"ended by signal {report.signal}"
    return f"exit code {report.exit_code}"
