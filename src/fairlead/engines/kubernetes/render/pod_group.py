"""Pods that start together and run to an end, on clusters without an operator for them: a pod group of our own. Pure.

KAI gangs pods that name their group and have no owner; nobody makes such pods again, so `decide_group` says what is to
be made and removed. `engine.py` asks it whenever something of such a workload changes.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fairlead.engines.kubernetes.client.objects import Pod, PodGroup, condition
from fairlead.engines.kubernetes.client.resources import POD, POD_GROUP, SERVICE
from fairlead.engines.kubernetes.render.context import (
    DEFAULT_POOL,
    GROUP_ANNOTATION,
    ID_LABEL,
    RUN_LABEL,
    RUNAI_QUEUE_LABEL,
    WORKLOAD_LABEL,
    RenderContext,
    metadata_of,
    pool_labels,
    role_of,
)
from fairlead.engines.kubernetes.render.organization import project_queue
from fairlead.engines.kubernetes.render.runners import PodTemplate
from fairlead.model.pods.podset import PodSet, RestartScope, fill
from fairlead.model.records.phase import Phase

#: On pod groups that we made ourselves, and on their pods: which place in its set a pod has, and in which attempt.
OWN_LABEL, INDEX_LABEL, ATTEMPT_LABEL = "fairlead/own-group", "fairlead/index", "fairlead/attempt"
FAILURES = "fairlead/failures"
#: On a pod group of our own that has ended well: its pods may go, and are not made again.
COMPLETED = "fairlead/completed"
#: KAI's own, on a pod that is counted by its role.
_SUBGROUP = "kai.scheduler/subgroup-name"
_WORD = re.compile(r"\{(host|fqdn):([^{}]+)\}|\{port:(\d+)\+\d+\}")


class GroupPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done for a group now."""

    #: Names of pods to remove.
    remove: tuple[str, ...] = ()
    #: (role, index) of pods to make.
    make: tuple[tuple[str, int], ...] = ()
    #: A pod failed and everything begins again: one more failure is to be counted.
    is_broken: bool = False


def is_fairlead_group(group: PodGroup) -> bool:
    return OWN_LABEL in group.metadata.labels


def find_fairlead_group(groups: Iterable[PodGroup]) -> PodGroup | None:
    return next((group for group in groups if is_fairlead_group(group)), None)


def failures_of(group: PodGroup) -> int:
    """As it is written on the group."""
    text = group.metadata.annotations.get(FAILURES, "")
    return int(text) if text.isdecimal() else 0


def count_failures(group: PodGroup, pods: Iterable[Pod]) -> int:
    """Its pods know it too: they say in which attempt they are. A group that somebody removed is made anew without."""
    return max((failures_of(group), *(_attempt(pod) for pod in pods)))


def decide_group(
    podsets: Sequence[PodSet], pods: Collection[Pod], failures: int, *, is_complete: bool = False
) -> GroupPlan:
    """Pods of the present run in, what follows out. What has been complete stays so when its pods are gone."""
    current = [pod for pod in pods if _attempt(pod) == failures]
    if is_complete or group_end(podsets, pods, failures) is not None:
        keeps = {podset.role for podset in podsets if podset.keeps_running}
        rest = [pod for pod in pods if not _has_ended(pod) and _role(pod) not in keeps]
        return GroupPlan(remove=_leaving(rest))
    stale = [pod for pod in pods if _attempt(pod) != failures]
    if stale:
        return GroupPlan(remove=_leaving(stale))
    scopes = {podset.role: podset.restart_scope for podset in podsets}
    if any(is_failed(pod) and scopes.get(_role(pod)) is RestartScope.GROUP for pod in current):
        return GroupPlan(is_broken=True)
    evicted = [pod for pod in current if pod.status.phase == "Failed"]
    there = {(_role(pod), _index(pod)) for pod in current}
    wanted = [
        (podset.role, index)
        for podset in podsets
        if not podset.starts_after or _is_ready(podsets, podset.starts_after, current)
        for index in range(podset.count)
    ]
    return GroupPlan(remove=_leaving(evicted), make=tuple(place for place in wanted if place not in there))


def group_end(podsets: Sequence[PodSet], pods: Iterable[Pod], failures: int) -> tuple[Phase, str] | None:
    """Complete when the first set is; failed after more failures than are made good."""
    first = podsets[0]
    if failures > first.backoff_limit:
        return Phase.FAILED, f"BackoffLimitExceeded: it began again {first.backoff_limit} times, and failed once more"
    done = {_index(pod) for pod in pods if _role(pod) == first.role and pod.status.phase == "Succeeded"}
    return (Phase.COMPLETED, "") if len(done) >= (first.completions or first.count) else None


def find_end(group: PodGroup, podsets: Sequence[PodSet], pods: Collection[Pod]) -> tuple[Phase, str] | None:
    """How a group has ended: as is written on it, or as its pods say; without the pod sets nobody knows the latter."""
    if COMPLETED in group.metadata.annotations:
        return Phase.COMPLETED, ""
    return group_end(podsets, pods, count_failures(group, pods)) if podsets else None


def has_completed(group: PodGroup, podsets: Sequence[PodSet], pods: Collection[Pod]) -> bool:
    end = find_end(group, podsets, pods)
    return end is not None and end[0] is Phase.COMPLETED


def is_failed(pod: Pod) -> bool:
    """Whether it failed by itself, and was not taken away."""
    return pod.status.phase == "Failed" and condition(pod.status.conditions, "DisruptionTarget") is None


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _is_ready(podsets: Sequence[PodSet], role: str, pods: Iterable[Pod]) -> bool:
    count = next(podset.count for podset in podsets if podset.role == role)
    ready = [pod for pod in pods if _role(pod) == role and condition(pod.status.conditions, "Ready")]
    return len(ready) >= count


def _leaving(pods: Iterable[Pod]) -> tuple[str, ...]:
    return tuple(pod.metadata.name for pod in pods if pod.metadata.deletion_timestamp is None)


def _role(pod: Pod) -> str:
    return role_of(pod.metadata.labels)


def _index(pod: Pod) -> int:
    return int(pod.metadata.labels.get(INDEX_LABEL, "0"))


def _attempt(pod: Pod) -> int:
    return int(pod.metadata.labels.get(ATTEMPT_LABEL, "0"))


# Objects


def render_group(place: RenderContext, podsets: Sequence[PodSet]) -> list[dict[str, Any]]:
    """The pod group, and the service by which its pods find each other."""
    least = sum(podset.min_count for podset in podsets)
    subgroups = _subgroups(podsets)
    pool = place.begun.pool or place.pool or next(iter(place.pools), DEFAULT_POOL)
    labels = {OWN_LABEL: "true", RUNAI_QUEUE_LABEL: project_queue(place.project, (pool,)), **pool_labels(pool)}
    group = {
        "apiVersion": POD_GROUP.api,
        "kind": POD_GROUP.kind,
        "metadata": metadata_of(place, place.name, labels),
        "spec": {
            "minMember": least,
            **({"subGroups": subgroups} if subgroups else {}),
            "queue": project_queue(place.project, (pool,)),
            "priorityClassName": place.priority_class,
            "preemptibility": "preemptible" if place.is_preemptible else "non-preemptible",
        },
    }
    selector = {ID_LABEL: place.ownership_labels[ID_LABEL]} if place.ownership_labels else {WORKLOAD_LABEL: place.name}
    service = {
        "apiVersion": SERVICE.api,
        "kind": SERVICE.kind,
        "metadata": metadata_of(place, place.name),
        # Programs look for each other before they are ready.
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }
    return [group, service]


def _subgroups(podsets: Sequence[PodSet]) -> list[dict[str, Any]]:
    """How many of each role there must be, where not all pods are needed: KAI would take any, and leave the master."""
    if len(podsets) < 2 or not all(podset.min_count for podset in podsets):
        return []
    is_elastic = any(podset.min_count < podset.count for podset in podsets)
    return [{"name": podset.role, "minMember": podset.min_count} for podset in podsets] if is_elastic else []


def render_templates(shapes: Sequence[PodTemplate]) -> list[PodTemplate]:
    """The pods of a group, each with its role where KAI counts them by it."""
    if not _subgroups([shape.podset for shape in shapes]):
        return list(shapes)
    found = []
    for shape in shapes:
        metadata = shape.template["metadata"]
        labels = {**metadata["labels"], _SUBGROUP: shape.podset.role}
        found.append(PodTemplate(shape.podset, {**shape.template, "metadata": {**metadata, "labels": labels}}))
    return found


def render_member(place: RenderContext, shape: PodTemplate, index: int, attempt: int) -> dict[str, Any]:
    """One pod of the group. It has no owner, so that KAI takes the group that it names."""
    podset, template = shape.podset, shape.template
    values = {
        "workload": place.name,
        "namespace": place.namespace,
        "run": str(int(place.ownership_labels.get(RUN_LABEL, "1")) - 1),
        "role": podset.role,
        "group": "0",
        "index": str(index),
        "ordinal": str(index + podset.offset),
    }
    name = fill(podset.naming, values)
    labels = {**template["metadata"]["labels"], INDEX_LABEL: str(index), ATTEMPT_LABEL: str(attempt)}
    annotations = {**template["metadata"].get("annotations", {}), GROUP_ANNOTATION: place.name}
    main, *others = template["spec"]["containers"]
    return {
        "apiVersion": POD.api,
        "kind": POD.kind,
        "metadata": {"name": name, "namespace": place.namespace, "labels": labels, "annotations": annotations},
        "spec": {
            **template["spec"],
            "hostname": name,
            "subdomain": place.name,
            "containers": [{**main, "env": _environment(main, podset, values)}, *others],
        },
    }


def _environment(main: Mapping[str, Any], podset: PodSet, values: dict[str, str]) -> list[dict[str, Any]]:
    """By which it finds the others, before the user's own variables; those win."""
    given = main.get("env", [])
    names = {variable["name"] for variable in given}

    def meet(found: re.Match[str]) -> str:
        if found[3] is not None:
            return found[3]
        host = f"{found[2]}.{values['workload']}"
        return host if found[1] == "host" else f"{host}.{values['namespace']}"

    own = {name: _WORD.sub(meet, fill(template, values)) for name, template in podset.variables.items()}
    return [*({"name": name, "value": value} for name, value in own.items() if name not in names), *given]
