"""A snapshot from the objects of a cluster that KAI schedules: nodes, queues, pod groups with their pods. Pure.

    snapshot = convert_objects(objects, now)

Pods of other schedulers, and pods without a pod group, count as used on their nodes. KAI's own pods that reserve shared
GPUs are left out, because the pods that share a GPU name it. Not read: volumes and resource claims.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import get_args

import msgspec

from fairlead.foresight.kai.objects import (
    KaiArchive,
    KaiMetadata,
    KaiNode,
    KaiObjects,
    KaiPod,
    KaiPodGroup,
    KaiQueue,
    KaiShare,
    KaiTopologyConstraint,
)
from fairlead.foresight.kai.pods import convert_pod, is_finished, sum_requests
from fairlead.model.quantity import thousandths, whole
from fairlead.scheduling.model.snapshot import (
    DEFAULT_POOL,
    Action,
    ForeignUsage,
    Job,
    JobPodSet,
    NodeTaint,
    Queue,
    QueueShares,
    Settings,
    Share,
    Snapshot,
    SnapshotNode,
    SubGroup,
    Task,
    Topology,
    TopologyConstraint,
)

SCHEDULER = "kai-scheduler"
_POOL = "kai.scheduler/node-pool"
_GROUP = "pod-group-name"
_RESERVATIONS = "kai-resource-reservation"
_LAST_START, _STALE = "kai.scheduler/last-start-timestamp", "kai.scheduler/stale-podgroup-timestamp"
_DEFAULT_PRIORITY, _MIN_FIXED_PRIORITY = 50, 100
#: KAI rounds the memory of GPUs down to a multiple of this many MiB.
_MEMORY_STEP = 100
_MEGABYTE = 1_000_000
_PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu"})
_MIG = "nvidia.com/mig-"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def convert_archive(text: bytes) -> Snapshot:
    """The snapshot of KAI's `snapshot.json`; its time is the newest that its objects name. Raises a DecodeError."""
    archive = msgspec.json.decode(text, type=KaiArchive)
    objects = archive.raw_objects
    snapshot = convert_objects(objects, max(_times(objects), default=0.0))
    known = get_args(Action)
    named = [word.strip() for word in archive.config.actions.split(",")] if archive.config else []
    actions = tuple(word for word in named if word in known)
    settings: Settings = msgspec.structs.replace(snapshot.settings, actions=actions or None)
    converted: Snapshot = msgspec.structs.replace(snapshot, settings=settings)
    return converted


def convert_objects(objects: KaiObjects, now: float) -> Snapshot:
    pods = [pod for pod in objects.pods or () if pod.metadata.namespace != _RESERVATIONS]
    binding = {
        (request.metadata.namespace, request.spec.pod_name): request.spec
        for request in objects.bind_requests or ()
        if request.status.phase != "Failed"
    }
    groups = {(group.metadata.namespace, group.metadata.name): group for group in objects.pod_groups or ()}
    tasks: dict[tuple[str, str], list[Task]] = defaultdict(list)
    foreign: dict[str, list[KaiPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name)):
        key = (pod.metadata.namespace, (pod.metadata.annotations or {}).get(_GROUP, ""))
        if pod.spec.scheduler_name == SCHEDULER and key in groups:
            request = binding.get((pod.metadata.namespace, pod.metadata.name))
            tasks[key].append(convert_pod(pod, request, _seconds(pod.metadata.creation_timestamp)))
        elif pod.spec.node_name and not is_finished(pod):
            foreign[pod.spec.node_name].append(pod)
    priorities = {each.metadata.name: each.value for each in objects.priority_classes or ()}
    return Snapshot(
        now=now,
        nodes=tuple(_node(node, foreign[node.metadata.name]) for node in sorted(objects.nodes or (), key=_name_of)),
        queues=tuple(_queue(queue) for queue in sorted(objects.queues or (), key=_name_of)),
        jobs=tuple(_job(groups[key], tuple(tasks[key]), priorities) for key in sorted(groups) if tasks[key]),
        topologies=tuple(
            Topology(name=each.metadata.name, levels=tuple(level.node_label for level in each.spec.levels))
            for each in objects.topologies or ()
        ),
        settings=Settings(staleness_grace=60),
    )


def _name_of(item: KaiNode | KaiQueue) -> str:
    return item.metadata.name


def _pool(metadata: KaiMetadata) -> str:
    return (metadata.labels or {}).get(_POOL) or DEFAULT_POOL


def _node(node: KaiNode, foreign: Iterable[KaiPod]) -> SnapshotNode:
    labels = node.metadata.labels or {}
    has = {name: str(value) for name, value in (node.status.allocatable or {}).items()}
    mig = {name.removeprefix(_MIG): whole(value) for name, value in has.items() if name.startswith(_MIG)}
    memory = labels.get("nvidia.com/gpu.memory", "")
    return SnapshotNode(
        name=node.metadata.name,
        cpu_milli=thousandths(has.get("cpu", "0")),
        memory_bytes=whole(has.get("memory", "0")),
        pods=whole(has.get("pods", "110")),
        gpu=whole(has.get("nvidia.com/gpu", "0")),
        gpu_memory_mib=int(memory) // _MEMORY_STEP * _MEMORY_STEP if memory.isdecimal() else 0,
        mig_strategy="mixed" if any(mig.values()) else "none",
        mig=mig,
        extended={
            name: whole(value)
            for name, value in has.items()
            if name not in _PLAIN and "/" in name and not name.startswith(_MIG)
        },
        labels=labels,
        taints=tuple(
            NodeTaint(key=taint.key, value=taint.value, effect=taint.effect)  # type: ignore[arg-type]  # one of these
            for taint in node.spec.taints or ()
            if taint.effect in _EFFECTS
        ),
        ready=any(one.type == "Ready" and one.status == "True" for one in node.status.conditions or ()),
        unschedulable=node.spec.unschedulable,
        node_pool=_pool(node.metadata),
        foreign=_sum_foreign(foreign),
    )


def _sum_foreign(pods: Iterable[KaiPod]) -> ForeignUsage:
    requests = [sum_requests(pod) for pod in pods]
    names = {name for request in requests for name in request if "/" in name and name not in _PLAIN}
    return ForeignUsage(
        cpu_milli=sum(thousandths(request.get("cpu", "0")) for request in requests),
        memory_bytes=sum(whole(request.get("memory", "0")) for request in requests),
        gpu=sum(whole(request.get("nvidia.com/gpu", "0")) for request in requests),
        pods=len(requests),
        extended={name: sum(whole(request.get(name, "0")) for request in requests) for name in sorted(names)},
    )


def _queue(queue: KaiQueue) -> Queue:
    shares = queue.spec.resources
    return Queue(
        name=queue.metadata.name,
        node_pool=_pool(queue.metadata),
        display_name=queue.spec.display_name,
        parent=queue.spec.parent_queue or None,
        priority=100 if queue.spec.priority is None else queue.spec.priority,
        created=_seconds(queue.metadata.creation_timestamp),
        resources=QueueShares(
            gpu=_share(shares.gpu, 1), cpu=_share(shares.cpu, 1), memory=_share(shares.memory, _MEGABYTE)
        ),
        preempt_min_runtime=_duration(queue.spec.preempt_min_runtime),
        reclaim_min_runtime=_duration(queue.spec.reclaim_min_runtime),
    )


def _share(share: KaiShare, unit: int) -> Share:
    return Share(
        quota=share.quota * unit if share.quota >= 0 else -1,
        limit=share.limit * unit if share.limit >= 0 else -1,
        over_quota_weight=share.over_quota_weight,
    )


def _job(group: KaiPodGroup, tasks: tuple[Task, ...], priorities: dict[str, int]) -> Job:
    spec, metadata = group.spec, group.metadata
    annotations = metadata.annotations or {}
    priority = priorities.get(spec.priority_class_name, _DEFAULT_PRIORITY)
    is_preemptible = spec.preemptibility == "preemptible" or (
        spec.preemptibility != "non-preemptible" and priority < _MIN_FIXED_PRIORITY
    )
    groups, pod_sets = _tree(group, None)
    # Without subgroups, all pods are of one set whatever their labels say.
    of_one_set = tuple(msgspec.structs.replace(task, pod_set="default") for task in tasks)
    return Job(
        id=f"{metadata.namespace}/{metadata.name}",
        queue=spec.queue or (metadata.labels or {}).get("kai.scheduler/queue", ""),
        name=metadata.name,
        namespace=metadata.namespace,
        priority=priority,
        preemptible=is_preemptible,
        created=_seconds(metadata.creation_timestamp),
        last_start=_moment(annotations.get(_LAST_START)),
        stale_since=_moment(annotations.get(_STALE)),
        tasks=tasks if spec.sub_groups else of_one_set,
        min_available=1 if spec.min_member is None else spec.min_member,
        min_sub_group=spec.min_sub_group,
        topology=_constraint(spec.topology_constraint),
        groups=groups,
        pod_sets=pod_sets,
        node_pools=(_pool(metadata),),
    )


def _tree(group: KaiPodGroup, parent: str | None) -> tuple[tuple[SubGroup, ...], tuple[JobPodSet, ...]]:
    """The subgroups below one of them: those with children are groups, the others are sets of pods."""
    sub_groups = group.spec.sub_groups or ()
    parents = {each.parent for each in sub_groups}
    groups, pod_sets = [], []
    for each in sub_groups:
        if (each.parent or None) != parent:
            continue
        constraint = _constraint(each.topology_constraint)
        if each.name in parents:
            inner, sets = _tree(group, each.name)
            groups.append(
                SubGroup(
                    name=each.name, min_sub_group=each.min_sub_group, topology=constraint, groups=inner, pod_sets=sets
                )
            )
        else:
            min_member = 1 if each.min_member is None else each.min_member
            pod_sets.append(JobPodSet(name=each.name, min_available=min_member, topology=constraint))
    return tuple(groups), tuple(pod_sets)


def _constraint(given: KaiTopologyConstraint | None) -> TopologyConstraint | None:
    if given is None or not given.topology:
        return None
    return TopologyConstraint(
        topology=given.topology,
        required=given.required_topology_level or None,
        preferred=given.preferred_topology_level or None,
    )


def _seconds(text: str | None) -> float:
    return _moment(text) or 0.0


def _moment(text: str | None) -> float | None:
    """The seconds of a time in RFC 3339; None if there is none."""
    return datetime.fromisoformat(text).timestamp() if text else None


def _duration(text: str | None) -> float | None:
    """The seconds of a duration as Go writes it, such as 1h0m30s."""
    if not text:
        return None
    total, number = 0.0, ""
    for letter in text:
        if letter in _SECONDS:
            total, number = total + float(number or 0) * _SECONDS[letter], ""
        else:
            number += letter
    return total


def _times(objects: KaiObjects) -> Iterator[float]:
    for items in (objects.pods, objects.nodes, objects.pod_groups, objects.queues, objects.bind_requests):
        for item in items or ():
            yield _seconds(item.metadata.creation_timestamp)
            yield _seconds(item.metadata.deletion_timestamp)
