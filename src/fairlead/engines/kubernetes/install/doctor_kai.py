"""Whether KAI's parts do their work: by pods that wait without a word from them, and by a pod that is only tried.

`doctor.py` calls it. How KAI is installed does not matter to it; it changes nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import NAMESPACE, POD, POD_GROUP, Manifest
from fairlead.engines.kubernetes.client.writer import ListedObjects, StoredObject
from fairlead.engines.kubernetes.install.checks import Finding
from fairlead.engines.kubernetes.observe.events import last_seen_at
from fairlead.engines.kubernetes.observe.unacknowledged import (
    BINDER,
    PATIENCE,
    POD_GROUPER,
    SCHEDULED,
    SCHEDULER_PART,
    UnacknowledgedPod,
    find_unacknowledged_pod,
    load_last_scheduler_event,
)
from fairlead.engines.kubernetes.observe.workload import WorkloadObjectsSeen
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, SCHEDULER
from fairlead.model.clock import Millis

_AT_WORK, _NEW_PODS = "KAI at work", "New pods"
_WEBHOOK = "failed calling webhook"
_ADVICE = f"See that it runs (kubectl get pods -n {SCHEDULER}, if KAI is installed there), and what it logs"
#: Events are asked for of so many pods, and pods are read so many at once.
_ASKED, _READ = 20, "500"
_SAYS = {
    POD_GROUPER: "has made no pod group for {}",
    SCHEDULER_PART: "says nothing of {}",
    BINDER: "does not bind {}, for which a node is chosen",
}


class _Waiting(msgspec.Struct):
    items: list[Manifest] = []


class _Groups(msgspec.Struct):
    items: list[objects.PodGroup] = []


async def look_at_work(api: Api) -> list[Finding]:
    tried, now = await _try_pod(api)
    selector = f"spec.schedulerName={SCHEDULER},spec.nodeName=,status.phase=Pending"
    found = msgspec.json.decode(await api.get(POD.path(), fieldSelector=selector, limit=_READ), type=_Waiting)
    pods = find_overdue(found.items, now)
    known = await api.find(POD_GROUP.path()) if pods else None
    groups = msgspec.json.decode(known, type=_Groups).items if known is not None else []
    silent = [one for pod in pods if (one := _silence_of(pod, groups)) is not None]
    parts: list[tuple[str, str]] = []
    for one in silent[:_ASKED]:
        event = await load_last_scheduler_event(api, one) if one.part == SCHEDULER_PART else None
        if part := decide_part(one, event, now):
            parts.append((part, f"{one.namespace}/{one.pod}"))
    return [tried, *judge_waiting(parts, len(pods))]


def find_overdue(pods: Iterable[Manifest], now: Millis) -> list[objects.Pod]:
    """Those that wait for KAI and for nobody else, and have for so long that it should have said something."""
    ungated = (msgspec.convert(pod, objects.Pod) for pod in pods if not pod["spec"].get("schedulingGates"))
    return [pod for pod in ungated if now - (objects.millis(pod.metadata.creation_timestamp) or now) >= PATIENCE * 1000]


def _silence_of(pod: objects.Pod, groups: Iterable[objects.PodGroup]) -> UnacknowledgedPod | None:
    near = [group for group in groups if group.metadata.namespace == pod.metadata.namespace]
    return find_unacknowledged_pod(WorkloadObjectsSeen(pods=[pod], groups=near))


def decide_part(silence: UnacknowledgedPod, event: objects.Event | None, now: Millis) -> str:
    """Which part of KAI does not do its work; empty where the last that it said of the pod is enough."""
    if event is None:
        return silence.part
    return BINDER if event.reason == SCHEDULED and now - last_seen_at(event) >= PATIENCE * 1000 else ""


def judge_waiting(parts: Sequence[tuple[str, str]], overdue: int) -> list[Finding]:
    """What follows from the pods of which a part of KAI takes no notice, of so many that wait for long."""
    found = []
    for part, words in _SAYS.items():
        names = [pod for silent, pod in parts if silent == part]
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            told = f"{words.format(names[0] + more)}, for {PATIENCE:g} s or longer"
            found.append(Finding(f"KAI's {part}", "missing", told, _ADVICE))
    if found:
        return found
    told = (
        f"takes notice of all of {overdue} that wait"
        if overdue
        else f"no pod waits for it for {PATIENCE:g} s or longer"
    )
    return [Finding(_AT_WORK, "ok", told)]


async def _try_pod(api: Api) -> tuple[Finding, Millis]:
    """Whether a pod for KAI would be made, and what time it is in the cluster."""
    ours = await api.get(NAMESPACE.path(), labelSelector=CLUSTER_LABEL, limit="1")
    names = [one.metadata.name for one in msgspec.json.decode(ours, type=ListedObjects).items]
    here = round(datetime.now(UTC).timestamp() * 1000)
    try:
        path = POD.path((names or ["default"])[0])
        answer = await api.request("POST", path, _render_pod(), query={"dryRun": "All"})
    except ApiError as error:
        return judge_refusal(error), here
    made = msgspec.json.decode(answer, type=StoredObject)
    return Finding(_NEW_PODS, "ok", "can be made for KAI"), objects.millis(made.metadata.creation_timestamp) or here


def judge_refusal(error: ApiError) -> Finding:
    """A pod that is refused for its own sake says nothing of KAI; one that nobody could look at does."""
    if _WEBHOOK in error.message:
        advice = "See that what answers this webhook runs; KAI's is its admission"
        return Finding(_NEW_PODS, "missing", error.message, advice)
    advice = "Nothing, if workloads start; otherwise this may be why they do not"
    return Finding(_NEW_PODS, "note", f"one that was only tried is refused: {error.message}", advice)


def _render_pod() -> Manifest:
    """One that the strictest level of Pod Security takes."""
    profile = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    narrow = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "fairlead-doctor", "securityContext": narrow}
    spec = {"schedulerName": SCHEDULER, "securityContext": profile, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "fairlead-doctor-"}, "spec": spec}
