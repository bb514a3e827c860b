"""Limits of queues, and quota for what cannot be preempted: checked at the queue of a job and at every ancestor."""

from __future__ import annotations

from fairlead.scheduling.model.decisions import Reason
from fairlead.scheduling.model.live import LiveJob, LiveTask
from fairlead.scheduling.model.queues import GPU, INFINITE, RESOURCES, Amounts, LiveQueue

#: Order in which a breach is looked for and reported.
_ORDER = (GPU, 0, 1)


def optimistic_request(tasks: list[LiveTask]) -> Amounts:
    """What tasks add to their queue if GPU memory is measured by the largest GPU: the least that they may cost."""
    if len(tasks) == 1:
        return tasks[0].optimistic
    cpu = memory = gpu = 0.0
    for task in tasks:
        cpu += task.optimistic[0]
        memory += task.optimistic[1]
        gpu += task.optimistic[2]
    return (cpu, memory, gpu)


def find_limit_breach(job: LiveJob, request: Amounts) -> Reason | None:
    """Why the queue tree does not allow this request now, if so: first limits, then quota if not preemptible."""
    for queue in job.queue.path:
        reason = _over_limit(queue, request)
        if reason is not None:
            return reason
    return None if job.preemptible else quota_breach(job, request)


def _over_limit(queue: LiveQueue, request: Amounts) -> Reason | None:
    allocated, limit = queue.allocated, queue.limit
    for resource in _ORDER:
        requested, bound = request[resource], limit[resource]
        if requested and bound != INFINITE and allocated[resource] + requested > bound:
            return Reason(
                code="OverLimit",
                resource=RESOURCES[resource],
                queue=queue.spec.display_name or queue.name,
                queue_id=queue.name,
                requested=in_snapshot_units(requested, resource),
                limit=in_snapshot_units(bound, resource),
                used=in_snapshot_units(allocated[resource], resource),
            )
    return None


def quota_breach(job: LiveJob, request: Amounts) -> Reason | None:
    """Non-preemptible work stays within the quota of its queue and of every ancestor."""
    for queue in job.queue.path:
        for resource in _ORDER:
            requested, bound = request[resource], queue.quota[resource]
            if requested and bound != INFINITE and queue.non_preemptible[resource] + requested > bound:
                return Reason(
                    code="NonPreemptibleOverQuota",
                    resource=RESOURCES[resource],
                    queue=queue.spec.display_name or queue.name,
                    queue_id=queue.name,
                    requested=in_snapshot_units(requested, resource),
                    quota=in_snapshot_units(bound, resource),
                    used=in_snapshot_units(queue.non_preemptible[resource], resource),
                )
    return None


def in_snapshot_units(amount: float, resource: int) -> float:
    """An amount in the units of the snapshot."""
    if amount == INFINITE:
        return -1
    return amount / 1000 if resource == GPU else amount
