"""How many further pods a workload wants. Pure.

Asked by the scheduler's side of the loop and by the snapshot: each missing pod is a task to place.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from fairlead.control.decide.draft import WorkloadEntry, podset_of
from fairlead.model.clock import Millis
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Workload

#: A pod set by its role, and a group of it.
Part = tuple[str, int]

_PLACEABLE = frozenset({Phase.PENDING, Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})


def count_missing_pods(entry: WorkloadEntry, now: Millis) -> Mapping[Part, int]:
    """How many further pods each group of each pod set wants to have placed now."""
    workload = entry.workload
    if workload.desired_phase is not DesiredPhase.RUNNING or workload.phase not in _PLACEABLE or workload.waits_for:
        return {}
    active = Counter((pod.role, pod.group) for pod in entry.pods if not pod.has_ended)
    ending = {pod.group for pod in entry.pods if pod.phase is PodPhase.STOPPING}
    missing: dict[Part, int] = {}
    for podset in entry.podsets:
        if not _is_time(workload.tally(podset.role).retry_at, now):
            continue
        for group in range(podset.groups):
            part = (podset.role, group)
            number = _count_missing(workload, podset, active[part])
            if number > 0 and _may_begin(entry, podset, group, ending, now):
                missing[part] = number
    return missing


def _is_time(at: Millis | None, now: Millis) -> bool:
    return at is None or at <= now


def _count_missing(workload: Workload, podset: PodSet, active: int) -> int:
    free = podset.count - active
    if podset.completions is None:
        return free
    return min(free, podset.completions - workload.tally(podset.role).succeeded - active)


def _may_begin(entry: WorkloadEntry, podset: PodSet, group: int, ending: Iterable[int], now: Millis) -> bool:
    """Not while the previous group of that number still ends or its backoff lasts, nor before sets that go first."""
    if podset.restart_scope is RestartScope.GROUP:
        tally = entry.workload.groups.get(group)
        if group in ending or (tally is not None and not _is_time(tally.retry_at, now)):
            return False
    return not podset.starts_after or is_ready(entry, podset.starts_after, group)


def is_ready(entry: WorkloadEntry, role: str, group: int) -> bool:
    """Whether a group of a set has all its pods ready; pods that are being replaced do not count."""
    pods = [pod for pod in entry.pods if pod.role == role and pod.group == group and not pod.stopping_for]
    return len(pods) >= podset_of(entry.podsets, role).count and all(pod.ready for pod in pods)
