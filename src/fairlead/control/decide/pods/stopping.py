"""Stopping pods: one pod, all, or those that are not needed any more. Pure.

Called by the phase machine and when the scheduler evicts, with pods that we control; a cluster controls its own. The
engine's orders follow from the changes to the pods (`pods/orders.py`).
"""

from collections.abc import Callable, Iterable, Sequence

from fairlead.control.decide.autoscale import Load
from fairlead.control.decide.draft import Draft, podset_of
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.scaling import REQUEST_TIMEOUT
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import EvictionNote, Pod

_HAS_RUN = frozenset({Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})


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


def count_eviction(draft: Draft, note: EvictionNote) -> None:
    """Count evictions of one decision as one preemption. With its last pod, the workload terminates and waits again."""
    if draft.workload.preemptions == draft.entry.workload.preemptions:
        draft.set(preemptions=draft.workload.preemptions + 1)
    draft.set(last_eviction=note)
    others = [pod for pod in draft.active_pods() if pod.stopping_for != "evict" and pod.phase is not PodPhase.STOPPING]
    if not others and draft.workload.phase in (Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED):
        draft.set_phase(Phase.TERMINATING, note.message, named=note.named)


def stop_all(draft: Draft, pods: Iterable[Pod], cause: str) -> None:
    for pod in pods:
        stop_pod(draft, pod, cause)


def stop_leftovers(draft: Draft, pods: Iterable[Pod]) -> None:
    """What still runs when the workload has ended, except sets that keep running."""
    kept_roles = {podset.role for podset in draft.entry.podsets if podset.keeps_running}
    stop_all(draft, [pod for pod in pods if pod.role not in kept_roles], "surplus")


def stop_on_lost_nodes(draft: Draft, pods: Iterable[Pod], has_node: Callable[[str], bool]) -> None:
    """Pods that were to restart on a node that no longer exists: the scheduler finds them another."""
    lost = [pod for pod in pods if pod.restart_at is not None and not has_node(pod.node)]
    for pod in lost:
        message = f"Pod {pod.name} cannot restart: node {pod.node} is no longer declared"
        draft.add_event("NodeGone", message, pod=pod, warning=True)
        stop_pod(draft, pod, "evict")
    if lost and not draft.active_pods() and draft.workload.phase in _HAS_RUN:
        draft.set_phase(Phase.TERMINATING, "Its node is no longer declared")
        draft.set_phase(Phase.PENDING, "Waiting to be scheduled again: its node is no longer declared")


def stop_surplus(draft: Draft, pods: Sequence[Pod], load: Load) -> None:
    """Pods of groups beyond the wanted number, and of indices beyond the wanted count."""
    podsets = {podset.role: podset for podset in draft.entry.podsets}
    surplus = []
    for pod in pods:
        podset = podsets[pod.role]
        if pod.group >= podset.groups or (podset.has_fixed_indices and pod.index >= podset.count):
            surplus.append(pod)
        elif pod.drain_until is not None and pod.phase is PodPhase.RUNNING:
            # It is wanted again before it has ended.
            draft.set_pod(pod, drain_until=None, stopping_for="")
    stop_when_answered(draft, surplus, load)
    _forget_surplus_groups(draft)


def _forget_surplus_groups(draft: Draft) -> None:
    wanted = max((podset.groups for podset in draft.entry.podsets), default=0)
    if any(group >= wanted for group in draft.workload.groups):
        draft.set(groups={group: tally for group, tally in draft.workload.groups.items() if group < wanted})


def stop_when_answered(draft: Draft, pods: Iterable[Pod], load: Load) -> None:
    """Stop pods that are not needed. Pods that answer requests get no new ones and stop when the rest is answered; the
    other pods of a group that goes wait for them."""
    surplus = list(pods)
    podsets = {podset.role: podset for podset in draft.entry.podsets}
    groups = {pod.group for pod in surplus if pod.group >= podsets[pod.role].groups}
    serving = [pod for pod in surplus if _answers(podsets[pod.role]) and pod.phase is PodPhase.RUNNING]
    still_answering: set[str | int] = set()
    for pod in serving:
        if not _has_answered(draft, pod, podsets[pod.role], load):
            still_answering.add(pod.group if pod.group in groups else pod.id)
    for pod in surplus:
        if (pod.group if pod.group in groups else pod.id) not in still_answering:
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
