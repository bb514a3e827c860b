"""Pods that start together and run to an end, on clusters without an operator for them: a pod group of our own. Pure.

KAI gangs pods that name their group and have no owner.
"""

import re
from collections.abc import Sequence

from fairlead.engines.kubernetes.client.resources import POD, POD_GROUP, SERVICE, Manifest
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

#: KAI's own label, on pods that are counted by role.
_SUBGROUP = "kai.scheduler/subgroup-name"
_WORD = re.compile(r"\{(host|fqdn):([^{}]+)\}|\{port:(\d+)\+\d+\}")


def render_group(context: RenderContext, podsets: Sequence[PodSet]) -> list[Manifest]:
    """The pod group, and the service by which its pods find each other."""
    min_member = sum(podset.min_count for podset in podsets)
    subgroups = _subgroups(podsets)
    pool = context.launch.pool or context.pool or next(iter(context.pools), DEFAULT_POOL)
    labels = {OWN_LABEL: "true", RUNAI_QUEUE_LABEL: project_queue(context.project, (pool,)), **pool_labels(pool)}
    group = {
        "apiVersion": POD_GROUP.api,
        "kind": POD_GROUP.kind,
        "metadata": metadata_of(context, context.name, labels),
        "spec": {
            "minMember": min_member,
            **({"subGroups": subgroups} if subgroups else {}),
            "queue": project_queue(context.project, (pool,)),
            "priorityClassName": context.priority_class,
            "preemptibility": "preemptible" if context.is_preemptible else "non-preemptible",
        },
    }
    selector = (
        {ID_LABEL: context.ownership_labels[ID_LABEL]} if context.ownership_labels else {WORKLOAD_LABEL: context.name}
    )
    service = {
        "apiVersion": SERVICE.api,
        "kind": SERVICE.kind,
        "metadata": metadata_of(context, context.name),
        # Programs look each other up before they are ready.
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }
    return [group, service]


def _subgroups(podsets: Sequence[PodSet]) -> list[Manifest]:
    """The minimum of each role, if not all pods are needed: KAI would place any pods, and perhaps not the master."""
    if len(podsets) < 2 or not all(podset.min_count for podset in podsets):
        return []
    is_elastic = any(podset.min_count < podset.count for podset in podsets)
    return [{"name": podset.role, "minMember": podset.min_count} for podset in podsets] if is_elastic else []


def render_templates(shapes: Sequence[PodTemplate]) -> list[PodTemplate]:
    """The pod templates of a group, with the role as a label if KAI counts by role."""
    if not _subgroups([shape.podset for shape in shapes]):
        return list(shapes)
    labelled = []
    for shape in shapes:
        metadata = shape.template["metadata"]
        labels = {**metadata["labels"], _SUBGROUP: shape.podset.role}
        labelled.append(PodTemplate(shape.podset, {**shape.template, "metadata": {**metadata, "labels": labels}}))
    return labelled


def render_member(context: RenderContext, shape: PodTemplate, index: int, attempt: int) -> Manifest:
    """One pod of the group. It has no owner, so that KAI uses the group that it names."""
    podset, template = shape.podset, shape.template
    values = {
        "workload": context.name,
        "namespace": context.namespace,
        "run": str(int(context.ownership_labels.get(RUN_LABEL, "1")) - 1),
        "role": podset.role,
        "group": "0",
        "index": str(index),
        "ordinal": str(index + podset.offset),
    }
    name = fill(podset.naming, values)
    labels = {**template["metadata"]["labels"], INDEX_LABEL: str(index), ATTEMPT_LABEL: str(attempt)}
    annotations = {**template["metadata"].get("annotations", {}), GROUP_ANNOTATION: context.name}
    main, *others = template["spec"]["containers"]
    return {
        "apiVersion": POD.api,
        "kind": POD.kind,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels, "annotations": annotations},
        "spec": {
            **template["spec"],
            "hostname": name,
            "subdomain": context.name,
            "containers": [{**main, "env": _environment(main, podset, values)}, *others],
        },
    }


def _environment(main: Manifest, podset: PodSet, values: dict[str, str]) -> list[Manifest]:
    """Adds the variables by which pods find each other, before the user's own; those win."""
    given = main.get("env", [])
    names = {variable["name"] for variable in given}

    def meet(match: re.Match[str]) -> str:
        if match[3] is not None:
            return match[3]
        host = f"{match[2]}.{values['workload']}"
        return host if match[1] == "host" else f"{host}.{values['namespace']}"

    own = {name: _WORD.sub(meet, fill(template, values)) for name, template in podset.variables.items()}
    return [*({"name": name, "value": value} for name, value in own.items() if name not in names), *given]
