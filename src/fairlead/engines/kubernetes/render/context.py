"""What the objects of a workload share: namespace, queue, labels, owner, launch choices. Pure.

Read by everything that renders objects.
"""

import msgspec

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.labels import (
    ID_LABEL,
    PREEMPTIBILITY_LABEL,
    PROJECT_LABEL,
    QUEUE_LABEL,
    ROLE_LABEL,
    RUNAI_QUEUE_LABEL,
    WORKLOAD_LABEL,
    role_label,
)
from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import NamedObject
from fairlead.model.pods.urls import IngressSettings, UrlRoute
from fairlead.model.records.assets import Reference


class Owner(msgspec.Struct, frozen=True):
    """The object of the cluster that a workload came from; the workload's objects are deleted with it."""

    api_version: str
    kind: str
    name: str
    uid: str


class LaunchChoices(msgspec.Struct, frozen=True):
    """Choices made when a workload's objects are created; they hold for as long as the objects exist."""

    #: Kinds beyond Kubernetes' own that the cluster has and that can run the workload.
    kinds: frozenset[str] = frozenset()
    #: How often everything was created again, and how often because the workload had failed by itself.
    attempt: int = 0
    failures: int = 0
    #: How many pods succeeded in the Jobs of this run that were deleted to be created again.
    succeeded: int = 0
    #: Which tasks of an array they were, by their positions in the array, such as `0-4,7`.
    tasks_done: str = ""
    #: The node pool of a pod group of our own; empty: the first that the workload names.
    pool: str = ""
    #: The queue that its objects name, which never changes; empty: that of the first node pool that exists.
    queue: str = ""
    #: The Pod Security level that the namespace enforced then (`pod_security.py`); None before that is known.
    level: str | None = None
    #: For autoscalers of nodes (`placement.py`): which labels the nodes of its pools have, each KEY=VALUE; empty for
    #: the default pool. None: its pods carry nothing for them, as those of earlier versions.
    pool_selectors: tuple[str, ...] | None = None


NO_LAUNCH_CHOICES = LaunchChoices()


class RenderContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the renderers know of a workload besides its pod sets."""

    name: str
    namespace: str
    project: str
    queue: str
    priority_class: str
    is_preemptible: bool
    #: Seconds after its end when its objects are deleted; None for never.
    lifetime: int | None = None
    #: Node pools to try in this order; empty: those of the spec.
    pools: tuple[str, ...] = ()
    #: The node pool that its pods name; empty: the first.
    pool: str = ""
    #: The node types on which its pods may run, unless they name one; empty for any.
    node_types: tuple[str, ...] = ()
    #: Labels that mark our objects; empty for objects that are only printed.
    ownership_labels: dict[str, str] = {}
    #: Variables that identify the workload, set after the user's own.
    identity: dict[str, str] = {}
    owner: Owner | None = None
    launch: LaunchChoices = NO_LAUNCH_CHOICES
    #: Objects that the server keeps and this workload gets a copy of: from kind and name to the copy.
    copies: dict[NamedObject, str] = {}
    #: From the id of a data volume to the name of its claim.
    data_volumes: dict[str, str] = {}
    #: The Pod Security level that its pods must meet (`pod_security.py`); empty if the namespace enforces none.
    level: str = ""
    #: The URLs of its exposed ports, in the order in which they are exposed.
    urls: tuple[UrlRoute, ...] = ()
    #: None if no Ingress objects are wanted.
    ingress: IngressSettings | None = None


def labels_of(context: RenderContext) -> dict[str, str]:
    return {
        WORKLOAD_LABEL: context.name,
        PROJECT_LABEL: context.project,
        QUEUE_LABEL: context.queue,
        RUNAI_QUEUE_LABEL: context.queue,
        PREEMPTIBILITY_LABEL: "preemptible" if context.is_preemptible else "non-preemptible",
        **context.ownership_labels,
    }


def role_labels(context: RenderContext, podset: PodSet) -> dict[str, str]:
    """Tells the pods of a set from the other pods; objects that are only printed need it for several sets."""
    return {ROLE_LABEL: role_label(podset.role)} if context.ownership_labels or podset.gang else {}


def selector_of(context: RenderContext, podset: PodSet) -> dict[str, str]:
    """The labels that select the pods of a set."""
    whose = (
        {ID_LABEL: context.ownership_labels[ID_LABEL]}
        if ID_LABEL in context.ownership_labels
        else {WORKLOAD_LABEL: context.name}
    )
    return whose | role_labels(context, podset)


def metadata_of(context: RenderContext, name: str, more: dict[str, str] | None = None) -> Manifest:
    """The metadata of an object; the object that the workload came from owns it."""
    metadata: Manifest = {
        "name": name,
        "namespace": context.namespace,
        "labels": {**labels_of(context), **(more or {})},
    }
    if context.owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": context.owner.api_version,
                "kind": context.owner.kind,
                "name": context.owner.name,
                "uid": context.owner.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return metadata


def name_of(context: RenderContext, reference: Reference, name: str) -> str:
    """The name in the cluster of an object that the spec names: our copy of it, or the cluster's own."""
    return context.copies.get((reference, name), name)
