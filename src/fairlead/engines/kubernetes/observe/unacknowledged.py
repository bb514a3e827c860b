"""What is told of pods that wait while KAI says nothing of them: no scheduler may run for their pool, say.

`engine.py` asks at every change. What lasts is looked into: KAI tells in events alone that a place is kept for a pod,
that a node is chosen, and why it could not be bound to it. `doctor_kai.py` looks in the same way.
"""

import asyncio
from collections.abc import Callable, Coroutine

import msgspec

from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.objects import Event, Metadata
from fairlead.engines.kubernetes.client.resources import EVENT, Resource
from fairlead.engines.kubernetes.observe.events import last_seen_at
from fairlead.engines.kubernetes.observe.report import WorkloadObjectsSeen, is_waiting
from fairlead.engines.kubernetes.plan.node_pools import refusals_in_pool
from fairlead.engines.kubernetes.render.context import GROUP_ANNOTATION, labelled_pool

#: Seconds. KAI looks at everything once a second; in large clusters it may take several.
PATIENCE = 20.0
_LONGEST = 16 * PATIENCE
SCHEDULED, _BINDING_ERROR = "Scheduled", "BindingError"
POD_GROUPER, SCHEDULER_PART, BINDER = "pod grouper", "scheduler", "binder"
#: What KAI's scheduler asks of its binder: the name is the pod's.
_BIND_REQUEST = Resource("scheduling.run.ai/v1alpha2", "BindRequest", "bindrequests")
#: What events of these reasons mean while their pod has no node.
_MEANINGS = {
    "Pipelined": "KAI keeps a place for it until others have left",
    SCHEDULED: "KAI has chosen a node and its binder does not bind the pod to it; see that the binder runs",
    _BINDING_ERROR: "KAI's binder tries again",
}


class UnacknowledgedPod(msgspec.Struct, frozen=True):
    """A pod that waits, and who has taken no notice of it."""

    namespace: str
    pod: str
    pod_id: str
    #: Of KAI.
    part: str
    words: str


class _Events(msgspec.Struct):
    items: list[Event] = []


class _Binding(msgspec.Struct, frozen=True, rename="camel"):
    selected_node: str = ""


class _BindingStatus(msgspec.Struct, frozen=True):
    phase: str = ""
    reason: str = ""


class _BindRequest(msgspec.Struct):
    metadata: Metadata = Metadata()
    spec: _Binding = _Binding()
    status: _BindingStatus = _BindingStatus()


class _Inquiry:
    def __init__(self, silence: UnacknowledgedPod) -> None:
        self.silence = silence
        self.words = ""
        self.task: asyncio.Task[None] | None = None


def find_unacknowledged_pod(held: WorkloadObjectsSeen) -> UnacknowledgedPod | None:
    """The first waiting pod of which a part of KAI has taken no notice."""
    groups = {group.metadata.name: group for group in held.groups}
    for pod in filter(is_waiting, held.pods):
        name, group = pod.metadata.name, groups.get(pod.metadata.annotations.get(GROUP_ANNOTATION, ""))
        if group is None:
            part = POD_GROUPER
            advice = "`fairlead doctor --engine kubernetes` looks whether KAI's parts do their work"
            words = f"KAI's pod grouper has made no pod group for {name}; {advice}"
        elif not refusals_in_pool(group):
            part, pool = SCHEDULER_PART, labelled_pool(group.metadata.labels)
            words = f"No KAI scheduler of node pool {pool} has said anything of {name}; see that one runs"
        else:
            continue
        return UnacknowledgedPod(pod.metadata.namespace, name, pod.metadata.uid, part, words)
    return None


async def load_last_scheduler_event(api: Api, silence: UnacknowledgedPod) -> Event | None:
    """The latest that KAI said of the pod: in events, which stay for an hour, or in what it asks of its binder."""
    path = EVENT.path(silence.namespace)
    found = await api.get(path, fieldSelector=f"involvedObject.uid={silence.pod_id}", limit="50")
    told = [event for event in msgspec.json.decode(found, type=_Events).items if event.reason in _MEANINGS]
    return max(told, key=last_seen_at) if told else await _load_bind_request(api, silence)


async def _load_bind_request(api: Api, silence: UnacknowledgedPod) -> Event | None:
    try:
        found = await api.find(_BIND_REQUEST.path(silence.namespace, silence.pod))
    except ApiError:
        # This account may not read it, say.
        return None
    asked = msgspec.json.decode(found, type=_BindRequest) if found is not None else _BindRequest()
    if not asked.spec.selected_node:
        return None
    if asked.status.phase == "Failed":
        return Event(reason=_BINDING_ERROR, message=asked.status.reason, event_time=asked.metadata.creation_timestamp)
    message = f"node {asked.spec.selected_node}"
    return Event(reason=SCHEDULED, message=message, event_time=asked.metadata.creation_timestamp)


class UnacknowledgedPods:
    """Calls `changed` with the id of a workload for which there are other words."""

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
        self._kept: dict[str, _Inquiry] = {}

    def words(self, workload_id: str, held: WorkloadObjectsSeen) -> str:
        """What to tell now; nothing until it has lasted."""
        silence, kept = find_unacknowledged_pod(held), self._kept.get(workload_id)
        if kept is not None and kept.silence != silence:
            del self._kept[workload_id]
            if kept.task is not None:
                kept.task.cancel()
            kept = None
        if silence is not None and kept is None:
            kept = self._kept[workload_id] = _Inquiry(silence)
            kept.task = self._spawn(self._listen(workload_id, kept))
        return kept.words if kept is not None else ""

    async def _listen(self, workload_id: str, kept: _Inquiry) -> None:
        """Until cancelled, less and less often."""
        pause, is_chosen = self._patience, False
        while True:
            await asyncio.sleep(pause)
            pause = min(_LONGEST, pause * 2)
            try:
                event = await load_last_scheduler_event(self._api, kept.silence)
            except (ApiError, OSError):
                # Not known: this account may not read events, say.
                continue
            if event is not None and event.reason == SCHEDULED and not is_chosen:
                # Perhaps a moment ago: the binder gets its time too.
                pause, is_chosen = self._patience, True
                continue
            is_chosen = event is not None and event.reason == SCHEDULED
            words = f"{_MEANINGS[event.reason]}: {event.message}" if event is not None else kept.silence.words
            if words != kept.words:
                kept.words = words
                self._changed(workload_id)
