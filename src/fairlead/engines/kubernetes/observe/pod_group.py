"""Pod groups of our own, which no controller of the cluster looks after: failures, readiness, the end. Pure.

Read by the report of such a workload and by its plan.
"""

from collections.abc import Collection, Iterable, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.disruptions import find_disruption
from fairlead.engines.kubernetes.observe.signalled_ends import has_succeeded
from fairlead.engines.kubernetes.render.labels import (
    ATTEMPT_LABEL,
    COMPLETED,
    FAILURES,
    INDEX_LABEL,
    OWN_LABEL,
    role_of,
)
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase


def is_fairlead_group(group: objects.PodGroup) -> bool:
    return OWN_LABEL in group.metadata.labels


def find_fairlead_group(groups: Iterable[objects.PodGroup]) -> objects.PodGroup | None:
    return next((group for group in groups if is_fairlead_group(group)), None)


def failures_of(group: objects.PodGroup) -> int:
    """The number of failures that the group's annotation states."""
    text = group.metadata.annotations.get(FAILURES, "")
    return int(text) if text.isdecimal() else 0


def count_failures(group: objects.PodGroup, pods: Iterable[objects.Pod]) -> int:
    """The number of failed attempts. The pods know it too: a group that somebody deleted is created without it."""
    return max((failures_of(group), *(attempt_of(pod) for pod in pods)))


def find_end(
    group: objects.PodGroup, podsets: Sequence[PodSet], pods: Collection[objects.Pod]
) -> tuple[Phase, str] | None:
    """How a group has ended, by its annotation or by its pods; the latter is unknown without the pod sets."""
    if COMPLETED in group.metadata.annotations:
        return Phase.COMPLETED, ""
    return group_end(podsets, pods, count_failures(group, pods)) if podsets else None


def group_end(podsets: Sequence[PodSet], pods: Iterable[objects.Pod], failures: int) -> tuple[Phase, str] | None:
    """Completed when the first set is; failed when there are more failures than the backoff limit allows."""
    first = podsets[0]
    if failures > first.backoff_limit:
        return Phase.FAILED, f"BackoffLimitExceeded: it was restarted {first.backoff_limit} times and failed again"
    succeeded = {index_of(pod) for pod in pods if role_of(pod.metadata.labels) == first.role and has_succeeded(pod)}
    return (Phase.COMPLETED, "") if len(succeeded) >= (first.completions or first.count) else None


def has_completed(group: objects.PodGroup, podsets: Sequence[PodSet], pods: Collection[objects.Pod]) -> bool:
    end = find_end(group, podsets, pods)
    return end is not None and end[0] is Phase.COMPLETED


def has_failed(pod: objects.Pod) -> bool:
    """Whether the pod failed by itself, and was not taken away."""
    return pod.status.phase == "Failed" and find_disruption(pod) is None


def index_of(pod: objects.Pod) -> int:
    return int(pod.metadata.labels.get(INDEX_LABEL, "0"))


def attempt_of(pod: objects.Pod) -> int:
    return int(pod.metadata.labels.get(ATTEMPT_LABEL, "0"))
