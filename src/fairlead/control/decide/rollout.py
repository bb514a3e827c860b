"""Rolls out changes of a serving workload as revisions: created, judged, promoted, drained. Pure.

Called by the phase machine after the reports are written into the pods, for kinds whose changes roll out. Only the
record counts, so a server that was killed in the middle of a rollout continues it.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence

import msgspec

from fairlead.control.decide.autoscale import Load, ScaleDecision, ScaleState, decide_replicas
from fairlead.control.decide.draft import Draft
from fairlead.control.decide.expand import base_role, expand_spec, podsets_of, podsets_of_revision
from fairlead.control.decide.pods.reports import START_ERROR
from fairlead.engines.base import Review
from fairlead.kinds import runs
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.scaling import INITIALIZATION, Scaling
from fairlead.model.records.phase import TERMINAL, DesiredPhase, Phase, PodPhase
from fairlead.model.records.revision import Revision, Stage
from fairlead.model.records.workload import Condition, Pod, Workload

#: The condition that names the newest revision when it has failed.
FAILED_REVISION = "RevisionFailed"
#: Phases in which it is not the fault of a revision that it has no pods.
_EXCUSED = frozenset({Phase.PENDING, Phase.TERMINATING, Phase.STOPPING, Phase.STOPPED, Phase.RESUMING})


def revise(
    draft: Draft, load: Load, review: Callable[[PodSet], Review], scaled: Mapping[str, int] | None = None
) -> None:
    """Bring the revisions and their pod sets in line with the spec, the pods and the load.

    `scaled` is the number of pods by role that a cluster wants, if it scales the workload itself.
    """
    workload = draft.workload
    if workload.desired_phase is not DesiredPhase.RUNNING or workload.phase in TERMINAL or workload.waits_for:
        return
    _revise_for_spec(draft, review)
    for revision in draft.workload.revisions if scaled is not None else ():
        _copy_cluster_replicas(draft, revision, scaled or {})
    _judge_starting(draft)
    if scaled is None:
        _scale_serving(draft, load)
    _forget_drained(draft)
    _set_phases(draft)
    draft.entry = msgspec.structs.replace(draft.entry, podsets=podsets_of(draft.workload))


def _at(draft: Draft, stage: Stage) -> Revision | None:
    return next((each for each in draft.workload.revisions if each.stage is stage), None)


def _revise_for_spec(draft: Draft, review: Callable[[PodSet], Review]) -> None:
    """A spec with other pods than the newest revision becomes a revision; any other change updates the newest."""
    workload = draft.workload
    newest = workload.revisions[-1] if workload.revisions else None
    if newest is not None and bytes(newest.spec) == bytes(workload.spec):
        return
    if newest is not None and newest.stage is not Stage.DRAINING and _means_same_pods(draft, newest):
        changed = msgspec.structs.replace(newest, spec=workload.spec)
        scaling = _scaling(draft, changed)
        bounded = min(max(changed.replicas, scaling.min_pods), scaling.max_pods) if scaling else changed.replicas
        draft.set_revision(msgspec.structs.replace(changed, replicas=bounded))
        return
    _make(draft, newest, review)


def _means_same_pods(draft: Draft, revision: Revision) -> bool:
    workload = draft.workload
    before, after = (expand_spec(workload.kind, bytes(spec)).podsets for spec in (revision.spec, workload.spec))
    return revision.node_pools == workload.node_pools and _plain(before) == _plain(after)


def _plain(podsets: Sequence[PodSet]) -> list[PodSet]:
    """The sets without the number of their pods."""
    replace = msgspec.structs.replace
    return [podset if podset.scaling is None else replace(podset, count=0, scaling=None) for podset in podsets]


def _make(draft: Draft, newest: Revision | None, review: Callable[[PodSet], Review]) -> None:
    workload, now = draft.workload, draft.now
    number = 1 if newest is None else newest.number + 1
    podsets = expand_spec(workload.kind, bytes(workload.spec)).podsets
    serving = _at(draft, Stage.SERVING)
    replicas = podsets[0].count
    if serving is not None and podsets[0].scaling is not None:
        replicas = min(max(serving.replicas, replicas), podsets[0].scaling.max_pods)
    revision = new_revision(workload, number, replicas, now)
    if newest is not None:
        revision = msgspec.structs.replace(revision, started_at=now)
    before = _at(draft, Stage.STARTING)
    if before is not None:
        _drain(draft, before, Phase.STOPPED, f"Replaced by revision {number} before it was ready")
    draft.set_revision(revision)
    if newest is None:
        _adopt(draft, revision)
        return
    draft.add_event(
        "RevisionCreated",
        f"Revision {number} created with {runs.pods(replicas)}",
        source="control",
        revision=revision.id,
    )
    refused = [note for podset in podsets for note in review(podset).refused]
    if refused:
        fields = "; ".join(f"{field}: {why}" for field, why in refused)
        _fail(draft, revision, f"it cannot start: {fields}")


def new_revision(workload: Workload, number: int, replicas: int, now: Millis) -> Revision:
    """A revision with the workload's present spec."""
    return Revision(
        id=str(uuid.uuid5(uuid.UUID(workload.id), str(number))),
        version=1,
        workload_id=workload.id,
        project_id=workload.project_id,
        number=number,
        name=f"{workload.name}-{number:05d}",
        spec=workload.spec,
        node_pools=workload.node_pools,
        replicas=replicas,
        created_at=now,
        phase_updated_at=now,
    )


def _adopt(draft: Draft, revision: Revision) -> None:
    """Pods that were created before revisions existed belong to the first."""
    roles = {base_role(podset.role): podset.role for podset in podsets_of_revision(draft.workload.kind, revision)}
    for pod in draft.active_pods():
        if pod.role in roles:
            draft.set_pod(pod, role=roles[pod.role], revision_id=revision.id)


def _members(draft: Draft, revision: Revision) -> list[Pod]:
    return [pod for pod in draft.active_pods() if pod.revision_id == revision.id]


def _judge_starting(draft: Draft) -> None:
    """Whether the revision that starts is ready, has failed, or needs more time."""
    starting = _at(draft, Stage.STARTING)
    if starting is None:
        return
    pods = _members(draft, starting)
    broken = next((pod for pod in pods if pod.reason == START_ERROR), None)
    ready = sum(pod.ready and pod.phase is PodPhase.RUNNING and not pod.stopping_for for pod in pods)
    if broken is not None:
        _fail(draft, starting, f"pod {broken.name} could not be started: {broken.message}")
    elif ready >= sum(podset.total for podset in podsets_of_revision(draft.workload.kind, starting)):
        _promote(draft, starting)
    elif pods or (starting.started_at is not None and draft.workload.phase not in _EXCUSED):
        _enforce_time_limit(draft, starting, pods, ready)
    elif starting.started_at is not None:
        # Suspended, evicted or queued: the time limit for its start begins again with its next pod.
        draft.set_revision(msgspec.structs.replace(starting, started_at=None))


def _enforce_time_limit(draft: Draft, starting: Revision, pods: Sequence[Pod], ready: int) -> None:
    if starting.started_at is None:
        # Until now it was queued, which does not count against its time limit.
        starting = msgspec.structs.replace(starting, started_at=draft.now)
        draft.set_revision(starting)
    scaling = _scaling(draft, starting)
    allowed = scaling.initialization if scaling else INITIALIZATION
    due = (starting.started_at or draft.now) + allowed
    if draft.now < due:
        draft.wake(due)
        return
    last = next((f" Pod {pod.name}: {pod.message}." for pod in pods if pod.message), "")
    _fail(draft, starting, f"{ready} of {runs.pods(starting.replicas)} were ready after {allowed // 1000} s.{last}")


def _promote(draft: Draft, revision: Revision) -> None:
    """It is ready: requests go to it from now on, and the previous revision drains."""
    before = _at(draft, Stage.SERVING)
    if before is not None:
        _drain(draft, before, Phase.STOPPED, f"Replaced by revision {revision.number}")
    serving = msgspec.structs.replace(revision, stage=Stage.SERVING, serving_since=draft.now)
    draft.set_revision(serving)
    if revision.number > 1:
        draft.add_event(
            "RevisionReady", f"Revision {revision.number} is serving", source="control", revision=revision.id
        )
    _set_condition(draft, None)


def _fail(draft: Draft, revision: Revision, why: str) -> None:
    """It is stopped. The previous revision keeps serving; without one, the workload fails."""
    serving = _at(draft, Stage.SERVING)
    message = f"Revision {revision.number} failed: {why}"
    _drain(draft, revision, Phase.FAILED, message)
    if serving is None:
        draft.fatal = draft.fatal or message
        return
    draft.add_event("RevisionFailed", message, warning=True, source="control", revision=revision.id)
    _set_condition(draft, f"{message.rstrip('.')}. Revision {serving.number} keeps serving")


def _set_condition(draft: Draft, message: str | None) -> None:
    others = tuple(each for each in draft.workload.conditions if each.type != FAILED_REVISION)
    if message is not None:
        failed = Condition(type=FAILED_REVISION, status="True", message=message, last_transition_time=draft.now)
        others = (*others, failed)
    if others != draft.workload.conditions:
        draft.set(conditions=others)


def _drain(draft: Draft, revision: Revision, phase: Phase, message: str) -> None:
    draft.set_revision(
        msgspec.structs.replace(
            revision,
            stage=Stage.DRAINING,
            replicas=0,
            phase=phase,
            phase_message=message,
            phase_updated_at=draft.now,
        )
    )


def _scaling(draft: Draft, revision: Revision) -> Scaling | None:
    podsets = expand_spec(draft.workload.kind, bytes(revision.spec)).podsets
    return next((podset.scaling for podset in podsets if podset.scaling is not None), None)


def _scale_serving(draft: Draft, load: Load) -> None:
    serving = _at(draft, Stage.SERVING)
    scaling = None if serving is None else _scaling(draft, serving)
    if serving is None or scaling is None:
        return
    if not draft.workload.urls and serving.replicas >= scaling.min_pods:
        # Requests are counted only if they come through a URL.
        return
    ready = sum(pod.ready and not pod.stopping_for for pod in _members(draft, serving))
    state = ScaleState(
        replicas=serving.replicas,
        ready=ready,
        serving_since=serving.serving_since or 0,
        low_since=serving.low_since,
        low_peak=serving.low_peak,
    )
    wanted = decide_replicas(scaling, load, state, draft.now)
    if wanted.recheck_at is not None:
        draft.wake(wanted.recheck_at)
    _set_replicas(draft, serving, wanted)


def _copy_cluster_replicas(draft: Draft, revision: Revision, scaled: Mapping[str, int]) -> None:
    """As many as the cluster wants; it does not say why."""
    number = next(
        (scaled[one.role] for one in podsets_of_revision(draft.workload.kind, revision) if one.role in scaled), 0
    )
    if revision.stage is not Stage.DRAINING and number not in (0, revision.replicas):
        draft.set_revision(msgspec.structs.replace(revision, replicas=number))


def _set_replicas(draft: Draft, serving: Revision, wanted: ScaleDecision) -> None:
    changed = msgspec.structs.replace(
        serving, replicas=wanted.replicas, low_since=wanted.low_since, low_peak=wanted.low_peak
    )
    if changed == serving:
        return
    draft.set_revision(changed)
    if wanted.replicas != serving.replicas:
        message = f"From {runs.pods(serving.replicas)} to {wanted.replicas}: {wanted.reason or 'its bounds changed'}"
        draft.add_event("Scaled", message, source="control", revision=serving.id)


def _forget_drained(draft: Draft) -> None:
    """Drop drained revisions without pods. The newest stays, because the spec is compared with it."""
    revisions_with_pods = {pod.revision_id for pod in draft.active_pods()}
    newest = draft.workload.revisions[-1:]
    revisions = tuple(
        each
        for each in draft.workload.revisions
        if each.stage is not Stage.DRAINING or each.id in revisions_with_pods or each in newest
    )
    if revisions != draft.workload.revisions:
        draft.set(revisions=revisions)


def _set_phases(draft: Draft) -> None:
    """Write the phases of the revisions, which follow from their pods."""
    for revision in draft.workload.revisions:
        if revision.stage is Stage.DRAINING:
            continue
        phase, message = _phase(draft, revision)
        if (phase, message) != (revision.phase, revision.phase_message):
            at: Millis = draft.now if phase is not revision.phase else revision.phase_updated_at
            draft.set_revision(
                msgspec.structs.replace(revision, phase=phase, phase_message=message, phase_updated_at=at)
            )


def _phase(draft: Draft, revision: Revision) -> tuple[Phase, str]:
    pods = [pod for pod in _members(draft, revision) if not pod.stopping_for]
    ready = sum(pod.ready for pod in pods)
    if revision.stage is Stage.STARTING:
        phase = Phase.INITIALIZING if pods else Phase.PENDING
    else:
        phase = Phase.RUNNING if ready or not revision.replicas else Phase.DEGRADED
    return phase, f"{ready} of {runs.pods(revision.replicas)} ready"
