"""The objects that the cluster has of one workload, as the watches show them. Pure.

Made by the cache, read by reports and plans.
"""

from collections.abc import Collection, Sequence

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.signalled_ends import SignalledSuccess
from fairlead.engines.kubernetes.render.labels import DEFAULT_POOL, RUN_LABEL, labelled_pool, role_of
from fairlead.model.pods.podset import PodSet

_UNSCHEDULABLE = "UnschedulableOnNodePool"


class ObservedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    runners: Collection[objects.Runner] = ()
    pods: Collection[objects.Pod] = ()
    groups: Collection[objects.PodGroup] = ()
    #: Events about pods that controllers could not create.
    events: Collection[objects.Event] = ()
    #: The latest event of an autoscaler of nodes about each waiting pod.
    scaling: Collection[objects.Event] = ()
    #: Kinds of the controllers.
    kinds: frozenset[str] = frozenset()
    #: Attempts that lost pods to the scheduler.
    disrupted: frozenset[int] = frozenset()
    #: Pods of the current run that were taken away and no longer exist, as they were last seen.
    evicted: Collection[objects.Pod] = ()
    #: Pods of the current run that their controllers wrongly count as successes.
    signalled: tuple[SignalledSuccess, ...] = ()
    #: By pod of the current run that was taken away: the uid of the Job that counts it as a failure.
    lost: tuple[str, ...] = ()
    #: Uids of controllers that had ended when the pods were last known to be the same as in the API server.
    settled: frozenset[str] = frozenset()


def podset_of(podsets: Sequence[PodSet], runner: objects.Runner) -> PodSet | None:
    """The pod set that this controller runs, if it is known."""
    role = role_of(runner.metadata.labels)
    return next((podset for podset in podsets if podset.role == role), None)


def run_of(metadata: objects.Metadata) -> int:
    text = metadata.labels.get(RUN_LABEL, "")
    return int(text) if text.isdecimal() else 0


def is_alive(pod: objects.Pod) -> bool:
    """Whether its containers may still run."""
    return pod.status.phase not in ("Succeeded", "Failed")


def is_waiting(pod: objects.Pod) -> bool:
    """Whether it has no node yet."""
    return not pod.spec.node_name and pod.metadata.deletion_timestamp is None


def refusals_of(group: objects.PodGroup) -> list[objects.SchedulingCondition]:
    """Why schedulers did not place a pod group, in any node pool."""
    return [one for one in group.status.scheduling_conditions if one.type == _UNSCHEDULABLE and one.status == "True"]


def refusals_in_pool(group: objects.PodGroup) -> list[objects.SchedulingCondition]:
    """Why the scheduler of the group's current node pool did not place it."""
    current = labelled_pool(group.metadata.labels)
    return [one for one in refusals_of(group) if (one.node_pool or DEFAULT_POOL) == current]
