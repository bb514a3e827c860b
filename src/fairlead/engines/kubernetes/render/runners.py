"""Which object runs which pod sets: Jobs, Deployments, LeaderWorkerSets, or a pod group of our own. Pure.

The choice follows from the pod sets' words alone (docs/designs/0006-kubernetes-engine.md); no kind is known here.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.resources import LEADER_WORKER_SET
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, selector_of
from fairlead.engines.kubernetes.render.labels import LEVEL, ROLE_LABEL, role_label
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope

LONGEST_LIFETIME = 2**31 - 1
#: Annotations of the user's that the scheduler reads on what owns the pods.
_OF_OWNERS = ("kai.scheduler/",)


class PodTemplate(msgspec.Struct, frozen=True):
    """A pod set, and its pod as Kubernetes wants it."""

    podset: PodSet
    template: dict[str, Any]


def render_runners(place: RenderContext, shapes: Sequence[PodTemplate]) -> list[dict[str, Any]]:
    serving = [shape for shape in shapes if shape.podset.gang and shape.podset.completions is None]
    if serving:
        return [_leader_worker_set(place, serving)]
    return [_runner(place, shape) for shape in shapes]


def is_group(podsets: Sequence[PodSet]) -> bool:
    """Whether pods start together and run to an end: no object of Kubernetes' own does that."""
    return any(podset.gang and podset.completions is not None for podset in podsets)


def _runner(place: RenderContext, shape: PodTemplate) -> dict[str, Any]:
    if shape.podset.restart is RestartPolicy.ALWAYS:
        return _deployment(place, shape)
    return _job(place, shape)


def metadata_of_runner(place: RenderContext, shape: PodTemplate) -> dict[str, Any]:
    role = {ROLE_LABEL: role_label(shape.podset.role)} if place.ownership_labels else {}
    revision = f"-{shape.podset.revision}" if shape.podset.revision else ""
    metadata = metadata_of(place, f"{place.name}{shape.podset.infix}{revision}", role)
    annotations = shape.template["metadata"].get("annotations", {})
    read = {name: value for name, value in annotations.items() if name.startswith(_OF_OWNERS)}
    if place.level == RESTRICTED:
        read[LEVEL] = place.level
    if read:
        metadata["annotations"] = read
    return metadata


def _job(place: RenderContext, shape: PodTemplate) -> dict[str, Any]:
    podset = shape.podset
    spec: dict[str, Any] = {
        "completions": podset.completions or 1,
        "parallelism": podset.count,
        "backoffLimit": podset.backoff_limit,
        "template": shape.template,
    }
    if place.lifetime is not None:
        spec["ttlSecondsAfterFinished"] = min(place.lifetime, LONGEST_LIFETIME)
    if podset.restart is RestartPolicy.NEVER:
        # Preemption is no failure: it must not count against the backoff limit.
        disruption = {"type": "DisruptionTarget", "status": "True"}
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [disruption]}]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata_of_runner(place, shape), "spec": spec}


def _deployment(place: RenderContext, shape: PodTemplate) -> dict[str, Any]:
    """For containers that restart for ever, which no Job allows; an evicted pod is made again by itself."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of_runner(place, shape),
        "spec": {
            "replicas": shape.podset.count,
            "selector": {"matchLabels": selector_of(place, shape.podset)},
            # The old pod's room is needed by the new one.
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "template": shape.template,
        },
    }


def _leader_worker_set(place: RenderContext, shapes: Sequence[PodTemplate]) -> dict[str, Any]:
    leader, *others = shapes
    worker = others[0] if others else leader
    starts_again = leader.podset.restart_scope is RestartScope.GROUP
    return {
        "apiVersion": LEADER_WORKER_SET.api,
        "kind": LEADER_WORKER_SET.kind,
        "metadata": metadata_of_runner(place, leader),
        "spec": {
            "replicas": leader.podset.groups,
            "startupPolicy": "LeaderReady" if worker.podset.starts_after else "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": 1 + sum(shape.podset.count for shape in others),
                "restartPolicy": "RecreateGroupOnPodRestart" if starts_again else "None",
                "leaderTemplate": _restarting(leader.template),
                "workerTemplate": _restarting(worker.template),
            },
        },
    }


def _restarting(template: dict[str, Any]) -> dict[str, Any]:
    """Its pods are StatefulSets', whose containers always restart; what that brings about is the group's affair."""
    return {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}
