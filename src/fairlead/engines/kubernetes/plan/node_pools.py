"""The next node pool of a workload that names several. Pure.

KAI reports that a pool has no room, and moves nothing.
"""

from collections.abc import Collection, Sequence

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import Manifest
from fairlead.engines.kubernetes.observe.workload import refusals_in_pool
from fairlead.engines.kubernetes.render.labels import (
    DEFAULT_POOL,
    GROUP_ANNOTATION,
    MOVED,
    POOL_LABEL,
    RUNAI_POOL_LABEL,
    RUNAI_QUEUE_LABEL,
    labelled_pool,
)
from fairlead.engines.kubernetes.render.organization import project_queue


def decide_pool(group: objects.PodGroup, pods: Collection[objects.Pod], pools: Sequence[str]) -> tuple[str, str] | None:
    """The pool to try next, and the number of the condition that is the reason; None if the group stays in its pool."""
    current = labelled_pool(group.metadata.labels)
    is_gone = bool(pools) and current not in pools
    if (len(pools) < 2 and not is_gone) or any(pod.spec.node_name for pod in _of(group, pods)):
        # A group whose pods have a node is never moved.
        return None
    before = group.metadata.annotations.get(MOVED, "")
    latest = max((one.transition_id for one in refusals_in_pool(group)), key=_number, default="")
    if is_gone:
        # The scheduler of that pool may be gone too, and report nothing any more.
        return pools[0], max(before, latest, key=_number)
    if not latest or _number(latest) <= _number(before):
        return None
    return pools[(pools.index(current) + 1) % len(pools)], latest


def render_move(project: str, pool: str, reason: str) -> Manifest:
    """The patch that moves a pod group to another pool's queue."""
    queue, label = project_queue(project, (pool,)), None if pool == DEFAULT_POOL else pool
    return {
        "metadata": {
            "labels": {POOL_LABEL: label, RUNAI_POOL_LABEL: label, RUNAI_QUEUE_LABEL: queue},
            "annotations": {MOVED: reason},
        },
        "spec": {"queue": queue},
    }


def _of(group: objects.PodGroup, pods: Collection[objects.Pod]) -> list[objects.Pod]:
    return [pod for pod in pods if pod.metadata.annotations.get(GROUP_ANNOTATION) == group.metadata.name]


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1
