"""Autoscalers of nodes: what they report about waiting pods. Only `ScalingEvents` has state.

The Cluster Autoscaler and Karpenter see pods that KAI marked as unschedulable, and report in events what they do about
them. For a pod that requests a part of a GPU, KAI's node scale adjuster creates a pod that requests a whole one.
"""

from collections.abc import Collection, Sequence

import msgspec

from fairlead.engines.base import SCALE_UP, SchedulingBlocker
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.events import last_seen_at
from fairlead.model.records.workload import PENDING_REASONS

#: What selects their events about pods.
CLUSTER_AUTOSCALER_EVENTS = "involvedObject.kind=Pod,source=cluster-autoscaler"
EVENT_FIELDS = (CLUSTER_AUTOSCALER_EVENTS, "involvedObject.kind=Pod,source=karpenter")
#: Where KAI's node scale adjuster creates pods, named after the namespace and the name of the pod that waits.
_ADJUSTED = "kai-scale-adjust"
_TRIGGERED, _NOT_TRIGGERED, _NOMINATED, _FAILED = (
    "TriggeredScaleUp",
    "NotTriggerScaleUp",
    "Nominated",
    "FailedScheduling",
)
_NAMES = {
    _TRIGGERED: "the Cluster Autoscaler",
    _NOT_TRIGGERED: "the Cluster Autoscaler",
    _NOMINATED: "Karpenter",
    _FAILED: "Karpenter",
}
#: What Karpenter calls a node that it is starting.
_NEW_NODE = "nodeclaim/"


class ScalingEvents:
    """What autoscalers reported about pods, by namespace and name of the pod and by name of the event."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], dict[str, objects.Event]] = {}
        #: Whether an autoscaler has reported anything since the start.
        self.has_any = False

    def update(self, before: objects.Event | None, after: objects.Event | None) -> None:
        event = after or before
        if event is None or event.reason not in _NAMES:
            return
        key = event.involved_object.namespace, event.involved_object.name
        events = self._events.setdefault(key, {})
        if after is not None:
            events[after.metadata.name] = after
            self.has_any = True
        else:
            events.pop(event.metadata.name, None)
        if not events:
            del self._events[key]

    def about(self, pod: objects.Pod) -> objects.Event | None:
        """The latest event about a pod, or about the pod that stands in for it."""
        events = [event for key in _keys(pod) for event in self._events.get(key, {}).values()]
        return max(events, key=last_seen_at, default=None)


def is_about(event: objects.Event, pod: objects.Pod) -> bool:
    return (event.involved_object.namespace, event.involved_object.name) in _keys(pod)


def is_about_stand_in(event: objects.Event) -> bool:
    """Whether the event is about a pod of KAI's node scale adjuster."""
    return event.involved_object.namespace == _ADJUSTED


def _keys(pod: objects.Pod) -> tuple[tuple[str, str], tuple[str, str]]:
    namespace, name = pod.metadata.namespace, pod.metadata.name
    return (namespace, name), (_ADJUSTED, f"{namespace}-{name}")


def add_scaling(blockers: Sequence[SchedulingBlocker], events: Collection[objects.Event]) -> list[SchedulingBlocker]:
    """Say first that a node is being added, or last that none is. A new node does not help if a quota blocks."""
    if not blockers or not events or any(blocker.code in PENDING_REASONS for blocker in blockers):
        return list(blockers)
    latest = max(events, key=lambda event: (_is_under_way(event), last_seen_at(event)))
    name, detail = _NAMES[latest.reason], latest.message.partition(": ")[2] or latest.message
    if _is_under_way(latest):
        message = f"Waiting for a new node: {name} is adding {detail}"
        return [SchedulingBlocker(code=SCALE_UP, message=message, node_pool=blockers[0].node_pool), *blockers]
    if latest.reason == _NOMINATED:
        return list(blockers)
    first, *others = blockers
    message = f"{first.message.rstrip('.')}. {name[0].upper()}{name[1:]} adds no node for it: {detail}"
    return [msgspec.structs.replace(first, message=message), *others]


def _is_under_way(event: objects.Event) -> bool:
    """Karpenter also nominates nodes that exist."""
    return event.reason == _TRIGGERED or (event.reason == _NOMINATED and _NEW_NODE in event.message)
