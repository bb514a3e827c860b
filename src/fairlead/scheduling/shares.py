"""Fair shares of given queues without a cluster: totals and demands in, shares out."""

from __future__ import annotations

import msgspec

from fairlead.scheduling.checking import SnapshotError
from fairlead.scheduling.decisions import FairShare
from fairlead.scheduling.fairshare import in_gpus, set_fair_shares
from fairlead.scheduling.queues import LiveQueue
from fairlead.scheduling.session import link_queues
from fairlead.scheduling.snapshot import Plain, Queue


class QueueDemand(Plain, frozen=True, kw_only=True):
    """A queue with what its workloads ask for; parents need none, theirs is the sum of their children's."""

    queue: Queue
    gpu: float = 0
    cpu: float = 0
    memory: float = 0


class Totals(Plain, frozen=True, kw_only=True):
    gpu: float = 0
    cpu: float = 0
    memory: float = 0


class SharesRequest(Plain, frozen=True, kw_only=True):
    total: Totals
    queues: tuple[QueueDemand, ...]
    k_value: float = 1


def read_shares(data: bytes | str) -> SharesRequest:
    try:
        return msgspec.json.decode(data, type=SharesRequest)
    except msgspec.DecodeError as error:
        raise SnapshotError([f"{error}."]) from error


def divide_queues(request: SharesRequest) -> tuple[FairShare, ...]:
    """Shares of every queue, per GPU, CPU and memory. Queues without their parent are left out."""
    live, _ = link_queues({demand.queue.name: demand.queue for demand in request.queues})
    for demand in request.queues:
        found = live.get(demand.queue.name)
        for queue in found.path if found is not None else ():
            queue.requested[0] += demand.cpu
            queue.requested[1] += demand.memory
            queue.requested[2] += demand.gpu * 1000
    total = (request.total.cpu, request.total.memory, request.total.gpu * 1000)
    set_fair_shares([queue for queue in live.values() if queue.parent is None], total, request.k_value)
    return tuple(_share(live[name]) for name in sorted(live))


def _share(queue: LiveQueue) -> FairShare:
    return FairShare(
        queue=queue.name,
        node_pool=queue.spec.node_pool,
        fair_share=in_gpus(queue.fair),
        requested=in_gpus(queue.requested),
        allocated=(0, 0, 0),
        allocated_non_preemptible=(0, 0, 0),
    )
