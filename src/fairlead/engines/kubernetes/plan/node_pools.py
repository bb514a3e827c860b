"""A workload that names several node pools tries them in turn: KAI says that one has no room, and never moves anything.

Pure. `engine.py` asks whenever something of such a workload changes, and relabels its pod groups.
"""

from collections.abc import Collection, Sequence
from typing import Any

from fairlead.engines.kubernetes.client.objects import Pod, PodGroup, SchedulingCondition
from fairlead.engines.kubernetes.observe.report import refusals_of
from fairlead.engines.kubernetes.render.context import (
    DEFAULT_POOL,
    GROUP_ANNOTATION,
    POOL_LABEL,
    RUNAI_POOL_LABEL,
    RUNAI_QUEUE_LABEL,
    labelled_pool,
)
from fairlead.engines.kubernetes.render.organization import project_queue

#: On a pod group that we moved: the number of the condition that was the reason, so that the next pool gets its try.
MOVED = "fairlead/moved-after"


def decide_pool(group: PodGroup, pods: Collection[Pod], pools: Sequence[str]) -> tuple[str, str] | None:
    """The pool that is tried next, and why: the number of the condition. None while the present one is being tried."""
    present = labelled_pool(group.metadata.labels)
    is_gone = bool(pools) and present not in pools
    if (len(pools) < 2 and not is_gone) or any(pod.spec.node_name for pod in _of(group, pods)):
        # A group that has a place is never moved.
        return None
    before = group.metadata.annotations.get(MOVED, "")
    latest = max((one.transition_id for one in refusals_in_pool(group)), key=_number, default="")
    if is_gone:
        # Its scheduler may be gone too, and say nothing any more.
        return pools[0], max(before, latest, key=_number)
    if not latest or _number(latest) <= _number(before):
        return None
    return pools[(pools.index(present) + 1) % len(pools)], latest


def refusals_in_pool(group: PodGroup) -> list[SchedulingCondition]:
    """What the scheduler of the pool in which it is now has said against it."""
    present = labelled_pool(group.metadata.labels)
    return [one for one in refusals_of(group) if (one.node_pool or DEFAULT_POOL) == present]


def render_move(project: str, pool: str, reason: str) -> dict[str, Any]:
    """The change of a pod group that puts it into another pool's queue."""
    queue, label = project_queue(project, (pool,)), None if pool == DEFAULT_POOL else pool
    return {
        "metadata": {
            "labels": {POOL_LABEL: label, RUNAI_POOL_LABEL: label, RUNAI_QUEUE_LABEL: queue},
            "annotations": {MOVED: reason},
        },
        "spec": {"queue": queue},
    }


def _of(group: PodGroup, pods: Collection[Pod]) -> list[Pod]:
    return [pod for pod in pods if pod.metadata.annotations.get(GROUP_ANNOTATION) == group.metadata.name]


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1
