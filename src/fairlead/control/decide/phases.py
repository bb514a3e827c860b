"""The phase machine: what follows for one workload from what was asked of it and what its pods did. Pure.

One machine for both kinds of engine. `observe` writes the engine's reports into the pods of the draft and returns the
rest as an `Observation`; one short function per desired phase then decides. Placing new pods is the scheduler's part
(`placement/`), and orders follow from the draft (`pods/orders.py`, `cluster/orders.py`).
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from fairlead.control.decide.autoscale import NO_LOAD, Load
from fairlead.control.decide.dependencies import format_waiting
from fairlead.control.decide.draft import RUNNING_PHASES, Draft, WorkloadEntry
from fairlead.control.decide.idle_gpus import has_exceeded_idle_limit, wake_at_idle_limit
from fairlead.control.decide.observation import Observation
from fairlead.control.decide.pods.draining import evict_from_draining_nodes
from fairlead.control.decide.pods.stopping import stop_all, stop_leftovers
from fairlead.control.decide.review import Expose, decide_review, expose_nothing, is_to_be_reviewed
from fairlead.control.decide.rollout import revise
from fairlead.control.decide.set_states import count_running, failure_in, set_states
from fairlead.engines.base import Review
from fairlead.kinds.kind import Outcome, SetState
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase
from fairlead.model.records.workload import Pod

_NEW = frozenset({Phase.CREATING, Phase.RESUMING})
#: Phases in which a workload that is being suspended may still complete.
_FINISHING = frozenset({Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED})
#: The message of a workload that was evicted and is pending again.
EVICTED = "Preempted; waiting to be scheduled again"
#: The end of a message about the next try.
_COUNTDOWN = re.compile(r" in [0-9.]+ s\Z")

#: Writes what an engine reported into the pods of a draft; returns the rest.
Observe = Callable[[Draft], Observation]


class PhaseInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision needs to know beyond the workload itself."""

    outcome: Callable[[Sequence[SetState]], Outcome | None]
    review: Callable[[PodSet], Review]
    #: Whether there is still a node of that name on which pods may start.
    has_node: Callable[[str], bool] = lambda node: True
    #: Whether pods are to be evicted from the node of that name.
    is_draining: Callable[[str], bool] = lambda node: False
    #: The load of a workload's requests, by its id.
    load: Callable[[str], Load] = lambda workload_id: NO_LOAD
    expose: Expose = expose_nothing
    #: How long the GPUs of all these pods, by their ids, have been idle; 0 if that is not known.
    idle_time: Callable[[Sequence[str]], Millis] = lambda pod_ids: 0


def decide(entry: WorkloadEntry, observe: Observe, now: Millis, inputs: PhaseInputs) -> Draft:
    """Everything that follows now for one workload."""
    draft = Draft(entry, now)
    if is_to_be_reviewed(entry.workload):
        decide_review(draft, inputs.review, inputs.expose)
    seen = observe(draft)
    load = inputs.load(entry.workload.id)
    if entry.revises:
        revise(draft, load, inputs.review, seen.replicas_wanted)
    _Machine(draft, seen, inputs, load).run()
    _wake_at_time_limit(draft)
    wake_at_idle_limit(draft, inputs.idle_time)
    count_running(draft)
    return draft


def describe_start(draft: Draft, inputs: PhaseInputs) -> None:
    """Say of a workload whose new pods were placed what the next decision would say, which is then not needed."""
    count_running(draft)
    if draft.workload.phase is Phase.INITIALIZING:
        outcome = inputs.outcome(set_states(draft))
        if outcome is not None and outcome.phase is Phase.INITIALIZING:
            draft.set(phase_message=outcome.message)


class _Machine:
    """One decision. Only here, and where the scheduler places and evicts, a workload gets another phase."""

    def __init__(self, draft: Draft, seen: Observation, inputs: PhaseInputs, load: Load) -> None:
        self.draft = draft
        self.seen = seen
        self.inputs = inputs
        self.load = load

    def run(self) -> None:
        workload = self.draft.workload
        if workload.desired_phase is DesiredPhase.DELETED:
            self._delete()
        elif workload.phase in TERMINAL:
            stop_leftovers(self.draft, self._own_pods())
        elif (
            has_exceeded_time_limit(self.draft)
            or has_exceeded_idle_limit(self.draft, self.inputs.idle_time)
            or workload.desired_phase is DesiredPhase.STOPPED
            or workload.phase is Phase.STOPPING
        ):
            self._stop()
        else:
            self._run()

    def _own_pods(self) -> list[Pod]:
        return self.seen.controlled_pods(self.draft)

    def _delete(self) -> None:
        draft = self.draft
        draft.set_phase(Phase.DELETING, "Stopping its pods" if draft.active_pods() else "")
        stop_all(draft, self._own_pods(), "delete")
        if self.seen.is_removed and not self._own_pods() and not draft.workload.gone:
            draft.set(gone=True, delete_at=None)
            draft.add_event("Deleted", "Deleted; its record stays readable for some days", source="control")

    def _stop(self) -> None:
        draft = self.draft
        if draft.workload.phase is Phase.STOPPED or self._has_completed_in_time():
            return
        draft.set_phase(Phase.STOPPING, "Stopping its pods" if draft.active_pods() else "")
        stop_all(draft, self._own_pods(), "suspend")
        if self._own_pods() or not self.seen.has_no_pods:
            return
        draft.set_phase(Phase.STOPPED, _describe_stop(draft))
        draft.set(blocked_by=None, pending_messages=())
        if draft.workload.desired_phase is DesiredPhase.RUNNING:
            self._run()

    def _has_completed_in_time(self) -> bool:
        """A workload that is being stopped may complete: its program may have succeeded before the signal."""
        end = self._find_end()
        if end is None or end.phase is not Phase.COMPLETED or self.draft.workload.phase not in _FINISHING:
            return False
        self._finish(end)
        return True

    def _run(self) -> None:
        draft = self.draft
        if draft.workload.phase is Phase.STOPPED:
            draft.set_phase(Phase.RESUMING, "Resuming: its pods are being created")
            draft.set(run=draft.workload.run + 1, tallies={}, groups={})
        if draft.fatal or self.seen.refused:
            if draft.workload.phase in _NEW:
                draft.set_phase(Phase.PENDING)
            self._finish(Outcome(Phase.FAILED, draft.fatal or self.seen.refused))
        elif draft.workload.waits_for and draft.workload.phase in (*_NEW, Phase.PENDING):
            draft.set_phase(Phase.PENDING, format_waiting(draft.workload.waits_for))
        elif not self.seen.shows(draft.workload.run):
            self._report_trouble()
        else:
            self._set_phase_from_pods()

    def _report_trouble(self) -> None:
        """Its objects cannot be created, or not be created again after somebody deleted them."""
        draft, trouble = self.draft, self.seen.retrying_because
        if trouble and draft.workload.phase in _FINISHING and not draft.active_pods():
            draft.set_phase(Phase.DEGRADED, trouble)
        elif trouble and draft.workload.phase in (*_NEW, Phase.PENDING):
            draft.set_phase(draft.workload.phase, trouble)

    def _set_phase_from_pods(self) -> None:
        """The phase that the pods amount to."""
        draft = self.draft
        if draft.workload.phase in _NEW:
            draft.set_phase(Phase.PENDING, "Waiting to be scheduled")
        evict_from_draining_nodes(draft, self._own_pods(), self.inputs.is_draining)
        if draft.workload.phase is Phase.TERMINATING and not self._finish_eviction():
            return
        self.seen.stop_unwanted(draft, self.inputs.has_node, self.load)
        outcome = self._outcome()
        if (end := self._end(outcome)) is not None:
            self._finish(end)
            return
        if not self.seen.leaves_open(outcome):
            self._enter(outcome)
        self.seen.follow_up(draft)

    def _outcome(self) -> Outcome | None:
        return self.inputs.outcome(set_states(self.draft, self.seen.last_failure))

    def _find_end(self) -> Outcome | None:
        return self._end(self._outcome())

    def _end(self, outcome: Outcome | None) -> Outcome | None:
        return self.seen.find_end(outcome, self.draft.workload.run)

    def _enter(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._wait()
        elif outcome.phase is Phase.INITIALIZING and self.seen.starting_message:
            enter_phase(self.draft, Outcome(outcome.phase, self.seen.starting_message))
        elif outcome.phase is Phase.RUNNING and self.seen.uploading_message:
            enter_phase(self.draft, Outcome(outcome.phase, self.seen.uploading_message))
        else:
            enter_phase(self.draft, outcome)

    def _wait(self) -> None:
        """No pod runs or starts. A workload that has never run stays Pending, one that has is Degraded."""
        workload = self.draft.workload
        if workload.phase in (Phase.RUNNING, Phase.UPDATING) and self.seen.is_scaling_from_zero(self.draft):
            self.draft.set_phase(workload.phase, "Starting pods: a request arrived")
        elif workload.phase in (Phase.INITIALIZING, Phase.RUNNING, Phase.UPDATING):
            self.draft.set_phase(Phase.DEGRADED, self._retry_message() or "No pod running; waiting to be scheduled")
        elif workload.phase is Phase.DEGRADED:
            message = self._retry_message()
            # Once per failure: the seconds that are left would change the record with every decision.
            if not (workload.phase_message or "").startswith(_COUNTDOWN.sub("", message)):
                self.draft.set_phase(Phase.DEGRADED, message)

    def _retry_message(self) -> str:
        draft, workload = self.draft, self.draft.workload
        if self.seen.unreplaced_failure:
            return f"{self.seen.unreplaced_failure}; retrying after a backoff"
        restarts = [(pod.restart_at, pod.message) for pod in draft.active_pods() if pod.restart_at is not None]
        if restarts and min(restarts)[0] > draft.now:
            at, end = min(restarts)
            return f"{end}; restarting in {(at - draft.now) / 1000:.1f} s"
        failure = failure_in(draft)
        if not failure or workload.retry_at is None or workload.retry_at <= draft.now:
            return ""
        first = draft.entry.podsets[0]
        retry = "retrying" if first.completions is None else f"retry {workload.failed} of {first.backoff_limit}"
        return f"{failure}; {retry} in {(workload.retry_at - draft.now) / 1000:.1f} s"

    def _finish(self, outcome: Outcome) -> None:
        draft = self.draft
        if draft.workload.phase is Phase.PENDING and outcome.phase is Phase.COMPLETED:
            draft.set_phase(Phase.INITIALIZING)
        draft.set_phase(outcome.phase, outcome.message)
        lifetime = draft.entry.lifetime_after_end
        draft.set(
            completed_at=draft.now,
            blocked_by=None,
            pending_messages=(),
            delete_at=None if lifetime is None else draft.now + lifetime,
        )
        stop_leftovers(draft, self._own_pods())

    def _finish_eviction(self) -> bool:
        """Whether all evicted pods have ended, so that the workload is Pending again (or at its end)."""
        draft = self.draft
        if self.seen.has_uncounted_success or any(pod.stopping_for == "evict" for pod in draft.active_pods()):
            return False
        end = self._find_end()
        has_completed = end is not None and end.phase is Phase.COMPLETED
        allowed, preemptions = draft.entry.max_preemptions, draft.workload.preemptions
        if allowed is not None and preemptions > allowed and not has_completed:
            times = "once" if preemptions == 1 else f"{preemptions} times"
            limit = f"terminateAfterPreemption or preemptionLimit allows {allowed or 'none'}"
            self._finish(Outcome(Phase.FAILED, f"It was preempted {times}; {limit}"))
            return False
        draft.set_phase(Phase.PENDING, EVICTED)
        self.seen.forget_evicted(draft)
        return True


def has_exceeded_time_limit(draft: Draft) -> bool:
    """Whether it has run as long as it or its project allows; it is then stopped as if somebody had asked for it."""
    workload = draft.workload
    if workload.desired_phase is not DesiredPhase.RUNNING or not _is_time_used_up(draft):
        return False
    seconds = (workload.time_limit or 0) // 1000
    draft.add_event("TimeLimit", f"Stopping: it has run for {seconds} s, its time limit", source="control")
    draft.set(desired_phase=DesiredPhase.STOPPED)
    return True


def _is_time_used_up(draft: Draft) -> bool:
    limit = draft.workload.time_limit
    return limit is not None and draft.running_time() >= limit


def _describe_stop(draft: Draft) -> str:
    """Why it is stopped, and what resuming does: used-up time is not given again."""
    if _is_time_used_up(draft):
        seconds = (draft.workload.time_limit or 0) // 1000
        return f"Its time limit of {seconds} s is used up; it cannot be resumed"
    return "Suspended; resuming starts it from the beginning"


def _wake_at_time_limit(draft: Draft) -> None:
    workload = draft.workload
    if workload.time_limit is not None and workload.phase in RUNNING_PHASES:
        draft.wake(draft.now + max(0, workload.time_limit - draft.running_time()))


def enter_phase(draft: Draft, outcome: Outcome) -> None:
    """Enter the phase that the pods amount to, by way of Initializing if the table of moves asks for it."""
    phase = draft.workload.phase
    if outcome.phase is Phase.INITIALIZING and phase in (Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING):
        # Between the pods of a sweep, or two attempts of one, it goes on.
        draft.set_phase(phase, outcome.message)
        return
    if phase is Phase.PENDING and outcome.phase is not Phase.INITIALIZING:
        draft.set_phase(Phase.INITIALIZING)
    draft.set_phase(outcome.phase, outcome.message)
    if outcome.phase is Phase.RUNNING and draft.workload.started_at is None:
        draft.set(started_at=draft.now)
