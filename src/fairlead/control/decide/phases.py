"""What follows for one workload from what was asked of it and what its pods did. Pure: data in, a draft out.

`decide` folds the engine's reports into the pods, then asks the function of the desired phase. Placing new pods is
the scheduler's part: `demand` says how many are wanted, `place` and `evict` write down what it decided.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from fairlead.control.decide.autoscale import NO_LOAD, Load
from fairlead.control.decide.draft import RUNNING_PHASES, Draft, WorkloadEntry, podset_of
from fairlead.control.decide.pod_reports import apply_pod_report
from fairlead.control.decide.rollout import revise
from fairlead.control.decide.stopping import forget_successes, stop_pod, stop_when_answered
from fairlead.engines.base import NO_ISOLATION, PodReport, PodState, Review
from fairlead.kinds.kind import GroupState, Outcome, SetState
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import WAITS_FOR_NAMES, Condition, Pod, Workload

#: The condition that names a field which has no or less effect on this engine.
NOT_ENFORCED = "NotEnforced"
#: The condition that names what keeps the pods apart from their machine; False where nothing does.
ISOLATION = "Isolation"


def _expose_nothing(entry: WorkloadEntry) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """On an engine that serves no URLs."""
    return (), ()


class PhaseInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the decision needs to know beyond the workload itself."""

    outcome: Callable[[Sequence[SetState]], Outcome | None]
    review: Callable[[PodSet], Review]
    retry_delay: Millis
    max_retry_delay: Millis
    #: Whether there is still a node of that name on which something may start.
    has_node: Callable[[str], bool] = lambda node: True
    #: What the requests to a workload amount to.
    load: Callable[[str], Load] = lambda workload_id: NO_LOAD
    #: Claims the URLs that a new workload exposes: what they are called, and which cannot be had.
    expose: Callable[[WorkloadEntry], tuple[tuple[str, ...], tuple[tuple[str, str], ...]]] = _expose_nothing


def decide(entry: WorkloadEntry, reports: Iterable[PodReport], now: Millis, rules: PhaseInputs) -> Draft:
    """Everything that follows now for one workload."""
    draft = Draft(entry, now)
    if is_to_be_reviewed(entry.workload):
        decide_review(draft, rules)
    for report in reports:
        apply_pod_report(draft, report, rules.retry_delay, rules.max_retry_delay)
    load = rules.load(entry.workload.id)
    if entry.revises:
        revise(draft, load, rules.review)
    _decide_for_desired_phase(draft, rules, load)
    enforce_time_limit(draft)
    count_running(draft)
    return draft


def is_to_be_reviewed(workload: Workload) -> bool:
    """When it is new; one that waited for names, when it has them all."""
    if workload.waits_for:
        return False
    return workload.phase is Phase.CREATING or (workload.phase is Phase.PENDING and _waited(workload))


def _waited(workload: Workload) -> bool:
    return any(condition.type == WAITS_FOR_NAMES and condition.status == "True" for condition in workload.conditions)


def decide_review(draft: Draft, rules: PhaseInputs) -> None:
    """Before its start: which fields have no effect on this engine, and which it must not start without."""
    reviews = [rules.review(podset) for podset in draft.entry.podsets]
    notes = [(NOT_ENFORCED, field, why) for review in reviews for field, why in review.advisory]
    urls, taken = rules.expose(draft.entry)
    if urls:
        draft.set(urls=urls)
    refused = [*((field, why) for review in reviews for field, why in review.refused), *taken]
    notes += [("NotProvided", field, why) for field, why in refused]
    notes += [] if refused else [(ISOLATION, *review.isolation) for review in reviews if review.isolation]
    if refused:
        draft.fatal = "It cannot start here: " + "; ".join(f"{field}: {why}" for field, why in refused)
    conditions = tuple(
        Condition(type=type, status=_status(type, field), reason=field, message=why, last_transition_time=draft.now)
        for type, field, why in dict.fromkeys(notes)
    )
    if _waited(draft.workload):
        draft.set_phase(Phase.PENDING, "Waits to be scheduled")
        found = Condition(type=WAITS_FOR_NAMES, status="False", last_transition_time=draft.now)
        before = tuple(one for one in draft.workload.conditions if one.type != WAITS_FOR_NAMES)
        draft.set(conditions=(*before, found))
    # One that is still new is looked at again with every report.
    known = {(one.type, one.reason, one.message) for one in draft.workload.conditions}
    new = tuple(one for one in conditions if (one.type, one.reason, one.message) not in known)
    if new:
        draft.set(conditions=draft.workload.conditions + new)


def _status(type: str, reason: str) -> str:
    return "False" if type == ISOLATION and reason == NO_ISOLATION else "True"


def _decide_for_desired_phase(draft: Draft, rules: PhaseInputs, load: Load) -> None:
    workload = draft.workload
    if workload.desired_phase is DesiredPhase.DELETED:
        _decide_deleted(draft)
    elif workload.phase in TERMINAL:
        _stop_leftovers(draft)
    elif (
        has_exceeded_time_limit(draft)
        or workload.desired_phase is DesiredPhase.STOPPED
        or workload.phase is Phase.STOPPING
    ):
        _decide_stopped(draft, rules, load)
    else:
        _decide_running(draft, rules, load)


def has_exceeded_time_limit(draft: Draft) -> bool:
    """Whether it has run for as long as its project allows; it is then stopped as if somebody had asked for it."""
    workload = draft.workload
    if workload.time_limit is None or workload.desired_phase is not DesiredPhase.RUNNING:
        return False
    if draft.running_time() < workload.time_limit:
        return False
    seconds = workload.time_limit // 1000
    draft.add_event("TimeLimit", f"It ran for the {seconds} s that its project allows and is stopped", source="control")
    draft.set(desired_phase=DesiredPhase.STOPPED)
    return True


def enforce_time_limit(draft: Draft) -> None:
    workload = draft.workload
    if workload.time_limit is not None and workload.phase in RUNNING_PHASES:
        draft.wake(draft.now + max(0, workload.time_limit - draft.running_time()))


def _decide_deleted(draft: Draft) -> None:
    draft.set_phase(Phase.DELETING, "Its pods are ending" if draft.active_pods() else "")
    _stop_all(draft, "delete")
    if not draft.active_pods() and not draft.workload.gone:
        draft.set(gone=True, delete_at=None)
        draft.add_event("Deleted", "Nothing of it is left; its record stays readable for some days", source="control")


def _decide_stopped(draft: Draft, rules: PhaseInputs, load: Load) -> None:
    if draft.workload.phase is Phase.STOPPED:
        return
    if _has_finished(draft, rules):
        return
    draft.set_phase(Phase.STOPPING, "Its pods are ending" if draft.active_pods() else "")
    _stop_all(draft, "suspend")
    if draft.active_pods():
        return
    draft.set_phase(Phase.STOPPED, "Suspended; resume starts it again from its beginning")
    draft.set(blocked_by=None, pending_messages=())
    if draft.workload.desired_phase is DesiredPhase.RUNNING:
        _decide_running(draft, rules, load)


def _has_finished(draft: Draft, rules: PhaseInputs) -> bool:
    """A pod that ends well within its grace counts, so a workload that is being stopped may still complete."""
    outcome = rules.outcome(set_states(draft))
    if outcome is None or outcome.phase is not Phase.COMPLETED or draft.workload.phase not in _FINISHING:
        return False
    _finish(draft, outcome)
    return True


_FINISHING = frozenset({Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED})


def _decide_running(draft: Draft, rules: PhaseInputs, load: Load) -> None:
    if draft.workload.phase is Phase.STOPPED:
        draft.set_phase(Phase.RESUMING, "Its pods are being made again")
        draft.set(run=draft.workload.run + 1, tallies={}, groups={})
    if draft.workload.waits_for and draft.workload.phase in (Phase.CREATING, Phase.PENDING, Phase.RESUMING):
        draft.set_phase(Phase.PENDING, f"Waits until its project has: {', '.join(draft.workload.waits_for)}")
    elif draft.workload.phase in (Phase.CREATING, Phase.RESUMING):
        draft.set_phase(Phase.PENDING, "Waits to be scheduled")
    if draft.workload.phase is Phase.TERMINATING and not _finish_eviction(draft, rules):
        return
    _fail_pods_on_lost_nodes(draft, rules)
    _stop_surplus(draft, load)
    outcome = Outcome(Phase.FAILED, draft.fatal) if draft.fatal else rules.outcome(set_states(draft))
    if outcome is None:
        _wait(draft)
    elif outcome.phase in TERMINAL:
        _finish(draft, outcome)
        return
    else:
        follow_outcome(draft, outcome)
    _restart_due(draft)
    for time in draft.workload.retries:
        if time > draft.now:
            draft.wake(time)


def _fail_pods_on_lost_nodes(draft: Draft, rules: PhaseInputs) -> None:
    """Pods that were to restart in place where there is no place any more: the scheduler finds them another."""
    gone = [pod for pod in draft.active_pods() if pod.restart_at is not None and not rules.has_node(pod.node)]
    for pod in gone:
        words = f"Pod {pod.name} cannot start again on node {pod.node}, which is no longer declared"
        draft.add_event("NodeGone", words, pod=pod, warning=True)
        stop_pod(draft, pod, "evict")
    if gone and not draft.active_pods() and draft.workload.phase in (*_FINISHING, Phase.UPDATING):
        draft.set_phase(Phase.TERMINATING, "Its node is no longer declared")
        draft.set_phase(Phase.PENDING, "Its node is no longer declared; waits to be scheduled again")


def _stop_surplus(draft: Draft, load: Load) -> None:
    """Pods of groups that are no longer wanted, the highest numbers, and of places that are not."""
    podsets = {podset.role: podset for podset in draft.entry.podsets}
    surplus = []
    for pod in draft.active_pods():
        podset = podsets[pod.role]
        if pod.group >= podset.groups or (podset.has_fixed_indices and pod.index >= podset.count):
            surplus.append(pod)
        elif pod.drain_until is not None and pod.phase is PodPhase.RUNNING:
            # It is wanted again before it had ended.
            draft.set_pod(pod, drain_until=None, stopping_for="")
    stop_when_answered(draft, surplus, load)
    most = max((podset.groups for podset in draft.entry.podsets), default=0)
    if any(group >= most for group in draft.workload.groups):
        kept = {group: tally for group, tally in draft.workload.groups.items() if group < most}
        draft.set(groups=kept)


def follow_outcome(draft: Draft, outcome: Outcome) -> None:
    """Take the phase that the pods amount to, by way of Initializing where the table asks for it."""
    phase = draft.workload.phase
    if outcome.phase is Phase.INITIALIZING and phase in (Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING):
        # Between the pods of a sweep, or two attempts of one: it goes on, and is no beginning.
        draft.set_phase(phase, outcome.message)
        return
    if phase is Phase.PENDING and outcome.phase is not Phase.INITIALIZING:
        draft.set_phase(Phase.INITIALIZING)
    draft.set_phase(outcome.phase, outcome.message)
    if outcome.phase is Phase.RUNNING and draft.workload.started_at is None:
        draft.set(started_at=draft.now)


def _wait(draft: Draft) -> None:
    """No pod runs or starts. One that never ran is Pending, one that did is Degraded until its next pod has a place."""
    workload = draft.workload
    if workload.phase in (Phase.RUNNING, Phase.UPDATING) and _wakes(draft):
        draft.set_phase(workload.phase, "A request woke it; its pods are on their way")
    elif workload.phase in (Phase.INITIALIZING, Phase.RUNNING, Phase.UPDATING):
        draft.set_phase(Phase.DEGRADED, _retry_message(draft) or "No pod runs; the next one waits for a place")


def _wakes(draft: Draft) -> bool:
    """Whether it had no pods because nobody asked, and nothing is known to stand in the way of the next."""
    is_scaled = any(podset.scaling is not None for podset in draft.entry.podsets)
    return is_scaled and not draft.active_pods() and draft.workload.blocked_by is None


def _retry_message(draft: Draft) -> str:
    workload = draft.workload
    if workload.retry_at is None or workload.retry_at <= draft.now:
        return ""
    wait = (workload.retry_at - draft.now) / 1000
    first = draft.entry.podsets[0]
    number = f"retry {workload.failed} of {first.backoff_limit}" if first.completions is not None else "another try"
    return f"{_last_failure(draft)}; {number} follows in {wait:.1f} s"


def _finish(draft: Draft, outcome: Outcome) -> None:
    finish(draft, outcome)
    _stop_leftovers(draft)


def finish(draft: Draft, outcome: Outcome) -> None:
    """The workload is at its end; what is left of its pods is the caller's business."""
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


def _finish_eviction(draft: Draft, rules: PhaseInputs) -> bool:
    """Whether the evicted pods are all gone, and the workload therefore Pending again (or at its end)."""
    if any(pod.stopping_for == "evict" for pod in draft.active_pods()):
        return False
    outcome = rules.outcome(set_states(draft))
    has_completed = outcome is not None and outcome.phase is Phase.COMPLETED
    borne, suffered = draft.entry.max_preemptions, draft.workload.preemptions
    if borne is not None and suffered > borne and not has_completed:
        times = "once" if suffered == 1 else f"{suffered} times"
        words = f"It was preempted {times}; terminateAfterPreemption or preemptionLimit asks for its end after {borne}"
        _finish(draft, Outcome(Phase.FAILED, words))
        return False
    draft.set_phase(Phase.PENDING, "Preempted; waits to be scheduled again")
    forget_successes(draft)
    return True


def _restart_due(draft: Draft) -> None:
    """Containers that restart in place, when their delay is over."""
    for pod in draft.active_pods():
        if pod.restart_at is None:
            continue
        if pod.restart_at > draft.now:
            draft.wake(pod.restart_at)
            continue
        draft.set_pod(pod, restart_at=None)


def _stop_all(draft: Draft, cause: str) -> None:
    for pod in draft.active_pods():
        stop_pod(draft, pod, cause)


def _stop_leftovers(draft: Draft) -> None:
    """What still runs when the workload has ended, unless it may go on by itself."""
    outliving = {podset.role for podset in draft.entry.podsets if podset.keeps_running}
    for pod in draft.active_pods():
        if pod.role not in outliving:
            stop_pod(draft, pod, "surplus")


def count_running(draft: Draft) -> None:
    active = draft.active_pods()
    running = sum(pod.phase in (PodPhase.RUNNING, PodPhase.STOPPING) for pod in active)
    gpu = round(sum(len(pod.gpu_devices) * pod.gpu_thousandths for pod in active) / 1000, 3)
    if (running, gpu) != (draft.workload.running_pods, draft.workload.allocated_gpu):
        draft.set(running_pods=running, allocated_gpu=gpu)


def set_states(draft: Draft, last_failure: str = "") -> list[SetState]:
    """How far each pod set has come; `last_failure` are the words of a pod that failed before this decision."""
    last_failure = _last_failure(draft) or last_failure
    by_role: dict[str, list[Pod]] = {podset.role: [] for podset in draft.entry.podsets}
    for pod in draft.active_pods():
        by_role[pod.role].append(pod)
    return [_set_state(draft, podset, by_role[podset.role], last_failure) for podset in draft.entry.podsets]


def _set_state(draft: Draft, podset: PodSet, active: Sequence[Pod], last_failure: str) -> SetState:
    pods = [pod for pod in active if not pod.stopping_for]
    running = [pod for pod in pods if pod.phase is PodPhase.RUNNING]
    starting = [pod for pod in pods if pod.phase is PodPhase.STARTING and pod.restart_at is None]
    tally = draft.workload.tally(podset.role)
    return SetState(
        role=podset.role,
        podset=podset,
        starting=len(starting),
        running=len(running),
        ready=sum(pod.ready for pod in running),
        lapsed=sum(pod.ready_at is not None and not pod.ready for pod in running),
        ending=len(active) - len(pods),
        succeeded=tally.succeeded,
        failed=tally.failed,
        last_failure=last_failure,
        blocked=draft.workload.blocked_by is not None,
        groups=_group_states(podset, starting, running, active) if podset.groups > 1 or podset.gang else (),
    )


def _group_states(
    podset: PodSet, starting: Iterable[Pod], running: Sequence[Pod], active: Iterable[Pod]
) -> tuple[GroupState, ...]:
    begun = Counter(pod.group for pod in starting)
    running_in = Counter(pod.group for pod in running)
    ready = Counter(pod.group for pod in running if pod.ready)
    ending = Counter(pod.group for pod in active if pod.stopping_for)
    return tuple(
        GroupState(starting=begun[group], running=running_in[group], ready=ready[group], ending=ending[group])
        for group in range(podset.groups)
    )


def _last_failure(draft: Draft) -> str:
    """The words of the pod that failed last: from this decision, or kept in the record from an earlier one."""
    failures = [pod for pod in draft.pods.values() if pod.message and (pod.phase is PodPhase.FAILED or pod.restart_at)]
    return failures[-1].message if failures else ""


#: A pod set by its role, and a group of it.
Part = tuple[str, int]


def count_missing_pods(entry: WorkloadEntry, now: Millis) -> Mapping[Part, int]:
    """How many further pods each group of each pod set wants a place for now."""
    workload = entry.workload
    if workload.desired_phase is not DesiredPhase.RUNNING or workload.phase not in _PLACEABLE or workload.waits_for:
        return {}
    active = Counter((pod.role, pod.group) for pod in entry.pods if not pod.has_ended)
    ending = {pod.group for pod in entry.pods if pod.phase is PodPhase.STOPPING}
    wanted: dict[Part, int] = {}
    for podset in entry.podsets:
        if not _is_time(workload.tally(podset.role).retry_at, now):
            continue
        for group in range(podset.groups):
            part = (podset.role, group)
            number = _wanted(workload, podset, active[part])
            if number > 0 and _may_begin(entry, podset, group, ending, now):
                wanted[part] = number
    return wanted


_PLACEABLE = frozenset({Phase.PENDING, Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})


def _is_time(at: Millis | None, now: Millis) -> bool:
    return at is None or at <= now


def _wanted(workload: Workload, podset: PodSet, active: int) -> int:
    open_places = podset.count - active
    if podset.completions is None:
        return open_places
    return min(open_places, podset.completions - workload.tally(podset.role).succeeded - active)


def _may_begin(entry: WorkloadEntry, podset: PodSet, group: int, ending: Iterable[int], now: Millis) -> bool:
    """Not while an older group of that number still ends or its time has not come, nor before what goes first."""
    if podset.restart_scope is RestartScope.GROUP:
        tally = entry.workload.groups.get(group)
        if group in ending or (tally is not None and not _is_time(tally.retry_at, now)):
            return False
    return not podset.starts_after or is_ready(entry, podset.starts_after, group)


def is_ready(entry: WorkloadEntry, role: str, group: int) -> bool:
    """Whether a group's pods of a set are all ready (its places, not those that are to be replaced)."""
    pods = [pod for pod in entry.pods if pod.role == role and pod.group == group and not pod.stopping_for]
    return len(pods) >= podset_of(entry.podsets, role).count and all(pod.ready for pod in pods)


def is_lost(pod: Pod, known: Iterable[str], has_node: Callable[[str], bool]) -> bool:
    """After a start: whether the engine knows nothing of a pod that had surely been started, or cannot be any more."""
    if pod.id in known or pod.restart_at is not None:
        return False
    return pod.phase in (PodPhase.RUNNING, PodPhase.STOPPING) or not has_node(pod.node)


def report_lost(pod: Pod) -> PodReport:
    """Stands for the report that an engine cannot give of a pod it has no trace of."""
    return PodReport(
        pod_id=pod.id,
        workload_id=pod.workload_id,
        attempt=pod.attempt,
        state=PodState.LOST,
        reason="SupervisorLost",
        message="The engine has no trace of it",
    )
