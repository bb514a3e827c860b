"""Pods whose maker somebody removed: until they are gone, what runs them is not made again. Pure.

`engine.py` asks before it makes the objects of a run; without that, a Job that was deleted by hand would run twice for
as long as its pods take to end.
"""

import msgspec

from fairlead.engines.kubernetes.client.objects import Pod
from fairlead.engines.kubernetes.observe.report import WorkloadObjectsSeen, is_alive, run_of
from fairlead.engines.kubernetes.render.pod_group import INDEX_LABEL

#: Those that make pods for an object of ours, and that its successor takes over when somebody left them behind.
_TAKEN_OVER = frozenset({"ReplicaSet", "StatefulSet"})


class OrphanedPods(msgspec.Struct, frozen=True):
    #: Pods that end, or that the cluster will end in a moment.
    ending: tuple[Pod, ...] = ()
    #: Pods that nobody ends: their Job was removed without them.
    orphans: tuple[Pod, ...] = ()


def find_orphaned_pods(held: WorkloadObjectsSeen, run: int, *, is_fresh: bool) -> OrphanedPods:
    """What is left of a run without anything that makes its pods; fresh: that was removed only a moment ago.

    Pods of a group of our own are no leftovers: they have no maker but us.
    """
    if any(run_of(runner.metadata) == run for runner in held.runners):
        return OrphanedPods()
    pods = [pod for pod in held.pods if run_of(pod.metadata) == run and INDEX_LABEL not in pod.metadata.labels]
    # One that has ended and is being removed goes by itself, and is waited for like the others.
    pods = [pod for pod in pods if is_alive(pod) or pod.metadata.deletion_timestamp is not None]
    return OrphanedPods(
        ending=tuple(pod for pod in pods if _is_ending(pod, is_fresh=is_fresh)),
        orphans=tuple(pod for pod in pods if _maker_of(pod) == "" and pod.metadata.deletion_timestamp is None),
    )


def _is_ending(pod: Pod, *, is_fresh: bool) -> bool:
    if pod.metadata.deletion_timestamp is not None:
        return True
    maker = _maker_of(pod)
    return is_fresh if maker in _TAKEN_OVER else maker != ""


def _maker_of(pod: Pod) -> str:
    """The kind of the object that made it."""
    return next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")
