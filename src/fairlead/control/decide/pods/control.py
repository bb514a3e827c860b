"""Which pods of a workload are stopped and restarted, on an engine of single pods. Pure.

Called by the phase machine. The pods that are handed in are those that we control; a cluster controls its own, and
nothing is handed in. The engine's orders follow from the changes to the pods (`pods/orders.py`).
"""

from collections.abc import Callable, Iterable, Sequence

from fairlead.control.decide.autoscale import Load
from fairlead.control.decide.draft import Draft
from fairlead.control.decide.pods.stopping import stop_pod, stop_when_answered
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod

_HAS_RUN = frozenset({Phase.INITIALIZING, Phase.RUNNING, Phase.DEGRADED, Phase.UPDATING})


def stop_all(draft: Draft, pods: Iterable[Pod], cause: str) -> None:
    for pod in pods:
        stop_pod(draft, pod, cause)


def stop_leftovers(draft: Draft, pods: Iterable[Pod]) -> None:
    """What still runs when the workload has ended, except sets that keep running."""
    kept = {podset.role for podset in draft.entry.podsets if podset.keeps_running}
    stop_all(draft, [pod for pod in pods if pod.role not in kept], "surplus")


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
