"""Which pods of a pod group of our own to create and which to delete now. Pure.

No controller of the cluster creates such pods again, so the engine asks whenever something of the workload changes.
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.pod_group import attempt_of, group_end, has_failed, index_of
from fairlead.engines.kubernetes.observe.signalled_ends import has_succeeded
from fairlead.engines.kubernetes.render.labels import role_of
from fairlead.model.pods.podset import PodSet, RestartScope


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    delete: tuple[objects.Pod, ...] = ()
    #: (role, index) of the pods to create.
    create: tuple[tuple[str, int], ...] = ()
    #: A pod failed, and the whole group starts again: one more failure is to be counted.
    counts_failure: bool = False


def decide_group(
    podsets: Sequence[PodSet], pods: Collection[objects.Pod], failures: int, *, is_complete: bool = False
) -> GroupPlan:
    """From the pods of the current run to what is to be done. A group that completed stays so without its pods."""
    if is_complete or group_end(podsets, pods, failures) is not None:
        return GroupPlan(delete=_not_terminating(_left_running(podsets, pods)))
    outdated = [pod for pod in pods if attempt_of(pod) != failures]
    if outdated:
        return GroupPlan(delete=_not_terminating(outdated))
    if _must_restart(podsets, pods):
        return GroupPlan(counts_failure=True)
    preempted = [pod for pod in pods if pod.status.phase in ("Succeeded", "Failed") and not has_succeeded(pod)]
    present = {(_role(pod), index_of(pod)) for pod in pods}
    return GroupPlan(
        delete=_not_terminating(preempted),
        create=tuple(member for member in _startable(podsets, pods) if member not in present),
    )


def _left_running(podsets: Sequence[PodSet], pods: Iterable[objects.Pod]) -> list[objects.Pod]:
    """Pods that run on after the end, and should not."""
    kept_roles = {podset.role for podset in podsets if podset.keeps_running}
    return [pod for pod in pods if pod.status.phase not in ("Succeeded", "Failed") and _role(pod) not in kept_roles]


def _must_restart(podsets: Sequence[PodSet], pods: Iterable[objects.Pod]) -> bool:
    scopes = {podset.role: podset.restart_scope for podset in podsets}
    return any(has_failed(pod) and scopes.get(_role(pod)) is RestartScope.GROUP for pod in pods)


def _startable(podsets: Sequence[PodSet], pods: Collection[objects.Pod]) -> list[tuple[str, int]]:
    """(role, index) of all pods that there should be: a set that starts after another one waits until that is ready."""
    return [
        (podset.role, index)
        for podset in podsets
        if not podset.starts_after or _is_ready(podsets, podset.starts_after, pods)
        for index in range(podset.count)
    ]


def _is_ready(podsets: Sequence[PodSet], role: str, pods: Iterable[objects.Pod]) -> bool:
    count = next(podset.count for podset in podsets if podset.role == role)
    ready = [pod for pod in pods if _role(pod) == role and objects.condition(pod.status.conditions, "Ready")]
    return len(ready) >= count


def _not_terminating(pods: Iterable[objects.Pod]) -> tuple[objects.Pod, ...]:
    return tuple(pod for pod in pods if pod.metadata.deletion_timestamp is None)


def _role(pod: objects.Pod) -> str:
    return role_of(pod.metadata.labels)
