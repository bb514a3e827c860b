"""The orders that make an engine's pods those of a draft. Pure; called by the pod driver for every draft.

Orders follow from the difference between the pods on record and the pods of the draft, so a record whose commit outcome
was unknown leads to the same orders when it is read again.
"""

from collections.abc import Callable, Iterator

import msgspec

from fairlead.control.decide.claims import releases_ephemeral_claims
from fairlead.control.decide.draft import Draft, podset_of
from fairlead.engines.base import DropEphemeralClaims, Forget, PodOrder, Start, Stop
from fairlead.model.pods.podset import PodSet, PodSpec
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import LaunchRecord, Pod, Workload

RenderPod = Callable[[Workload, Pod, PodSet], PodSpec]


def pod_orders(draft: Draft, render_pod: RenderPod) -> list[PodOrder]:
    """Storage is released before the next pods start, which may mount claims of the same names."""
    orders: list[PodOrder] = [Forget(pod.id) for pod in draft.pods.values() if pod.has_ended]
    if releases_ephemeral_claims(draft):
        orders.append(DropEphemeralClaims(draft.workload.id))
    before = {pod.id: pod for pod in draft.entry.pods}
    for pod in draft.pods.values():
        recorded = before.get(pod.id)
        if pod is not recorded:
            orders += _orders_of(draft, recorded, pod, render_pod)
    return orders


def _orders_of(draft: Draft, recorded: Pod | None, pod: Pod, render_pod: RenderPod) -> Iterator[PodOrder]:
    """A pod that was due to restart and is evicted in the same decision is started first: its stop is then reported."""
    if starts_attempt(recorded, pod):
        # As it will be recorded, before the order is carried out.
        workload = msgspec.structs.replace(draft.workload, version=draft.entry.workload.version + 1)
        yield start_order(workload, pod, render_pod(workload, pod, podset_of(draft.entry.podsets, pod.role)))
    if pod.phase is PodPhase.STOPPING and (recorded is None or recorded.phase is not PodPhase.STOPPING):
        yield stop_order(draft, pod)


def start_order(workload: Workload, pod: Pod, spec: PodSpec) -> Start:
    return Start(spec, msgspec.json.encode(LaunchRecord(workload, pod)))


def starts_attempt(recorded: Pod | None, pod: Pod) -> bool:
    """Whether an attempt begins that was not to begin before: of a new pod, or after its restart delay."""
    if pod.has_ended or pod.restart_at is not None:
        return False
    return recorded is None or recorded.restart_at is not None or recorded.attempt != pod.attempt


def stop_order(draft: Draft, pod: Pod) -> Stop:
    podset = podset_of(draft.entry.podsets, pod.role)
    return Stop(pod.id, pod.attempt, podset.container.termination_grace_seconds)
