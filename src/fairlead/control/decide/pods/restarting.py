"""Restarting pods: in place after a backoff, or a whole group when one of its pods has ended. Pure.

Called by the phase machine and for the reports of single pods.
"""

from collections.abc import Iterable

import msgspec

from fairlead.control.decide.draft import Draft
from fairlead.control.decide.pods.stopping import stop_pod
from fairlead.model.clock import SECOND, Millis
from fairlead.model.pods.podset import RestartScope
from fairlead.model.records.workload import GroupTally, Pod

#: A pod that ran for so long was healthy: its group starts to count recreations from one again.
HEALTHY: Millis = 600 * SECOND


class Backoff(msgspec.Struct, frozen=True):
    """The growing delay before a retry: the first one, doubled with every further failure up to the longest."""

    first: Millis
    longest: Millis

    def after(self, failures: int) -> Millis:
        return min(self.longest, self.first << min(max(failures - 1, 0), 40))


def restart_due(draft: Draft, pods: Iterable[Pod]) -> None:
    """Restart containers in place when their backoff is over; wake for those whose time is still to come."""
    for pod in pods:
        if pod.restart_at is None:
            continue
        if pod.restart_at > draft.now:
            draft.wake(pod.restart_at)
        else:
            draft.set_pod(pod, restart_at=None)
    for retry_at in draft.workload.retries:
        if retry_at > draft.now:
            draft.wake(retry_at)


def break_group(draft: Draft, pod: Pod, backoff: Backoff) -> None:
    """Stop what is left of a pod's group, which is recreated when all of it has ended.

    The first time at once, then after a growing delay, until a pod has run for long again.
    """
    before = draft.workload.groups.get(pod.group, GroupTally())
    was_healthy = pod.started_at is not None and draft.now - pod.started_at >= HEALTHY
    recreated = 1 if was_healthy else before.recreated + 1
    wait = backoff.after(recreated - 1) if recreated > 1 else 0
    draft.set_group(pod.group, GroupTally(recreated=recreated, retry_at=draft.now + wait))
    draft.set(restarts=draft.workload.restarts + 1)
    delay = f" in {wait / 1000:g} s" if wait else ""
    message = f"Recreating group {pod.group}{delay} because of pod {pod.name} (recreation {recreated})"
    draft.add_event("GroupRecreated", message, pod=pod, warning=True)
    shared = {podset.role for podset in draft.entry.podsets if podset.restart_scope is RestartScope.GROUP}
    for other in draft.active_pods():
        if other.group == pod.group and other.role in shared:
            stop_pod(draft, other, "group")
    forget_successes(draft)


def forget_successes(draft: Draft) -> None:
    """Pods that succeeded in a group that starts again have to run again with the others."""
    for podset in draft.entry.podsets:
        tally = draft.workload.tally(podset.role)
        if podset.restart_scope is RestartScope.GROUP and tally.succeeded:
            draft.set_tally(podset.role, msgspec.structs.replace(tally, succeeded=0, done=()))
