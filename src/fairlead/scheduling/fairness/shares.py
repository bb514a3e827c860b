"""Fair shares of given queues without a cluster: totals and demands in, shares out."""

from __future__ import annotations

from fairlead.scheduling.fairness.fairshare import in_gpus, set_fair_shares
from fairlead.scheduling.model.decode import read_document
from fairlead.scheduling.model.queues import LiveQueue, link_queues
from fairlead.scheduling.model.snapshot import Plain, Queue
from fairlead.scheduling.model.validate import SnapshotError, queue_problems


class Resources(Plain, frozen=True, kw_only=True, omit_defaults=False):
    """GPUs as devices, CPU in thousandths of a core, memory in bytes."""

    gpu: float = 0
    cpu: float = 0
    memory: float = 0


class QueueDemand(Queue, frozen=True, kw_only=True):
    """A queue with what its workloads ask for; parents need none, theirs is the sum of their children's."""

    requested: Resources = Resources()


class SharesRequest(Plain, frozen=True, kw_only=True):
    total: Resources
    queues: tuple[QueueDemand, ...]
    k_value: float = 1


class QueueShare(Plain, frozen=True, kw_only=True, omit_defaults=False):
    queue: str
    node_pool: str
    fair_share: Resources
    requested: Resources


def read_shares(data: bytes | str) -> SharesRequest:
    """From JSON, or one SnapshotError with everything that is wrong."""
    request = read_document(data, SharesRequest)
    problems = queue_problems(request.queues)
    if problems:
        raise SnapshotError(problems)
    return request


def divide_queues(request: SharesRequest) -> tuple[QueueShare, ...]:
    """Shares of every queue, by name. Queues without their parent are left out."""
    live, _ = link_queues({queue.name: queue for queue in request.queues})
    for demand in request.queues:
        leaf = live.get(demand.name)
        for queue in leaf.path if leaf is not None else ():
            queue.requested[0] += demand.requested.cpu
            queue.requested[1] += demand.requested.memory
            queue.requested[2] += demand.requested.gpu * 1000
    total = (request.total.cpu, request.total.memory, request.total.gpu * 1000)
    set_fair_shares([queue for queue in live.values() if queue.parent is None], total, request.k_value)
    return tuple(_share(live[name]) for name in sorted(live))


def _share(queue: LiveQueue) -> QueueShare:
    fair, requested = in_gpus(queue.fair), in_gpus(queue.requested)
    return QueueShare(
        queue=queue.name,
        node_pool=queue.spec.node_pool,
        fair_share=Resources(gpu=fair[0], cpu=fair[1], memory=fair[2]),
        requested=Resources(gpu=requested[0], cpu=requested[1], memory=requested[2]),
    )
