"""From the objects of one workload to the report of it: phases, ends and waits in our words. Pure.

`engine.py` calls it with what its watches hold. Reasons and messages stay as the cluster has them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import msgspec

from fairlead.engines.base import ClusterPod, SchedulingBlocker, WorkloadReport
from fairlead.engines.kubernetes.client.objects import (
    ContainerState,
    ContainerStatus,
    Event,
    Metadata,
    Pod,
    PodGroup,
    Runner,
    SchedulingCondition,
    Terminated,
    condition,
    millis,
)
from fairlead.engines.kubernetes.observe.bucket_uploads import (
    FETCH_ERROR,
    correct_counts,
    is_upload_result_missing,
    is_uploading,
    upload_error,
)
from fairlead.engines.kubernetes.observe.events import find_pod_creation_errors
from fairlead.engines.kubernetes.observe.operator_jobs import (
    decide_recreation,
    has_operator,
    launch_choices_of,
    may_be_preemption,
)
from fairlead.engines.kubernetes.render.context import (
    DEFAULT_POOL,
    GPU_GROUP_LABEL,
    GROUP_ANNOTATION,
    MAIN,
    RUN_LABEL,
    labelled_pool,
    role_of,
)
from fairlead.engines.kubernetes.render.knative import VISIBILITY
from fairlead.engines.kubernetes.render.kubeflow import ROLES
from fairlead.engines.kubernetes.render.pod_group import INDEX_LABEL, count_failures, find_end, is_fairlead_group
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.records.phase import ENDED, Phase, PodPhase

_LWS = "leaderworkerset.sigs.k8s.io"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_REPLICA_INDEX = "training.kubeflow.org/replica-index"
UNSCHEDULABLE = "UnschedulableOnNodePool"


class WorkloadObjectsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What is in the cluster of one workload."""

    runners: Collection[Runner] = ()
    pods: Collection[Pod] = ()
    groups: Collection[PodGroup] = ()
    #: What controllers said of pods that they could not make.
    events: Collection[Event] = ()
    #: Kinds of the objects that make pods, and the attempts from which the scheduler took pods away.
    kinds: frozenset[str] = frozenset()
    disrupted: frozenset[int] = frozenset()
    #: Uids of runners that were over when the pods were last known to be as the API server had them.
    settled: frozenset[str] = frozenset()


def render_report(workload_id: str, held: WorkloadObjectsSeen, podsets: Sequence[PodSet] = ()) -> WorkloadReport:
    """The report of what is there now; what the engine itself knows of its orders is added by the engine.

    The pod sets are asked for where nothing in the cluster knows when their pods are done.
    """
    runners = [runner for runner in held.runners if runner.metadata.deletion_timestamp is None]
    own = next(
        (group for group in held.groups if is_fairlead_group(group) and group.metadata.deletion_timestamp is None), None
    )
    makers = (*runners, *((own,) if own else ()))
    # What somebody removed is there for as long as its pods are.
    run = max((run_of(one.metadata) for one in makers or filter(is_alive, held.pods)), default=0)
    current = [runner for runner in runners if run_of(runner.metadata) == run]
    pods = [pod for pod in held.pods if run in (0, run_of(pod.metadata))]
    if own is not None:
        return _report_group(workload_id, own, held, pods, podsets)
    job = next((runner for runner in current if has_operator(runner)), None)
    if job is not None:
        return _report_job(workload_id, job, held, pods, podsets)
    ended, message = (None, "") if find_controller_ahead_of_pods(held, podsets) else _end_of(current, pods)
    seen = _render_pods(pods, held.groups)
    knative = next((runner for runner in current if is_knative_service(runner)), None)
    succeeded, failed = correct_counts(
        {_role(runner): runner.status.succeeded for runner in current if runner.status.succeeded},
        {_role(runner): runner.status.failed for runner in current if runner.status.failed},
        pods,
    )
    return WorkloadReport(
        workload_id=workload_id,
        run=run,
        pods=seen,
        succeeded=succeeded,
        failed=failed,
        are_counts_known=bool(makers),
        ended=ended,
        message=message,
        waits=() if ended else (*_waits(current, held, pods), *_knative_waits(knative)),
        replicas_wanted=_scaled(seen) if knative is not None else None,
    )


def find_controller_ahead_of_pods(held: WorkloadObjectsSeen, podsets: Sequence[PodSet]) -> Metadata | None:
    """What says that it is over while its pods may be known only as they were before, and tell another end."""
    for runner in held.runners:
        metadata = runner.metadata
        if metadata.deletion_timestamp is not None or metadata.uid in held.settled:
            continue
        is_unsure = has_operator(runner) and may_be_preemption(podsets, runner, held.disrupted)
        # Looked at one by one only where it matters.
        pods = (pod for pod in held.pods if run_of(pod.metadata) == run_of(metadata))
        if is_unsure or is_upload_result_missing(podsets, runner, pods):
            return metadata
    return None


def is_knative_service(runner: Runner) -> bool:
    return VISIBILITY in runner.metadata.labels


def _scaled(pods: Iterable[ClusterPod]) -> dict[str, int]:
    """How many pods Knative has decided on, by role: as many as it keeps."""
    return dict(Counter(pod.role for pod in pods if pod.phase not in (*ENDED, PodPhase.STOPPING)))


def _knative_waits(service: Runner | None) -> Iterable[SchedulingBlocker]:
    """What Knative says while its Service is not ready; that it is still on its way is no reason."""
    said = [] if service is None else [one for one in service.status.conditions if one.type == "Ready"]
    return [
        SchedulingBlocker(code=one.reason or "NotReady", message=f"Knative: {one.message}")
        for one in said
        if one.status == "False"
    ]


def _report_group(
    workload_id: str, own: PodGroup, held: WorkloadObjectsSeen, pods: Sequence[Pod], podsets: Sequence[PodSet]
) -> WorkloadReport:
    failures = count_failures(own, pods)
    end = find_end(own, podsets, pods)
    succeeded = Counter(role_of(pod.metadata.labels) for pod in pods if pod.status.phase == "Succeeded")
    if podsets and end is not None and end[0] is Phase.COMPLETED:
        # Pods may be gone that have ended well.
        first = podsets[0]
        succeeded[first.role] = max(succeeded[first.role], first.completions or first.count)
    return WorkloadReport(
        workload_id=workload_id,
        run=run_of(own.metadata),
        pods=_render_pods(pods, held.groups),
        succeeded=dict(succeeded),
        failed={podsets[0].role: failures} if podsets and failures else {},
        # Of which role failures are is known from the pod sets.
        are_counts_known=bool(podsets),
        ended=end[0] if end else None,
        message=end[1] if end else "",
        waits=() if end else tuple(_waits((), held, pods)),
    )


def _report_job(
    workload_id: str, job: Runner, held: WorkloadObjectsSeen, pods: Sequence[Pod], podsets: Sequence[PodSet]
) -> WorkloadReport:
    """Of a job that an operator runs. Its failure is the end only when it is not to begin again."""
    begun = launch_choices_of(job.metadata)
    current = [pod for pod in pods if launch_choices_of(pod.metadata).attempt == begun.attempt]
    # An operator's job may be over while pods run on that are not its business.
    ended, message = _end_of((job,), [pod for pod in current if _has_main_exited(pod)])
    succeeded, failed = correct_counts(_counts(job, "succeeded"), _counts(job, "failed"), current)
    is_again = ended is Phase.FAILED and (
        not podsets or decide_recreation(podsets, job, begun.attempt in held.disrupted)
    )
    if is_again or find_controller_ahead_of_pods(held, podsets):
        ended, message = None, ""
    if podsets and podsets[0].restart_scope is RestartScope.GROUP:
        failures = begun.failures + (ended is Phase.FAILED)
        failed = {podsets[0].role: failures} if failures else {}
    waits = () if ended else tuple(_waits((job,), held, pods))
    return WorkloadReport(
        workload_id=workload_id,
        run=run_of(job.metadata),
        # Of an attempt before, pods are there whose end has not been seen yet.
        pods=_render_pods(pods, held.groups),
        succeeded=succeeded,
        failed=failed,
        are_counts_known=bool(podsets),
        ended=ended,
        message=message,
        waits=waits,
        # It may say in an event alone that it can make no pods.
        retrying_because="" if waits else _operator_not_started_message(job, held.kinds),
    )


def _operator_not_started_message(job: Runner, kinds: Iterable[str]) -> str:
    """What to say while its operator has said nothing of it: the first that they all say is that it was created."""
    if job.status.conditions:
        return ""
    kind = next(iter(kinds), "the job")
    return f"Waits for the operator of {kind} {job.metadata.name}, which has taken no notice of it yet"


def _counts(job: Runner, member: str) -> dict[str, int]:
    """By our roles what the operator counts by its types."""
    found = {
        ROLES.get(type.lower(), type): numbers.get(member) for type, numbers in job.status.replica_statuses.items()
    }
    return {role: number for role, number in found.items() if number}


def run_of(metadata: Metadata) -> int:
    text = metadata.labels.get(RUN_LABEL, "")
    return int(text) if text.isdecimal() else 0


def is_alive(pod: Pod) -> bool:
    """Whether its containers may still run."""
    return pod.status.phase not in ("Succeeded", "Failed")


def _role(runner: Runner) -> str:
    return role_of(runner.metadata.labels)


def _age(pod: Pod) -> tuple[int, str]:
    return millis(pod.metadata.creation_timestamp) or 0, pod.metadata.name


def _end_of(runners: Iterable[Runner], pods: Collection[Pod]) -> tuple[Phase | None, str]:
    """Whether what makes the pods says that it is over: failed as soon as one is, complete when all are.

    It knows nothing of buckets: what they did not get back is a failure, and is known when the pods' ends are.
    """
    is_complete = True
    found = False
    for runner in runners:
        found = True
        conditions = runner.status.conditions
        failed = condition(conditions, "Failed")
        if failed is not None:
            return Phase.FAILED, ": ".join(text for text in (failed.reason, failed.message) if text)
        is_complete = is_complete and bool(condition(conditions, "Complete") or condition(conditions, "Succeeded"))
    if not found or not is_complete or is_uploading(pods):
        return None, ""
    is_lost = any(pod.status.reason == FETCH_ERROR for pod in pods)
    return (Phase.FAILED, "") if is_lost else (Phase.COMPLETED, "")


def _render_pods(pods: Iterable[Pod], groups: Iterable[PodGroup]) -> tuple[ClusterPod, ...]:
    """The oldest first, each in the node pool in which its group is."""
    pools = {group.metadata.name: labelled_pool(group.metadata.labels) for group in groups}
    return tuple(
        msgspec.structs.replace(
            seen, node_pool=pools.get(pod.metadata.annotations.get(GROUP_ANNOTATION, ""), seen.node_pool)
        )
        for pod in sorted(pods, key=_age)
        if (seen := render_pod(pod))
    )


def render_pod(pod: Pod) -> ClusterPod:
    labels = pod.metadata.labels
    main = _main(pod)
    terminated = _ended_container(main)
    phase = _phase(pod, main)
    eviction = condition(pod.status.conditions, "DisruptionTarget")
    reason, message = _reason_and_message(pod, main, terminated if phase in ENDED else None)
    if eviction is not None:
        reason, message = eviction.reason, eviction.message or eviction.reason
    group, index = _place(labels)
    code = terminated.exit_code if terminated is not None else None
    return ClusterPod(
        id=pod.metadata.uid,
        name=pod.metadata.name,
        role=role_of(labels),
        group=group,
        index=index,
        phase=phase,
        node=pod.spec.node_name,
        node_pool=labelled_pool(labels),
        gpu_groups=_gpu_groups(labels),
        created_at=millis(pod.metadata.creation_timestamp) or 0,
        started_at=_started(pod, main),
        ended_at=millis(terminated.finished_at) if terminated is not None and phase in ENDED else None,
        exit_code=code,
        signal=_signal(terminated) if terminated is not None else None,
        reason=reason,
        message=message,
        ready=phase is PodPhase.RUNNING and condition(pod.status.conditions, "Ready") is not None,
        restarts=main.restart_count if main is not None else 0,
        last_end=_last_end(main) if main is not None else "",
        cluster_phase=pod.status.phase,
        container=main_container_name(pod),
        eviction=message if eviction is not None else "",
    )


def _gpu_groups(labels: dict[str, str]) -> tuple[str, ...]:
    """The shared GPUs that the scheduler gave it: a label for each of several, or one for a single one."""
    several = sorted(value for key, value in labels.items() if key.startswith(f"{GPU_GROUP_LABEL}/"))
    return tuple(several) or ((labels[GPU_GROUP_LABEL],) if GPU_GROUP_LABEL in labels else ())


def main_container_name(pod: Pod) -> str:
    """The name of the container that runs the workload: where none is called so, the first is it."""
    names = [container.name for container in pod.spec.containers]
    return MAIN if MAIN in names or not names else names[0]


def _main(pod: Pod) -> ContainerStatus | None:
    main, statuses = main_container_name(pod), pod.status.container_statuses
    return next((status for status in statuses if status.name == main), statuses[0] if statuses else None)


def _has_main_exited(pod: Pod) -> bool:
    """Whether its own container has ended."""
    main = _main(pod)
    return main is not None and main.state.terminated is not None


def _ended_container(main: ContainerStatus | None) -> Terminated | None:
    return None if main is None else main.state.terminated or main.last_state.terminated


def _signal(terminated: Terminated) -> int | None:
    return terminated.signal or (terminated.exit_code - 128 if terminated.exit_code > 128 else None)


def _last_end(main: ContainerStatus) -> str:
    """How the container ended before it was started again."""
    last = main.last_state.terminated or main.state.terminated
    if not main.restart_count or last is None:
        return ""
    signal = _signal(last)
    words = f"exit code {last.exit_code}" + (f" (signal {signal})" if signal else "")
    return f"{last.reason}, {words}" if last.reason not in ("", "Error", "Completed") else words


def _phase(pod: Pod, main: ContainerStatus | None) -> PodPhase:
    if pod.status.phase == "Succeeded":
        return PodPhase.SUCCEEDED
    if pod.status.phase == "Failed":
        return PodPhase.FAILED
    if pod.metadata.deletion_timestamp is not None:
        return PodPhase.STOPPING
    if pod.status.phase == "Running" and (main is None or main.state.running is not None):
        return PodPhase.RUNNING
    # It has no node yet, its images are pulled, or its container waits for its next start.
    return PodPhase.STARTING


def _started(pod: Pod, main: ContainerStatus | None) -> int | None:
    state = ContainerState() if main is None else main.state
    if state.running is not None:
        return millis(state.running.started_at)
    if state.terminated is not None:
        return millis(state.terminated.started_at)
    if main is not None and main.last_state.terminated is not None:
        return millis(main.last_state.terminated.started_at)
    return millis(pod.status.start_time) if pod.status.phase == "Running" else None


def _reason_and_message(pod: Pod, main: ContainerStatus | None, terminated: Terminated | None) -> tuple[str, str]:
    """Why it does not start, or how it ended, in the words of whoever knows."""
    if terminated is not None:
        message = terminated.message or pod.status.message
        if not message and terminated.exit_code:
            message = f"exit code {terminated.exit_code}"
            message = f"{terminated.reason}, {message}" if terminated.reason not in ("", "Error") else message
        lost = upload_error(pod)
        return terminated.reason or pod.status.reason, message if lost in message else f"{message}; {lost}"
    for status in (*pod.status.init_container_statuses, *((main,) if main is not None else ())):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
            return waiting.reason, waiting.message or waiting.reason
        failed = status.state.terminated
        if failed is not None and failed.exit_code and status is not main:
            return "InitError", f"container {status.name}: {failed.message or failed.reason}, code {failed.exit_code}"
    return pod.status.reason, pod.status.message


def _place(labels: dict[str, str]) -> tuple[int, int | None]:
    """Group and index, where the object that made the pod counts them."""
    group = labels.get(f"{_LWS}/group-index", "")
    worker = labels.get(f"{_LWS}/worker-index", "")
    if worker.isdecimal():
        # The leader is number 0 of its group, and the only one of its own set.
        return int(group or 0), max(0, int(worker) - 1)
    index = labels.get(_COMPLETION_INDEX) or labels.get(_REPLICA_INDEX) or labels.get(INDEX_LABEL, "")
    return int(group or 0), int(index) if index.isdecimal() else None


def _waits(
    runners: Collection[Runner], held: WorkloadObjectsSeen, pods: Collection[Pod]
) -> Iterable[SchedulingBlocker]:
    """Why pods cannot be made, and why those without a node have none: per node pool, what the scheduler said last."""
    named = {pod.metadata.annotations.get(GROUP_ANNOTATION, "") for pod in pods if is_waiting(pod)}
    latest: dict[str, SchedulingCondition] = {}
    for group in held.groups:
        if group.metadata.name not in named:
            continue
        latest |= {one.node_pool or DEFAULT_POOL: one for one in refusals_of(group)}
    unplaced = [_wait(pool, one) for pool, one in latest.items()]
    return [*find_pod_creation_errors(runners, held.kinds, held.events, pods), *unplaced]


def refusals_of(group: PodGroup) -> list[SchedulingCondition]:
    """What schedulers have said against it, of whatever pool."""
    return [one for one in group.status.scheduling_conditions if one.type == UNSCHEDULABLE and one.status == "True"]


def is_waiting(pod: Pod) -> bool:
    return not pod.spec.node_name and pod.metadata.deletion_timestamp is None


def _wait(pool: str, one: SchedulingCondition) -> SchedulingBlocker:
    first = one.reasons[0] if one.reasons else None
    details = first.details.queue_details if first and first.details else None
    return SchedulingBlocker(
        code=first.reason if first and first.reason else one.reason or "Unschedulable",
        message=" ".join(each.message for each in one.reasons) or one.message or "The scheduler found no place for it",
        node_pool=pool,
        queue=details.name if details else "",
    )
