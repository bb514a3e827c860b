"""Checks whether all parts of KAI work: by pods that wait without a reaction, and by a test pod.

`doctor.py` calls it. It does not depend on how KAI is installed, and changes nothing.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.api import Api, ApiError
from fairlead.engines.kubernetes.client.resources import NAMESPACE, POD, POD_GROUP, Manifest
from fairlead.engines.kubernetes.client.writer import ListedObjects, StoredObject
from fairlead.engines.kubernetes.install.checks import NEW_PODS, judge_refusal, judge_waiting
from fairlead.engines.kubernetes.observe.events import last_seen_at
from fairlead.engines.kubernetes.observe.unacknowledged import (
    BINDER,
    PATIENCE,
    SCHEDULED,
    SCHEDULER_PART,
    UnacknowledgedPod,
    find_unacknowledged_pod,
    load_last_scheduler_event,
)
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.render.labels import CLUSTER_LABEL, SCHEDULER
from fairlead.model.clock import Millis
from fairlead.model.finding import Finding

#: The number of pods whose events are read.
_ASKED = 20
#: Pods per request.
_PAGE = "500"


class _Waiting(msgspec.Struct):
    items: list[Manifest] = []


class _Groups(msgspec.Struct):
    items: list[objects.PodGroup] = []


async def check_kai_at_work(api: Api) -> list[Finding]:
    test_pod, now = await _try_pod(api)
    selector = f"spec.schedulerName={SCHEDULER},spec.nodeName=,status.phase=Pending"
    listed = msgspec.json.decode(await api.get(POD.path(), fieldSelector=selector, limit=_PAGE), type=_Waiting)
    pods = find_overdue(listed.items, now)
    stored = await api.find(POD_GROUP.path()) if pods else None
    groups = msgspec.json.decode(stored, type=_Groups).items if stored is not None else []
    unacknowledged = [one for pod in pods if (one := _find_unacknowledged(pod, groups)) is not None]
    silent: list[tuple[str, str]] = []
    for one in unacknowledged[:_ASKED]:
        event = await load_last_scheduler_event(api, one) if one.part == SCHEDULER_PART else None
        if part := decide_part(one, event, now):
            silent.append((part, f"{one.namespace}/{one.pod}"))
    return [test_pod, *judge_waiting(silent, len(pods))]


def find_overdue(pods: Iterable[Manifest], now: Millis) -> list[objects.Pod]:
    """Pods that wait for KAI alone, and have for so long that it should have reacted."""
    ungated = (msgspec.convert(pod, objects.Pod) for pod in pods if not pod["spec"].get("schedulingGates"))
    return [pod for pod in ungated if now - (objects.millis(pod.metadata.creation_timestamp) or now) >= PATIENCE * 1000]


def _find_unacknowledged(pod: objects.Pod, groups: Iterable[objects.PodGroup]) -> UnacknowledgedPod | None:
    near = [group for group in groups if group.metadata.namespace == pod.metadata.namespace]
    return find_unacknowledged_pod(ObservedWorkload(pods=[pod], groups=near))


def decide_part(pod: UnacknowledgedPod, event: objects.Event | None, now: Millis) -> str:
    """The part of KAI that does not work; empty if KAI's last event about the pod explains why it waits."""
    if event is None:
        return pod.part
    return BINDER if event.reason == SCHEDULED and now - last_seen_at(event) >= PATIENCE * 1000 else ""


async def _try_pod(api: Api) -> tuple[Finding, Millis]:
    """Whether a pod for KAI could be created, and the time in the cluster."""
    namespaces = await api.get(NAMESPACE.path(), labelSelector=CLUSTER_LABEL, limit="1")
    names = [one.metadata.name for one in msgspec.json.decode(namespaces, type=ListedObjects).items]
    local_time = round(datetime.now(UTC).timestamp() * 1000)
    try:
        path = POD.path((names or ["default"])[0])
        answer = await api.request("POST", path, _render_pod(), query={"dryRun": "All"})
    except ApiError as error:
        return judge_refusal(error), local_time
    created = msgspec.json.decode(answer, type=StoredObject)
    created_at = objects.millis(created.metadata.creation_timestamp)
    return Finding(NEW_PODS, "ok", "can be created for KAI"), created_at or local_time


def _render_pod() -> Manifest:
    """A pod that the strictest Pod Security level accepts."""
    profile = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    narrow = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "fairlead-doctor", "securityContext": narrow}
    spec = {"schedulerName": SCHEDULER, "securityContext": profile, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "fairlead-doctor-"}, "spec": spec}
