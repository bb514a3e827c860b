"""From the objects of one workload to its report: pods, counts, the end, what blocks it. Pure.

The engine calls it with the objects in the cache. Reasons and messages stay as the cluster has them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from fairlead.engines.base import ClusterPod, SchedulingBlocker, WorkloadReport
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.array_jobs import has_tasks_left
from fairlead.engines.kubernetes.observe.bucket_uploads import (
    FETCH_ERROR,
    correct_counts,
    is_upload_result_missing,
    is_uploading,
)
from fairlead.engines.kubernetes.observe.disruptions import (
    count_failures_of_job,
    has_exceeded_limit,
    is_wrongly_failed,
)
from fairlead.engines.kubernetes.observe.events import find_pod_creation_errors
from fairlead.engines.kubernetes.observe.node_scaling import add_scaling
from fairlead.engines.kubernetes.observe.operator_jobs import has_operator, launch_choices_of, may_be_preemption
from fairlead.engines.kubernetes.observe.pod_group import count_failures, find_end, is_fairlead_group
from fairlead.engines.kubernetes.observe.pods import has_main_exited, render_pods
from fairlead.engines.kubernetes.observe.signalled_ends import JOB_UID, count_signalled, has_succeeded
from fairlead.engines.kubernetes.observe.workload import (
    ObservedWorkload,
    is_alive,
    is_waiting,
    refusals_of,
    run_of,
)
from fairlead.engines.kubernetes.render.knative import VISIBILITY
from fairlead.engines.kubernetes.render.kubeflow import ROLE_BY_REPLICA_TYPE
from fairlead.engines.kubernetes.render.labels import DEFAULT_POOL, GROUP_ANNOTATION, role_of
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.records.phase import ENDED, Phase, PodPhase


class _CurrentRun(msgspec.Struct, frozen=True):
    """The objects of the latest run."""

    workload_id: str
    run: int
    runners: list[objects.Runner]
    pods: list[objects.Pod]
    seen: ObservedWorkload
    podsets: Sequence[PodSet]


def render_report(
    workload_id: str,
    seen: ObservedWorkload,
    podsets: Sequence[PodSet] = (),
    recreated: Collection[str] = frozenset(),
) -> WorkloadReport:
    """The report of what the cluster has; the engine adds the state of its own orders.

    The pod sets tell when pods are complete that have no controller in the cluster. `recreated` has the uids of failed
    jobs that restart: their failure is not the end.
    """
    runners = [runner for runner in seen.runners if runner.metadata.deletion_timestamp is None]
    groups = [group for group in seen.groups if group.metadata.deletion_timestamp is None]
    own = next((group for group in groups if is_fairlead_group(group)), None)
    controllers = (*runners, *((own,) if own else ()))
    # A controller that somebody deleted leaves its pods for a while.
    run = max((run_of(one.metadata) for one in controllers or filter(is_alive, seen.pods)), default=0)
    current = _CurrentRun(
        workload_id,
        run,
        [runner for runner in runners if run_of(runner.metadata) == run],
        [pod for pod in seen.pods if run in (0, run_of(pod.metadata))],
        seen,
        podsets,
    )
    job = next((runner for runner in current.runners if has_operator(runner)), None)
    if own is not None:
        report = _report_pod_group(current, own)
    elif job is not None:
        report = _report_operator_job(current, job, is_recreated=job.metadata.uid in recreated)
    else:
        report = _report_controllers(current)
    return msgspec.structs.replace(report, evicted=_render_evicted(current)) if seen.evicted else report


def _render_evicted(current: _CurrentRun) -> tuple[ClusterPod, ...]:
    pods = render_pods(
        (pod for pod in current.seen.evicted if run_of(pod.metadata) == current.run), current.seen.groups
    )
    return tuple(pod if pod.phase in ENDED else msgspec.structs.replace(pod, phase=PodPhase.STOPPED) for pod in pods)


def _report_controllers(current: _CurrentRun) -> WorkloadReport:
    """Of Jobs, Deployments, a LeaderWorkerSet or a Knative Service."""
    wrong = [runner for runner in current.runners if is_wrongly_failed(current.podsets, runner, current.seen)]
    ended, message = _find_end([runner for runner in current.runners if runner not in wrong], current.pods)
    signalled = {runner.metadata.uid: count_signalled(current.seen.signalled, runner) for runner in current.runners}
    is_short = any(signalled.values()) or any(has_tasks_left(runner) for runner in current.runners)
    is_wrong = ended is Phase.COMPLETED and (bool(wrong) or is_short)
    if is_wrong or find_controller_ahead_of_pods(current.seen, current.podsets):
        ended, message = None, ""
    pods = render_pods(current.pods, current.seen.groups)
    knative = next((runner for runner in current.runners if is_knative_service(runner)), None)
    succeeded, failed = correct_counts(
        {_role(runner): number for runner in current.runners if (number := _count_succeeded(runner, signalled))},
        {
            _role(runner): number
            for runner in current.runners
            if (number := count_failures_of_job(runner, current.seen))
        },
        current.pods,
    )
    return WorkloadReport(
        workload_id=current.workload_id,
        run=current.run,
        pods=pods,
        succeeded=succeeded,
        failed=failed,
        are_counts_known=bool(current.runners),
        ended=ended,
        message=message,
        waits=() if ended else (*_blockers(current, current.runners), *_knative_blockers(knative)),
        replicas_wanted=_count_kept(pods) if knative is not None else None,
    )


def _count_succeeded(runner: objects.Runner, signalled: Mapping[str, int]) -> int:
    """In this controller and the Jobs before it, which were deleted to be created again."""
    before = launch_choices_of(runner.metadata).succeeded
    return before + max(0, runner.status.succeeded - signalled[runner.metadata.uid])


def _report_pod_group(current: _CurrentRun, own: objects.PodGroup) -> WorkloadReport:
    podsets = current.podsets
    failures = count_failures(own, current.pods)
    end = find_end(own, podsets, current.pods)
    succeeded = Counter(role_of(pod.metadata.labels) for pod in current.pods if has_succeeded(pod))
    if podsets and end is not None and end[0] is Phase.COMPLETED:
        # Pods that succeeded may be deleted already.
        first = podsets[0]
        succeeded[first.role] = max(succeeded[first.role], first.completions or first.count)
    return WorkloadReport(
        workload_id=current.workload_id,
        run=run_of(own.metadata),
        pods=render_pods(current.pods, current.seen.groups),
        succeeded=dict(succeeded),
        failed={podsets[0].role: failures} if podsets and failures else {},
        # Only the pod sets tell which role the failures belong to.
        are_counts_known=bool(podsets),
        ended=end[0] if end else None,
        message=end[1] if end else "",
        waits=() if end else tuple(_blockers(current, ())),
    )


def _report_operator_job(current: _CurrentRun, job: objects.Runner, *, is_recreated: bool) -> WorkloadReport:
    podsets, launch = current.podsets, launch_choices_of(job.metadata)
    pods = [pod for pod in current.pods if launch_choices_of(pod.metadata).attempt == launch.attempt]
    # The job may be over while pods run on that the operator does not count.
    ended, message = _find_end((job,), [pod for pod in pods if has_main_exited(pod)])
    succeeded, failed = correct_counts(_counts(job, "succeeded"), _counts(job, "failed"), pods)
    if (ended is not None and is_recreated) or find_controller_ahead_of_pods(current.seen, podsets):
        ended, message = None, ""
    if podsets and podsets[0].restart_scope is RestartScope.GROUP:
        failures = launch.failures + (ended is Phase.FAILED)
        failed = {podsets[0].role: failures} if failures else {}
    waits = () if ended else tuple(_blockers(current, (job,)))
    return WorkloadReport(
        workload_id=current.workload_id,
        run=run_of(job.metadata),
        # Pods of an earlier attempt are among them until their end is seen.
        pods=render_pods(current.pods, current.seen.groups),
        succeeded=succeeded,
        failed=failed,
        are_counts_known=bool(podsets),
        ended=ended,
        message=message,
        waits=waits,
        # An operator that cannot create pods may report that in an event alone.
        retrying_because="" if waits else _operator_not_started_message(job, current.seen.kinds),
    )


def find_controller_ahead_of_pods(seen: ObservedWorkload, podsets: Sequence[PodSet]) -> objects.Metadata | None:
    """A controller that has ended while the watch on pods may be behind, and the pods may tell another end."""
    for runner in seen.runners:
        metadata = runner.metadata
        if metadata.deletion_timestamp is not None or metadata.uid in seen.settled:
            continue
        is_unsure = has_operator(runner) and may_be_preemption(podsets, runner, seen.disrupted)
        # A generator, because only few workloads need the pods here.
        pods = (pod for pod in seen.pods if run_of(pod.metadata) == run_of(metadata))
        # A pod that was taken away may be among the failures.
        is_unsure = is_unsure or has_exceeded_limit(runner)
        if is_unsure or is_upload_result_missing(podsets, runner, pods) or _may_count_signalled(seen, runner):
            return metadata
    return None


def _may_count_signalled(seen: ObservedWorkload, runner: objects.Runner) -> bool:
    """Whether a Job has completed with a success that is not seen yet: its pod may have been told to stop."""
    if not is_complete(runner) or has_operator(runner):
        return False
    own = [pod for pod in seen.pods if pod.metadata.labels.get(JOB_UID) == runner.metadata.uid]
    known = sum(has_succeeded(pod) for pod in own) + count_signalled(seen.signalled, runner)
    return runner.status.succeeded > known and any(is_alive(pod) for pod in own)


def has_signalled_success(podsets: Sequence[PodSet], job: objects.Runner, seen: ObservedWorkload) -> bool:
    """Whether the operator wrongly counts a pod that decides the end of its job as a success."""
    deciding = podsets[0].role, launch_choices_of(job.metadata).attempt
    return any((one.role, one.attempt) == deciding for one in seen.signalled)


def is_knative_service(runner: objects.Runner) -> bool:
    return VISIBILITY in runner.metadata.labels


def _count_kept(pods: Iterable[ClusterPod]) -> dict[str, int]:
    """How many pods Knative wants by role: as many as it keeps."""
    return dict(Counter(pod.role for pod in pods if pod.phase not in (*ENDED, PodPhase.STOPPING)))


def _knative_blockers(service: objects.Runner | None) -> Iterable[SchedulingBlocker]:
    """Why Knative's Service is not ready; that it is still on its way is not a reason."""
    conditions = [] if service is None else [one for one in service.status.conditions if one.type == "Ready"]
    return [
        SchedulingBlocker(code=one.reason or "NotReady", message=f"Knative: {one.message}")
        for one in conditions
        if one.status == "False"
    ]


def _operator_not_started_message(job: objects.Runner, kinds: Iterable[str]) -> str:
    """Every operator reports first that it created the job; until then it has not seen it."""
    if job.status.conditions:
        return ""
    kind = next(iter(kinds), "job")
    return f"Waiting for the operator of {kind} {job.metadata.name}, which has not reacted to it yet"


def _counts(job: objects.Runner, member: str) -> dict[str, int]:
    """By our roles what the operator counts by its own types of pods."""
    counts = {
        ROLE_BY_REPLICA_TYPE.get(type.lower(), type): numbers.get(member)
        for type, numbers in job.status.replica_statuses.items()
    }
    return {role: count for role, count in counts.items() if count}


def _role(runner: objects.Runner) -> str:
    return role_of(runner.metadata.labels)


def _find_end(runners: Collection[objects.Runner], pods: Collection[objects.Pod]) -> tuple[Phase | None, str]:
    """Failed as soon as one controller has failed, completed when all have.

    Controllers know nothing of buckets. Files that were not uploaded are a failure, known once the pods have ended.
    """
    for runner in runners:
        failed = objects.condition(runner.status.conditions, "Failed")
        if failed is not None:
            return Phase.FAILED, ": ".join(text for text in (failed.reason, failed.message) if text)
    if not runners or not all(is_complete(runner) for runner in runners) or is_uploading(pods):
        return None, ""
    is_lost = any(pod.status.reason == FETCH_ERROR for pod in pods)
    return (Phase.FAILED, "") if is_lost else (Phase.COMPLETED, "")


def is_complete(runner: objects.Runner) -> bool:
    conditions = runner.status.conditions
    return bool(objects.condition(conditions, "Complete") or objects.condition(conditions, "Succeeded"))


def _blockers(current: _CurrentRun, runners: Collection[objects.Runner]) -> Iterable[SchedulingBlocker]:
    """Why pods cannot be created, and what the scheduler of each node pool said last about pods without a node."""
    seen = current.seen
    group_names = {pod.metadata.annotations.get(GROUP_ANNOTATION, "") for pod in current.pods if is_waiting(pod)}
    latest: dict[str, objects.SchedulingCondition] = {}
    for group in seen.groups:
        if group.metadata.name in group_names:
            latest |= {one.node_pool or DEFAULT_POOL: one for one in refusals_of(group)}
    unplaced = add_scaling([_blocker(pool, one) for pool, one in latest.items()], seen.scaling)
    return [*find_pod_creation_errors(runners, seen.kinds, seen.events, current.pods), *unplaced]


def _blocker(pool: str, refusal: objects.SchedulingCondition) -> SchedulingBlocker:
    first = refusal.reasons[0] if refusal.reasons else None
    details = first.details.queue_details if first and first.details else None
    messages = " ".join(each.message for each in refusal.reasons)
    return SchedulingBlocker(
        code=first.reason if first and first.reason else refusal.reason or "Unschedulable",
        message=messages or refusal.message or "The scheduler found no node for it",
        node_pool=pool,
        queue=details.name if details else "",
    )
