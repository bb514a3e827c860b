"""With what a workload's objects begin: as they were begun, where they are there, or with what the cluster has now.

`engine.py` asks before it makes them. A kind that was installed since the start is watched from then on.
"""

import msgspec

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.client.resources import KNATIVE, Resource
from fairlead.engines.kubernetes.observe.cache import ClusterCache
from fairlead.engines.kubernetes.observe.operator_jobs import launch_choices_of
from fairlead.engines.kubernetes.observe.report import run_of
from fairlead.engines.kubernetes.render import review
from fairlead.engines.kubernetes.render.context import LaunchChoices, labelled_pool
from fairlead.engines.kubernetes.render.knative import FEATURES
from fairlead.engines.kubernetes.render.kubeflow import operator_of
from fairlead.engines.kubernetes.render.pod_group import find_fairlead_group
from fairlead.engines.kubernetes.render.workload import kinds_for
from fairlead.model.allowed import Allowed
from fairlead.model.errors import Refused


async def choose_launch(
    hands: ObjectApplier, holdings: ClusterCache, run: DesiredWorkload, begun: LaunchChoices, allowed: Allowed
) -> LaunchChoices:
    """What is there goes on as it was begun; what is not there begins with what the cluster has now."""
    held = holdings.objects_of(run.workload_id)
    own = find_fairlead_group(group for group in held.groups if run_of(group.metadata) == run.run)
    found = [one.metadata for one in held.runners] + ([own.metadata] if own is not None else [])
    there = [metadata for metadata in found if run_of(metadata) == run.run]
    if there:
        pool = labelled_pool(own.metadata.labels) if own is not None else ""
        return msgspec.structs.replace(launch_choices_of(there[0]), kinds=held.kinds, pool=pool)
    level = holdings.enforced_pod_security(run.namespace)
    if words := review.forbidden_in(run.podsets, allowed, level):
        raise Refused(words)
    kinds = [resource.kind for resource in kinds_for(run.podsets, level) if await _find(hands, holdings, resource)]
    if KNATIVE.kind in kinds and not await hands.is_accepted_by_cluster(run, LaunchChoices(kinds=frozenset(kinds))):
        kinds = []
    if kinds and operator_of(run.podsets) is not None:
        begun = max(begun, await hands.load_launch_choices(run), key=lambda one: one.attempt)
    return msgspec.structs.replace(begun, kinds=frozenset(kinds), level=level, queue="")


async def _find(hands: ObjectApplier, holdings: ClusterCache, resource: Resource) -> bool:
    """Whether the cluster has this kind now; one that was installed meanwhile is watched from now on."""
    if not await hands.has_kind(resource) or (resource is KNATIVE and not await hands.has_features(FEATURES)):
        return False
    if resource not in hands.runners:
        await holdings.add(resource)
        hands.runners = tuple(dict.fromkeys((*hands.runners, resource)))
    return True
