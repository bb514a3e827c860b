"""Jobs of Kubeflow's operators: their attempts, and failures that the operator does not report. Pure.

Read by the report of such a workload and by its plan.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices
from fairlead.engines.kubernetes.render.labels import (
    ATTEMPT_LABEL,
    FAILURES,
    LEVEL,
    NODE_SCALING,
    QUEUE_LABEL,
    SUCCEEDED,
    TASKS_DONE,
    role_of,
)
from fairlead.model.pods.podset import PodSet, RestartScope


def has_operator(runner: objects.Runner) -> bool:
    return ATTEMPT_LABEL in runner.metadata.labels


def launch_choices_of(metadata: objects.Metadata) -> LaunchChoices:
    """As the labels and annotations of a job, or of its pod, state them."""
    scaling = metadata.annotations.get(NODE_SCALING)
    return LaunchChoices(
        attempt=_number(metadata.labels.get(ATTEMPT_LABEL, "")),
        failures=_number(metadata.annotations.get(FAILURES, "")),
        succeeded=_number(metadata.annotations.get(SUCCEEDED, "")),
        tasks_done=metadata.annotations.get(TASKS_DONE, ""),
        level=metadata.annotations.get(LEVEL, ""),
        queue=metadata.labels.get(QUEUE_LABEL, ""),
        pool_selectors=tuple(scaling.split()) if scaling is not None else None,
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def find_failed(podsets: Sequence[PodSet], runner: objects.Runner, pods: Iterable[objects.Pod]) -> objects.Pod | None:
    """A pod whose failure is the failure of its attempt, although the operator does not report it.

    The MPI operator watches the launcher alone. It neither replaces nor reports a failed worker, and never creates a
    launcher that waits for its workers.
    """
    if not podsets or not podsets[0].may_exec_in or podsets[0].restart_scope is not RestartScope.GROUP:
        return None
    if (
        runner.metadata.deletion_timestamp is not None
        or objects.condition(runner.status.conditions, "Succeeded") is not None
    ):
        return None
    attempt = launch_choices_of(runner.metadata).attempt
    return next((pod for pod in pods if _has_failed(pod, podsets[0].may_exec_in, attempt)), None)


def _has_failed(pod: objects.Pod, role: str, attempt: int) -> bool:
    """By itself, not because it was stopped."""
    metadata, status = pod.metadata, pod.status
    return (
        status.phase == "Failed"
        and metadata.deletion_timestamp is None
        and role_of(metadata.labels) == role
        and launch_choices_of(metadata).attempt == attempt
    )


def final_failure_message(podsets: Sequence[PodSet], runner: objects.Runner, last: objects.Pod) -> str:
    """For the last attempt, whose failure the operator has not reported."""
    failures = launch_choices_of(runner.metadata).failures + 1
    pods = f"{failures} pod{'s' if failures > 1 else ''}"
    return (
        f"{pods} failed, more than the backoff limit of {podsets[0].backoff_limit}. The last one: {last.metadata.name}"
    )


def may_be_preemption(podsets: Sequence[PodSet], runner: objects.Runner, disrupted: Collection[int]) -> bool:
    """Whether it failed, and a preemption that caused it may not have been seen yet."""
    if not podsets or podsets[0].restart_scope is not RestartScope.GROUP:
        return False
    is_failed = objects.condition(runner.status.conditions, "Failed") is not None
    return is_failed and launch_choices_of(runner.metadata).attempt not in disrupted


class RecreationNote(msgspec.Struct, frozen=True):
    """The launch choices of the next attempt, written to a config map before the job is deleted."""

    metadata: objects.Metadata = objects.Metadata()
    data: dict[str, str] = {}


def read_note(note: RecreationNote, ownership_labels: dict[str, str]) -> LaunchChoices:
    """The launch choices of the next attempt; a note of another run or workload does not count."""
    if not ownership_labels.items() <= note.metadata.labels.items():
        return NO_LAUNCH_CHOICES
    attempt, failures = (note.data.get(name, "") for name in ("attempt", "failures"))
    if not attempt.isdecimal() or not failures.isdecimal():
        return NO_LAUNCH_CHOICES
    return LaunchChoices(attempt=int(attempt), failures=int(failures))
