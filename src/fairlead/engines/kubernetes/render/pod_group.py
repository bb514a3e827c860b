"""Pods that start together and run to an end, on clusters without an operator for them: a pod group of our own. Pure.

KAI gangs pods that name their group and have no owner.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.engines.kubernetes.client.resources import POD, POD_GROUP, SERVICE
from fairlead.engines.kubernetes.render.context import RenderContext, metadata_of
from fairlead.engines.kubernetes.render.labels import (
    ATTEMPT_LABEL,
    DEFAULT_POOL,
    GROUP_ANNOTATION,
    ID_LABEL,
    INDEX_LABEL,
    OWN_LABEL,
    RUN_LABEL,
    RUNAI_QUEUE_LABEL,
    WORKLOAD_LABEL,
    pool_labels,
)
from fairlead.engines.kubernetes.render.organization import project_queue
from fairlead.engines.kubernetes.render.runners import PodTemplate
from fairlead.model.pods.podset import PodSet, fill

#: KAI's own, on a pod that is counted by its role.
_SUBGROUP = "kai.scheduler/subgroup-name"
_WORD = re.compile(r"\{(host|fqdn):([^{}]+)\}|\{port:(\d+)\+\d+\}")


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
