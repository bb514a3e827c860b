"""Which controllers to delete so that they are created again, and which pods must be gone before that. Pure.

- A Job that has completed only because it counts a pod that was told to stop and exited with 0.
- A Job that has failed only because it counts pods that were taken away, such as with their node.
- A Job that could run only some of the tasks of an array, and has completed.
- A Job whose pods were all preempted. A Job waits 10 s, then 20 s, and up to 10 minutes before it creates its next pod,
  whatever ended the previous one. That is too long for a pod that lost its place: it did not fail.
- A job of an operator that failed and restarts as a whole, which no operator does.
- Pods whose controller somebody deleted: they must be gone first, or the workload would run twice until they end.
"""

from collections.abc import Iterable, Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.array_jobs import find_tasks_done, has_tasks_left
from fairlead.engines.kubernetes.observe.disruptions import count_failures_of_job, is_wrongly_failed
from fairlead.engines.kubernetes.observe.operator_jobs import has_operator, launch_choices_of
from fairlead.engines.kubernetes.observe.report import has_signalled_success, is_complete
from fairlead.engines.kubernetes.observe.signalled_ends import JOB_UID, count_signalled
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, is_alive, run_of
from fairlead.engines.kubernetes.render.context import LaunchChoices
from fairlead.engines.kubernetes.render.labels import INDEX_LABEL
from fairlead.model.pods.podset import PodSet, RestartScope

#: Controllers between ours and the pods; ours, created again, adopts those that somebody left behind.
_ADOPTED = frozenset({"ReplicaSet", "StatefulSet"})


class OrphanedPods(msgspec.Struct, frozen=True):
    """Pods of a run whose controller was deleted."""

    #: They terminate, or the cluster will terminate them in a moment.
    ending: tuple[objects.Pod, ...] = ()
    #: Nobody terminates them: their Job was deleted without them.
    orphans: tuple[objects.Pod, ...] = ()


def find_fully_preempted_jobs(seen: ObservedWorkload) -> list[objects.Metadata]:
    """The Jobs of a workload whose pods were all preempted, and which have counted no success or failure yet."""
    jobs = []
    for runner in seen.runners:
        # An active pod may be the Job's next one, which the watch on pods has not shown yet.
        counted = runner.status.succeeded + runner.status.failed + runner.status.active
        if counted or runner.status.conditions or runner.metadata.deletion_timestamp is not None:
            continue
        pods = [pod for pod in seen.pods if pod.metadata.labels.get(JOB_UID) == runner.metadata.uid]
        if pods and _were_all_preempted(pods):
            jobs.append(runner.metadata)
    return jobs


class WronglyEndedJob(msgspec.Struct, frozen=True):
    """A Job that has ended because of wrong counts, and how many pods really ended in it and the Jobs before it."""

    job: objects.Metadata
    succeeded: int
    failures: int
    #: Which tasks of an array have succeeded, as `LaunchChoices` has them.
    tasks_done: str = ""

    def next_launch(self, launch: LaunchChoices) -> LaunchChoices:
        return msgspec.structs.replace(
            launch, succeeded=self.succeeded, failures=self.failures, tasks_done=self.tasks_done
        )


def find_wrongly_ended_jobs(podsets: Sequence[PodSet], seen: ObservedWorkload) -> list[WronglyEndedJob]:
    """Jobs that count successes of pods that were told to stop, or failures of pods that were taken away.

    And Jobs that have run only some of the tasks of an array.
    """
    jobs = []
    for runner in seen.runners:
        signalled = count_signalled(seen.signalled, runner)
        is_short = is_complete(runner) and (bool(signalled) or has_tasks_left(runner))
        is_wrong = is_short or is_wrongly_failed(podsets, runner, seen)
        if is_wrong and runner.metadata.deletion_timestamp is None:
            succeeded = launch_choices_of(runner.metadata).succeeded + runner.status.succeeded - signalled
            failures, done = count_failures_of_job(runner, seen), find_tasks_done(podsets, runner, seen.signalled)
            jobs.append(WronglyEndedJob(runner.metadata, succeeded, failures, done))
    return jobs


def _were_all_preempted(pods: Iterable[objects.Pod]) -> bool:
    """With another restart policy than Never, the Job counts preempted pods and knows how often it restarted."""
    return all(
        pod.spec.restart_policy == "Never"
        and pod.status.phase == "Failed"
        and objects.condition(pod.status.conditions, "DisruptionTarget") is not None
        for pod in pods
    )


def find_orphaned_pods(seen: ObservedWorkload, run: int, *, is_fresh: bool) -> OrphanedPods:
    """The pods of a run that has no controller any more; `is_fresh`: the controller was deleted a moment ago.

    Pods of a pod group of our own never count: the engine itself is their controller.
    """
    if any(run_of(runner.metadata) == run for runner in seen.runners):
        return OrphanedPods()
    pods = [pod for pod in seen.pods if run_of(pod.metadata) == run and INDEX_LABEL not in pod.metadata.labels]
    # A pod that has ended and is being deleted needs no help, but is waited for like the others.
    pods = [pod for pod in pods if is_alive(pod) or pod.metadata.deletion_timestamp is not None]
    return OrphanedPods(
        ending=tuple(pod for pod in pods if _is_ending(pod, is_fresh=is_fresh)),
        orphans=tuple(pod for pod in pods if _controller_kind(pod) == "" and pod.metadata.deletion_timestamp is None),
    )


def _is_ending(pod: objects.Pod, *, is_fresh: bool) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    kind = _controller_kind(pod)
    return is_fresh if kind in _ADOPTED else kind != ""


def _controller_kind(pod: objects.Pod) -> str:
    return next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")


def is_recreated(podsets: Sequence[PodSet], job: objects.Runner, seen: ObservedWorkload) -> bool:
    """Whether a job of an operator restarts after its end; without the pod sets nobody knows, so it may."""
    return not podsets or decide_recreation(podsets, job, seen) is not None


def find_recreated_jobs(podsets: Sequence[PodSet], seen: ObservedWorkload) -> frozenset[str]:
    """The uids of failed jobs whose failure is not the end of their workload, because they restart."""
    jobs = (runner for runner in seen.runners if has_operator(runner))
    return frozenset(job.metadata.uid for job in jobs if is_recreated(podsets, job, seen))


def decide_recreation(
    podsets: Sequence[PodSet], job: objects.Runner, seen: ObservedWorkload, has_failed: bool = False
) -> LaunchChoices | None:
    """The launch choices of a job's next attempt; None while the job runs, and when it has failed for good.

    An attempt that lost pods to the scheduler did not fail by itself, and is not counted.
    """
    if not podsets or job.metadata.deletion_timestamp:
        return None
    launch = launch_choices_of(job.metadata)
    again = msgspec.structs.replace(launch, attempt=launch.attempt + 1)
    if is_complete(job) and has_signalled_success(podsets, job, seen):
        return again
    if podsets[0].restart_scope is not RestartScope.GROUP:
        return None
    if objects.condition(job.status.conditions, "Failed") is None and not has_failed:
        return None
    if launch.attempt in seen.disrupted:
        return again
    if launch.failures >= podsets[0].backoff_limit:
        return None
    return msgspec.structs.replace(again, failures=launch.failures + 1)
