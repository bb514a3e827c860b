"""Pods that exited with 0 after a stop signal: they were evicted or deleted, and have not succeeded. Pure.

A Job, or the job of an operator, counts such a pod as a success, because it only looks at the exit code. Such pods are
deleted as soon as they are counted, so the cache remembers them as `SignalledSuccess`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.render.labels import COMPLETION_INDEX, role_of

#: On pods: the Job that created them. A Job that was created again has the same name.
JOB_UID = "batch.kubernetes.io/controller-uid"


class SignalledSuccess(msgspec.Struct, frozen=True):
    """A pod that its controller wrongly counts as a success: its role, the uid of its Job, the attempt of its job."""

    role: str
    job_uid: str
    attempt: int
    #: Of a pod of an Indexed Job: which of the Job's completions it worked on.
    index: int | None = None


def has_succeeded(pod: objects.Pod) -> bool:
    return pod.status.phase == "Succeeded" and not _ended_after_signal(pod)


def signalled_success(pod: objects.Pod) -> SignalledSuccess | None:
    if pod.status.phase != "Succeeded" or not _ended_after_signal(pod):
        return None
    labels, index = pod.metadata.labels, pod.metadata.annotations.get(COMPLETION_INDEX, "")
    return SignalledSuccess(
        role_of(labels),
        labels.get(JOB_UID, ""),
        launch_choices_of(pod.metadata).attempt,
        int(index) if index.isdecimal() else None,
    )


def count_signalled(successes: Iterable[SignalledSuccess], runner: objects.Runner) -> int:
    """How many pods a Job wrongly counts as successes; an Indexed Job counts each index once."""
    indices = [one.index for one in successes if one.job_uid == runner.metadata.uid]
    return indices.count(None) + len(set(indices) - {None})


def _ended_after_signal(pod: objects.Pod) -> bool:
    """Times are whole seconds: within the second of the signal it counts as the cause of the end."""
    signal = _signalled_at(pod)
    if signal is None:
        return objects.condition(pod.status.conditions, "DisruptionTarget") is not None
    ends = [status.state.terminated for status in pod.status.container_statuses]
    finished = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    return not finished or max(finished) >= signal


def _signalled_at(pod: objects.Pod) -> datetime | None:
    """When somebody asked to delete or evict it."""
    times = []
    metadata, eviction = pod.metadata, objects.condition(pod.status.conditions, "DisruptionTarget")
    if metadata.deletion_timestamp is not None:
        # The time by which it is to be gone.
        times.append(metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds))
    if eviction is not None and eviction.last_transition_time is not None:
        times.append(eviction.last_transition_time)
    return min(times, default=None)
