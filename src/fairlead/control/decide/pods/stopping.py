"""Stopping pods: one pod, or what is left of a group that is to be recreated. Pure.

Called by the phase machine and when the scheduler evicts. The engine's orders follow from the changed pods.
"""

from collections.abc import Iterable

import msgspec

from fairlead.control.decide.autoscale import Load
from fairlead.control.decide.draft import Draft, podset_of
from fairlead.model.clock import SECOND, Millis
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.pods.scaling import REQUEST_TIMEOUT
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import GroupTally, Pod

#: A pod that ran for so long was healthy: its group starts to count recreations from one again.
HEALTHY: Millis = 600 * SECOND


class Backoff(msgspec.Struct, frozen=True):
    """The growing delay before a retry: the first one, doubled with every further failure up to the longest."""

    first: Millis
    longest: Millis

    def after(self, failures: int) -> Millis:
        return min(self.longest, self.first << min(max(failures - 1, 0), 40))


def stop_pod(draft: Draft, pod: Pod, cause: str) -> None:
    """Stop a pod, once. A pod that waits for its restart has no process and ends here."""
    if pod.phase is PodPhase.STOPPING:
        return
    if pod.restart_at is not None:
        draft.set_pod(pod, phase=PodPhase.STOPPED, completed_at=draft.now, restart_at=None, stopping_for=cause)
        return
    draft.set_pod(pod, phase=PodPhase.STOPPING, stopping_for=cause)
    grace = podset_of(draft.entry.podsets, pod.role).container.termination_grace_seconds
    draft.add_event("Stopping", f"Stopping pod {pod.name} ({cause}), grace period {grace} s", pod=pod)


def stop_when_answered(draft: Draft, pods: Iterable[Pod], load: Load) -> None:
    """Stop pods that are not needed. Pods that answer requests get no new ones and stop when the rest is answered; the
    other pods of a group that goes wait for them."""
    surplus = list(pods)
    podsets = {podset.role: podset for podset in draft.entry.podsets}
    groups = {pod.group for pod in surplus if pod.group >= podsets[pod.role].groups}
    asked = [pod for pod in surplus if _answers(podsets[pod.role]) and pod.phase is PodPhase.RUNNING]
    held: set[str | int] = set()
    for pod in asked:
        if not _has_answered(draft, pod, podsets[pod.role], load):
            held.add(pod.group if pod.group in groups else pod.id)
    for pod in surplus:
        if (pod.group if pod.group in groups else pod.id) not in held:
            stop_pod(draft, pod, "surplus")


def _answers(podset: PodSet) -> bool:
    return podset.completions is None and bool(podset.container.fields.exposed_urls)


def _has_answered(draft: Draft, pod: Pod, podset: PodSet, load: Load) -> bool:
    """Whether a pod has answered its requests or used up its time. At first, keeps new requests away from it."""
    if pod.drain_until is None:
        allowed = podset.scaling.request_timeout if podset.scaling else REQUEST_TIMEOUT
        draft.set_pod(pod, stopping_for="surplus", drain_until=draft.now + allowed)
        # Once that is recorded, no request can reach it.
        draft.wake(draft.now)
        return False
    if load.busy.get(pod.id) and draft.now < pod.drain_until:
        draft.wake(pod.drain_until)
        return False
    return True


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
