"""Where a workload goes in a cluster and as what, and the labels by which it is known there. Pure.

Read by everything that renders objects; the names are KAI's, Run:ai's and, below `fairlead/`, our own.
"""

from typing import Any

import msgspec

from fairlead.model.pods.podset import PodSet
from fairlead.model.pods.supplies import NamedObject
from fairlead.model.pods.urls import IngressSettings, UrlRoute
from fairlead.model.records.assets import Reference

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
POOL_LABEL = "kai.scheduler/node-pool"
#: What Run:ai calls the same: KAI does not read them, people and their programs do.
RUNAI_QUEUE_LABEL, RUNAI_POOL_LABEL = "runai/queue", "runai/node-pool"
POOLS_ANNOTATION = "kai.scheduler/node-pools"
PREEMPTIBILITY_LABEL = "kai.scheduler/preemptibility"
PRIORITY_LABEL = "priorityClassName"
NODE_TYPE_LABEL = "run.ai/type"
WORKLOAD_LABEL, PROJECT_LABEL = "workloadName", "project"
#: On every object that is ours: which installation made it, for which workload, which run, which pod set.
CLUSTER_LABEL, ID_LABEL, RUN_LABEL, ROLE_LABEL = (
    "fairlead/cluster",
    "fairlead/workload-id",
    "fairlead/run",
    "fairlead/role",
)
EPHEMERAL_LABEL = "fairlead/ephemeral"
#: On claims that the server keeps for their own sake: which of them it is.
CLAIM_LABEL = "fairlead/claim-id"
#: On what makes pods: the level of Pod Security that they were made to pass.
LEVEL = "fairlead/pod-security"
#: By which pods say to KAI which pod group they are of.
GROUP_ANNOTATION = "pod-group-name"
#: KAI writes it on pods that have a part of a GPU: pods with the same value share it.
GPU_GROUP_LABEL = "runai-gpu-group"
GPU = "nvidia.com/gpu"
#: The container that runs the workload, unless an operator wants another name.
MAIN = "main"
DEFAULT_POOL = "default"


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


def pool_labels(pool: str) -> dict[str, str]:
    """The default pool is the absence of a label."""
    return {} if pool == DEFAULT_POOL else {POOL_LABEL: pool, RUNAI_POOL_LABEL: pool}


def role_label(role: str) -> str:
    """A role as the value of a label, which knows fewer characters."""
    return role.replace("@", ".at.")


def labelled_pool(labels: dict[str, str]) -> str:
    """The node pool of what carries these labels."""
    return labels.get(POOL_LABEL, DEFAULT_POOL)


def role_of(labels: dict[str, str]) -> str:
    """The role that such a label stands for."""
    return labels.get(ROLE_LABEL, "").replace(".at.", "@")


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
