"""Eviction of pods from nodes that are being drained: as after a preemption, their workload waits again. Pure.

Called by the phase machine, for pods that we control. A cluster evicts the pods of its nodes itself.
"""

from collections.abc import Callable, Sequence

from fairlead.control.decide.draft import Draft, podset_of
from fairlead.control.decide.pods.restarting import forget_successes
from fairlead.control.decide.pods.stopping import count_eviction, stop_pod
from fairlead.model.pods.podset import RestartScope
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import EvictionNote, Pod


def evict_from_draining_nodes(draft: Draft, pods: Sequence[Pod], is_draining: Callable[[str], bool]) -> None:
    """Stop the pods on these nodes, and with a pod the whole group that can only restart together."""
    leaving = [pod for pod in pods if pod.phase is not PodPhase.STOPPING and is_draining(pod.node)]
    if not leaving:
        return
    broken = {pod.group for pod in leaving if _restarts_with_group(draft, pod)}
    for pod in pods:
        if pod in leaving or (pod.group in broken and _restarts_with_group(draft, pod)):
            draft.add_event("Evict", f"Evicted pod {pod.name}: node {leaving[0].node} is being drained", pod=pod)
            stop_pod(draft, pod, "evict")
    if broken:
        forget_successes(draft)
    count_eviction(draft, _note(leaving[0], draft))


def _restarts_with_group(draft: Draft, pod: Pod) -> bool:
    return podset_of(draft.entry.podsets, pod.role).restart_scope is RestartScope.GROUP


def _note(pod: Pod, draft: Draft) -> EvictionNote:
    return EvictionNote(
        at=draft.now,
        run=draft.workload.run,
        pod=pod.name,
        node=pod.node,
        rule="drained",
        since=pod.started_at,
        gpus=round(pod.gpu_thousandths * len(pod.gpu_devices) / 1000, 3),
        message=f"Evicted: node {pod.node} is being drained",
    )
