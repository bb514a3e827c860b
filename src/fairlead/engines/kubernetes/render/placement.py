"""Where pods may be placed, and what autoscalers of nodes read on them. Pure.

An autoscaler adds a node for a waiting pod, and knows nothing of KAI's node pools: the pod says which labels nodes of
its pools have. It removes nodes whose pods can run elsewhere: a pod says if it must not be moved.
"""

from typing import Any

from msgspec import UNSET

from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.render.context import RenderContext, name_of
from fairlead.engines.kubernetes.render.labels import (
    DO_NOT_DISRUPT,
    NODE_TYPE_LABEL,
    SAFE_TO_EVICT,
    WORKLOAD_LABEL,
)
from fairlead.formats.losses import Source
from fairlead.model.pods.podset import PodContainer, PodSet
from fairlead.model.spec.references import pod_references


def render_scale_down_annotations(context: RenderContext, podset: PodSet) -> dict[str, str]:
    """Keep autoscalers from removing the node of a pod that runs to an end, or may not be preempted.

    A preemptible replica of a service may be moved: another one takes its requests.
    """
    is_movable = podset.completions is None and context.is_preemptible
    if context.launch.pool_selectors is None or is_movable:
        return {}
    return {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}


def render_placement(context: RenderContext, source: Source, container: PodContainer) -> Manifest:
    members: Manifest = {}
    secrets = source.items("imagePullSecrets")
    if secrets:
        uses = (use for use in pod_references(container) if use.path.startswith("imagePullSecrets"))
        names = [name_of(context, use.reference, use.name) for use in uses]
        members["imagePullSecrets"] = [{"name": name} for name in names]
        for number, _ in secrets:
            for member in ("name", "userCredential"):
                source.take(f"imagePullSecrets[{number}].{member}")
    node_type = source.take("nodeType")
    if node_type is not UNSET:
        members["nodeSelector"] = {NODE_TYPE_LABEL: node_type}
    affinity = _affinity(context, source)
    if affinity:
        members["affinity"] = affinity
    tolerations = [_toleration(source, number, item) for number, item in source.items("tolerations")]
    if tolerations:
        members["tolerations"] = tolerations
    return members


def _toleration(source: Source, number: int, item: dict[str, Any]) -> Manifest:
    source.take_below(f"tolerations[{number}].")
    toleration = {name: item[name] for name in ("key", "operator", "value") if item.get(name)}
    if item.get("effect") not in (None, "Any"):
        toleration["effect"] = item["effect"]
    if item.get("seconds") is not None:
        toleration["tolerationSeconds"] = item["seconds"]
    return toleration


def _affinity(context: RenderContext, source: Source) -> Manifest:
    affinity: Manifest = {}
    asked = (source.plain.get("nodeAffinityRequired") or {}).get("nodeSelectorTerms") or []
    # An empty term matches no node; with a node type or a pool it would match some.
    terms = [term for term in asked if term.get("matchExpressions")]
    source.take_below("nodeAffinityRequired.")
    if context.node_types and not source.plain.get("nodeType"):
        typed = {"key": NODE_TYPE_LABEL, "operator": "In", "values": list(context.node_types)}
        terms = [{"matchExpressions": [*(term.get("matchExpressions") or ()), typed]} for term in terms or [{}]]
    terms = _in_pools(context, terms)
    if terms:
        affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    kind, key = source.take("podAffinity.type"), source.take("podAffinity.key")
    if key is not UNSET:
        term = {"labelSelector": {"matchLabels": {WORKLOAD_LABEL: context.name}}, "topologyKey": key}
        if kind == "Required":
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        else:
            weighted = [{"weight": 100, "podAffinityTerm": term}]
            affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return affinity


def _in_pools(context: RenderContext, terms: list[Manifest]) -> list[Manifest]:
    """The terms, each limited to nodes of one of the workload's node pools. KAI decides which pool it is."""
    selectors = context.launch.pool_selectors
    if not selectors:
        return terms
    pairs = [selector.partition("=") for selector in selectors]
    in_pools = [{"key": key, "operator": "In", "values": [value]} for key, _, value in pairs]
    return [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), in_pool]}
        for term in terms or [{}]
        for in_pool in in_pools
    ]
