"""Jobs of operators whose pods failed and that begin again as a whole, which no operator does. Pure.

`engine.py` asks whenever something of such a workload changes; `observing.py` asks whether a failure is the end.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.objects import Metadata, Pod, Runner, condition
from fairlead.engines.kubernetes.client.resources import CONFIG_MAP
from fairlead.engines.kubernetes.render.context import (
    LEVEL,
    NO_LAUNCH_CHOICES,
    QUEUE_LABEL,
    LaunchChoices,
    RenderContext,
    metadata_of,
    role_of,
)
from fairlead.engines.kubernetes.render.pod_group import ATTEMPT_LABEL, FAILURES
from fairlead.model.pods.podset import PodSet, RestartScope


def has_operator(runner: Runner) -> bool:
    return ATTEMPT_LABEL in runner.metadata.labels


def launch_choices_of(metadata: Metadata) -> LaunchChoices:
    """Which attempt it is, as the job itself says."""
    attempt, failures = metadata.labels.get(ATTEMPT_LABEL, ""), metadata.annotations.get(FAILURES, "")
    return LaunchChoices(
        attempt=int(attempt) if attempt.isdecimal() else 0,
        failures=int(failures) if failures.isdecimal() else 0,
        level=metadata.annotations.get(LEVEL, ""),
        queue=metadata.labels.get(QUEUE_LABEL, ""),
    )


def find_failed(podsets: Sequence[PodSet], runner: Runner, pods: Iterable[Pod]) -> Pod | None:
    """A pod with which its attempt has failed while its operator says nothing.

    MPI's looks at the launcher alone. A worker that failed it neither replaces nor tells of, and a launcher that waits
    for its workers is never made.
    """
    if not podsets or not podsets[0].may_exec_in or podsets[0].restart_scope is not RestartScope.GROUP:
        return None
    if runner.metadata.deletion_timestamp is not None or condition(runner.status.conditions, "Succeeded") is not None:
        return None
    attempt = launch_choices_of(runner.metadata).attempt
    return next((pod for pod in pods if _has_failed(pod, podsets[0].may_exec_in, attempt)), None)


def _has_failed(pod: Pod, role: str, attempt: int) -> bool:
    """By itself: not because it was told to end."""
    metadata, status = pod.metadata, pod.status
    return (
        status.phase == "Failed"
        and metadata.deletion_timestamp is None
        and role_of(metadata.labels) == role
        and launch_choices_of(metadata).attempt == attempt
    )


def final_failure_message(podsets: Sequence[PodSet], runner: Runner, last: Pod) -> str:
    """Of an attempt that was the last one, though its operator has not said so."""
    failures = launch_choices_of(runner.metadata).failures + 1
    pods = f"{failures} pod{'s' if failures > 1 else ''}"
    return (
        f"{pods} failed, more than the backoff limit of {podsets[0].backoff_limit}. The last one: {last.metadata.name}"
    )


def decide_recreation(
    podsets: Sequence[PodSet], runner: Runner, is_disrupted: bool, has_failed: bool = False
) -> LaunchChoices | None:
    """With what it begins again; None while it runs, and when it has failed for good.

    An attempt from which the scheduler took pods away did not fail by itself: it is not counted.
    """
    if not podsets or podsets[0].restart_scope is not RestartScope.GROUP or runner.metadata.deletion_timestamp:
        return None
    if condition(runner.status.conditions, "Failed") is None and not has_failed:
        return None
    begun = launch_choices_of(runner.metadata)
    again = msgspec.structs.replace(begun, attempt=begun.attempt + 1)
    if is_disrupted:
        return again
    if begun.failures >= podsets[0].backoff_limit:
        return None
    return msgspec.structs.replace(again, failures=begun.failures + 1)


def may_be_preemption(podsets: Sequence[PodSet], runner: Runner, disrupted: Collection[int]) -> bool:
    """Whether it has failed, by itself as it seems: what took a pod away may only not have been seen yet."""
    if not podsets or podsets[0].restart_scope is not RestartScope.GROUP:
        return False
    is_failed = condition(runner.status.conditions, "Failed") is not None
    return is_failed and launch_choices_of(runner.metadata).attempt not in disrupted


class RecreationNote(msgspec.Struct, frozen=True):
    """What is written down before a job is removed, for whoever makes it again: a config map of its workload."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = {}


def note_name(workload: str) -> str:
    return f"{workload}-attempts"


def render_note(place: RenderContext, again: LaunchChoices) -> dict[str, Any]:
    data = {"attempt": str(again.attempt), "failures": str(again.failures)}
    metadata = metadata_of(place, note_name(place.name))
    return {"apiVersion": CONFIG_MAP.api, "kind": CONFIG_MAP.kind, "metadata": metadata, "data": data}


def read_note(note: RecreationNote, marks: dict[str, str]) -> LaunchChoices:
    """With what it begins again; a note of another run or workload says nothing."""
    if not marks.items() <= note.metadata.labels.items():
        return NO_LAUNCH_CHOICES
    attempt, failures = (note.data.get(name, "") for name in ("attempt", "failures"))
    if not attempt.isdecimal() or not failures.isdecimal():
        return NO_LAUNCH_CHOICES
    return LaunchChoices(attempt=int(attempt), failures=int(failures))
