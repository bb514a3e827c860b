"""Where a workload goes in a cluster and as what, and the labels by which it is known there. Pure.

Read by everything that renders objects; the names are KAI's, Run:ai's and, below `fairlead/`, our own.
"""

from typing import Any

import msgspec

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
    """The object of the cluster that a workload came from; what is made for it goes with it."""

    api_version: str
    kind: str
    name: str
    uid: str


class LaunchChoices(msgspec.Struct, frozen=True):
    """With what a workload's objects were begun; they stay so for as long as they are there."""

    #: Kinds of objects beyond Kubernetes' own that the cluster has and that could run it.
    kinds: frozenset[str] = frozenset()
    #: How often all of it was made again, and how often because it had failed by itself.
    attempt: int = 0
    failures: int = 0
    #: The node pool in which a pod group of our own is tried; empty: the first that it names.
    pool: str = ""
    #: The queue that its objects name, which never change it; empty: that of the first pool that there is.
    queue: str = ""
    #: The level of Pod Security that the namespace enforced then (`levels.py`); None before that is known.
    level: str | None = None


NO_LAUNCH_CHOICES = LaunchChoices()


class RenderContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a workload goes, and as what."""

    name: str
    namespace: str
    project: str
    queue: str
    priority_class: str
    is_preemptible: bool
    #: Seconds after its end when the objects go; None for never.
    lifetime: int | None = None
    #: Node pools to try, the first one first; empty: what the spec says.
    pools: tuple[str, ...] = ()
    #: The one that its pods name; empty: the first.
    pool: str = ""
    #: What tells our objects from others; empty for objects that are only printed.
    ownership_labels: dict[str, str] = {}
    #: Variables that are set after the user's own.
    identity: dict[str, str] = {}
    owner: Owner | None = None
    begun: LaunchChoices = NO_LAUNCH_CHOICES
    #: Objects that the server keeps and this workload gets a copy of: from kind and name to the copy.
    copies: dict[NamedObject, str] = {}
    #: From a data volume's id to the claim that it is.
    data_volumes: dict[str, str] = {}
    #: The level of Pod Security that its pods are made to pass (`levels.py`); empty where the namespace enforces none.
    level: str = ""
    #: Where its exposed ports are reached, in the order in which they are exposed; and the way in, where one is made.
    urls: tuple[UrlRoute, ...] = ()
    ingress: IngressSettings | None = None


def labels_of(place: RenderContext) -> dict[str, str]:
    return {
        WORKLOAD_LABEL: place.name,
        PROJECT_LABEL: place.project,
        QUEUE_LABEL: place.queue,
        RUNAI_QUEUE_LABEL: place.queue,
        PREEMPTIBILITY_LABEL: "preemptible" if place.is_preemptible else "non-preemptible",
        **place.ownership_labels,
    }


def role_labels(place: RenderContext, podset: PodSet) -> dict[str, str]:
    """What tells a set's pods from the workload's others; objects that are only printed need it with several sets."""
    return {ROLE_LABEL: role_label(podset.role)} if place.ownership_labels or podset.gang else {}


def selector_of(place: RenderContext, podset: PodSet) -> dict[str, str]:
    """The labels by which the pods of a set are found."""
    whose = (
        {ID_LABEL: place.ownership_labels[ID_LABEL]}
        if ID_LABEL in place.ownership_labels
        else {WORKLOAD_LABEL: place.name}
    )
    return whose | role_labels(place, podset)


def metadata_of(place: RenderContext, name: str, more: dict[str, str] | None = None) -> dict[str, Any]:
    """The metadata of an object, owned by what the workload came from."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": place.namespace,
        "labels": {**labels_of(place), **(more or {})},
    }
    if place.owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": place.owner.api_version,
                "kind": place.owner.kind,
                "name": place.owner.name,
                "uid": place.owner.uid,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ]
    return metadata


def name_of(place: RenderContext, reference: Reference, name: str) -> str:
    """How an object that the spec names is called in the cluster: our copy of it, or the cluster's own."""
    return place.copies.get((reference, name), name)
