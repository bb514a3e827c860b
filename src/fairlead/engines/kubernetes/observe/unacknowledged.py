"""Pods that wait while KAI reports nothing about them, for example because no scheduler runs for their node pool.

The engine asks at every change. If that lasts, the pod's events are read: only they tell that KAI reserved a place for
the pod, chose a node, or could not bind the pod to it. The doctor checks in the same way.
"""

import asyncio
from collections.abc import Callable, Coroutine

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import EVENT, Resource
from fairlead.engines.kubernetes.observe.events import last_seen_at
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, is_waiting, refusals_in_pool
from fairlead.engines.kubernetes.render.labels import GROUP_ANNOTATION, labelled_pool

#: Seconds. KAI schedules once a second; a cycle may take several in large clusters.
PATIENCE = 20.0
_LONGEST = 16 * PATIENCE
SCHEDULED, _BINDING_ERROR = "Scheduled", "BindingError"
POD_GROUPER, SCHEDULER_PART, BINDER = "pod grouper", "scheduler", "binder"
#: KAI's scheduler creates one for its binder, with the name of the pod.
_BIND_REQUEST = Resource("scheduling.run.ai/v1alpha2", "BindRequest", "bindrequests")
#: What events with these reasons mean while their pod has no node.
_MEANINGS = {
    "Pipelined": "KAI reserved a place for it, and waits until other pods have left",
    SCHEDULED: "KAI chose a node, but its binder does not bind the pod to it; check that the binder runs",
    _BINDING_ERROR: "KAI's binder is retrying",
}


class UnacknowledgedPod(msgspec.Struct, frozen=True):
    """A waiting pod, and the part of KAI that has not reacted to it."""

    namespace: str
    pod: str
    pod_id: str
    part: str
    message: str


class _Events(msgspec.Struct):
    items: list[objects.Event] = []


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    selected_node: str = ""


class _BindingStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    reason: str = ""


class _BindRequest(msgspec.Struct):
    metadata: objects.Metadata = objects.Metadata()
    spec: _Binding = _Binding()
    status: _BindingStatus = _BindingStatus()


class _Inquiry:
    def __init__(self, pod: UnacknowledgedPod) -> None:
        self.pod = pod
        self.message = ""
        self.task: asyncio.Task[None] | None = None


def find_unacknowledged_pod(seen: ObservedWorkload) -> UnacknowledgedPod | None:
    """The first waiting pod to which a part of KAI has not reacted."""
    groups = {group.metadata.name: group for group in seen.groups}
    for pod in filter(is_waiting, seen.pods):
        name, group = pod.metadata.name, groups.get(pod.metadata.annotations.get(GROUP_ANNOTATION, ""))
        if group is None:
            part = POD_GROUPER
            advice = "`fairlead doctor --engine kubernetes` checks whether all parts of KAI work"
            message = f"KAI's pod grouper has not created a pod group for {name}; {advice}"
        elif not refusals_in_pool(group):
            part, pool = SCHEDULER_PART, labelled_pool(group.metadata.labels)
            message = f"No KAI scheduler of node pool {pool} has reacted to {name}; check that one runs"
        else:
            continue
        return UnacknowledgedPod(pod.metadata.namespace, name, pod.metadata.uid, part, message)
    return None


async def load_last_scheduler_event(api: Api, pod: UnacknowledgedPod) -> objects.Event | None:
    """KAI's latest event about the pod. Events are kept for an hour; a request to the binder stands in for them."""
    path = EVENT.path(pod.namespace)
    listed = await api.get(path, fieldSelector=f"involvedObject.uid={pod.pod_id}", limit="50")
    events = [event for event in msgspec.json.decode(listed, type=_Events).items if event.reason in _MEANINGS]
    return max(events, key=last_seen_at) if events else await _load_bind_request(api, pod)


async def _load_bind_request(api: Api, pod: UnacknowledgedPod) -> objects.Event | None:
    try:
        content = await api.find(_BIND_REQUEST.path(pod.namespace, pod.pod))
    except ApiError:
        # For example, this account may not read it.
        return None
    bind_request = msgspec.json.decode(content, type=_BindRequest) if content is not None else _BindRequest()
    if not bind_request.spec.selected_node:
        return None
    if bind_request.status.phase == "Failed":
        return objects.Event(
            reason=_BINDING_ERROR,
            message=bind_request.status.reason,
            event_time=bind_request.metadata.creation_timestamp,
        )
    message = f"node {bind_request.spec.selected_node}"
    return objects.Event(reason=SCHEDULED, message=message, event_time=bind_request.metadata.creation_timestamp)


class UnacknowledgedPods:
    """Calls `changed` with the id of a workload whose message has changed."""

    def __init__(
        self,
        api: Api,
        spawn: Callable[[Coroutine[None, None, None]], asyncio.Task[None]],
        changed: Callable[[str], None],
        patience: float = PATIENCE,
    ) -> None:
        self._api = api
        self._spawn = spawn
        self._changed = changed
        self._patience = patience
        self._inquiries: dict[str, _Inquiry] = {}

    def message(self, workload_id: str, seen: ObservedWorkload) -> str:
        """Why a pod of the workload waits; empty until that has lasted."""
        pod, inquiry = find_unacknowledged_pod(seen), self._inquiries.get(workload_id)
        if inquiry is not None and inquiry.pod != pod:
            del self._inquiries[workload_id]
            if inquiry.task is not None:
                inquiry.task.cancel()
            inquiry = None
        if pod is not None and inquiry is None:
            inquiry = self._inquiries[workload_id] = _Inquiry(pod)
            inquiry.task = self._spawn(self._inquire(workload_id, inquiry))
        return inquiry.message if inquiry is not None else ""

    async def _inquire(self, workload_id: str, inquiry: _Inquiry) -> None:
        """Until cancelled, less and less often."""
        pause, is_chosen = self._patience, False
        while True:
            await asyncio.sleep(pause)
            pause = min(_LONGEST, pause * 2)
            try:
                event = await load_last_scheduler_event(self._api, inquiry.pod)
            except (ApiError, OSError):
                # Unknown. For example, this account may not read events.
                continue
            if event is not None and event.reason == SCHEDULED and not is_chosen:
                # The node may have been chosen a moment ago: the binder gets its time too.
                pause, is_chosen = self._patience, True
                continue
            is_chosen = event is not None and event.reason == SCHEDULED
            message = f"{_MEANINGS[event.reason]}: {event.message}" if event is not None else inquiry.pod.message
            if message != inquiry.message:
                inquiry.message = message
                self._changed(workload_id)
