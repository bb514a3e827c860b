"""The controllers of pod sets: Jobs, Deployments, LeaderWorkerSets, or a pod group of our own. Pure.

The choice depends on the pod sets alone (docs/designs/0006-kubernetes-engine.md), not on the workload's kind.
"""

from collections.abc import Sequence

import msgspec

from fairlead.engines.kubernetes.client.resources import LEADER_WORKER_SET, Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of, selector_of
from fairlead.engines.kubernetes.render.labels import FAILURES, LEVEL, NODE_SCALING, ROLE_LABEL, SUCCEEDED, role_label
from fairlead.engines.kubernetes.render.pod_security import RESTRICTED
from fairlead.model.pods.podset import PodSet, RestartPolicy, RestartScope

LONGEST_LIFETIME = 2**31 - 1
#: Annotations of the user that the scheduler reads on the owner of the pods.
_OF_OWNERS = ("kai.scheduler/",)


class PodTemplate(msgspec.Struct, frozen=True):
    """A pod set and its pod template."""

    podset: PodSet
    template: Manifest


def render_runners(context: RenderContext, shapes: Sequence[PodTemplate]) -> list[Manifest]:
    serving = [shape for shape in shapes if shape.podset.gang and shape.podset.completions is None]
    if serving:
        return [_leader_worker_set(context, serving)]
    return [_runner(context, shape) for shape in shapes]


def is_group(podsets: Sequence[PodSet]) -> bool:
    """Whether pods start together and run to an end, for which Kubernetes has no controller."""
    return any(podset.gang and podset.completions is not None for podset in podsets)


def _runner(context: RenderContext, shape: PodTemplate) -> Manifest:
    if shape.podset.restart is RestartPolicy.ALWAYS:
        return _deployment(context, shape)
    return _job(context, shape)


def metadata_of_runner(context: RenderContext, shape: PodTemplate) -> Manifest:
    role = {ROLE_LABEL: role_label(shape.podset.role)} if context.ownership_labels else {}
    revision = f"-{shape.podset.revision}" if shape.podset.revision else ""
    metadata = metadata_of(context, f"{context.name}{shape.podset.infix}{revision}", role)
    annotations = shape.template["metadata"].get("annotations", {})
    read = {name: value for name, value in annotations.items() if name.startswith(_OF_OWNERS)}
    if context.level == RESTRICTED:
        read[LEVEL] = context.level
    if context.launch.pool_selectors is not None:
        read[NODE_SCALING] = " ".join(context.launch.pool_selectors)
    if read:
        metadata["annotations"] = read
    return metadata


def _job(context: RenderContext, shape: PodTemplate) -> Manifest:
    podset = shape.podset
    spec: Manifest = {
        "completions": max(1, (podset.completions or 1) - context.launch.succeeded),
        "parallelism": podset.count,
        "backoffLimit": max(0, podset.backoff_limit - context.launch.failures),
        "template": shape.template,
    }
    if context.lifetime is not None:
        spec["ttlSecondsAfterFinished"] = min(context.lifetime, LONGEST_LIFETIME)
    if podset.restart is RestartPolicy.NEVER:
        # Preemption is not a failure, and must not count against the backoff limit.
        disruption = {"type": "DisruptionTarget", "status": "True"}
        spec["podFailurePolicy"] = {"rules": [{"action": "Ignore", "onPodConditions": [disruption]}]}
    metadata = metadata_of_runner(context, shape)
    counts = {SUCCEEDED: context.launch.succeeded, FAILURES: context.launch.failures}
    noted = {name: str(count) for name, count in counts.items() if count}
    if noted:
        metadata["annotations"] = {**metadata.get("annotations", {}), **noted}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _deployment(context: RenderContext, shape: PodTemplate) -> Manifest:
    """For containers that always restart, which a Job does not allow. It replaces an evicted pod by itself."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata_of_runner(context, shape),
        "spec": {
            "replicas": shape.podset.count,
            "selector": {"matchLabels": selector_of(context, shape.podset)},
            # The new pod needs the resources of the old one.
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "template": shape.template,
        },
    }


def _leader_worker_set(context: RenderContext, shapes: Sequence[PodTemplate]) -> Manifest:
    leader, *others = shapes
    worker = others[0] if others else leader
    starts_again = leader.podset.restart_scope is RestartScope.GROUP
    return {
        "apiVersion": LEADER_WORKER_SET.api,
        "kind": LEADER_WORKER_SET.kind,
        "metadata": metadata_of_runner(context, leader),
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


def _restarting(template: Manifest) -> Manifest:
    """Its pods belong to StatefulSets, whose containers always restart; the group's own policy decides what follows."""
    return {**template, "spec": {**template["spec"], "restartPolicy": "Always"}}
