"""How siblings divide a resource: quota first, then what is over by priority and weight.

The division is done per resource and independently, from the top of the queue tree downwards: top queues divide the
cluster, children divide what their parent got. It orders queues and decides who may reclaim, and blocks nothing free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fairlead.scheduling.model.queues import GPU, INFINITE, Amounts, LiveQueue

#: Shares of a resource are given in whole units of it: a GPU, a thousandth of a core, a byte.
UNITS: Amounts = (1, 1, 1000)


class QueueDemandState:
    """What one queue brings to the division of one resource, and the share it gets."""

    __slots__ = ("created", "fair", "limit", "name", "priority", "quota", "requested", "rest", "usage", "weight")

    def __init__(self, queue: LiveQueue, resource: int) -> None:
        self.name = queue.name
        self.priority = queue.priority
        self.created = queue.spec.created
        self.quota = queue.quota[resource]
        self.limit = queue.limit[resource]
        self.weight = queue.weight[resource]
        self.usage = queue.usage[resource]
        self.requested = queue.requested[resource]
        self.fair: float = 0
        #: The part of a unit that flooring kept back in the last round.
        self.rest: float = 0

    @property
    def requestable(self) -> float:
        return min(self.limit, self.requested)

    @property
    def missing(self) -> float:
        return max(0, self.requestable - self.fair)

    @property
    def satisfied(self) -> bool:
        return self.requested <= self.fair or self.limit <= self.fair


def divide(total: float, claims: Sequence[QueueDemandState], unit: float, k_value: float) -> None:
    """Fill in `fair` of all claims. Quotas are given in full even if they exceed the total together."""
    k_value = max(0, k_value)
    remaining = total
    for claim in claims:
        claim.fair = min(total if claim.quota == INFINITE else claim.quota, claim.requestable)
        remaining -= claim.fair
    if remaining <= 0:
        return
    levels: dict[int, list[QueueDemandState]] = {}
    for claim in claims:
        levels.setdefault(claim.priority, []).append(claim)
    ordered = [levels[priority] for priority in sorted(levels, reverse=True)]
    for level in ordered:
        remaining = _divide_level(remaining, level, unit, k_value)
    for level in ordered:
        remaining = _hand_out_rests(remaining, level, unit)


def _divide_level(remaining: float, level: list[QueueDemandState], unit: float, k_value: float) -> float:
    """Rounds among queues of one priority, until nobody asked for less than it was offered."""
    another = True
    while another and remaining != 0:
        another = False
        weights = _weights(level, k_value)
        total_weight = sum(weights.values())
        if total_weight == 0:
            break
        to_give = remaining / unit
        for claim in level:
            if remaining == 0:
                break
            if claim.satisfied or claim.weight == 0:
                continue
            offer = to_give * (weights[claim.name] / total_weight)
            missing = claim.missing
            if missing / unit <= offer:
                given = missing
                claim.rest = 0
            else:
                given = math.floor(offer) * unit
                if offer - math.floor(offer) > 0:
                    claim.rest = offer - math.floor(offer)
            if given == 0:
                continue
            claim.fair += given
            remaining -= given
            another = another or missing / unit < offer
    return remaining


def _weights(level: Iterable[QueueDemandState], k_value: float) -> dict[str, float]:
    """Normalised over-quota weights, lowered by k times what was used above them in the past."""
    total = sum(claim.weight for claim in level if claim.missing > 0)
    if total == 0:
        return {}
    weights = {}
    for claim in level:
        if not claim.satisfied:
            normal = claim.weight / total
            weights[claim.name] = max(0.0, normal + k_value * (normal - claim.usage))
    return weights


def _hand_out_rests(remaining: float, level: Iterable[QueueDemandState], unit: float) -> float:
    """What flooring left over goes a unit at a time: larger rest, older queue, smaller name."""
    for claim in sorted((c for c in level if c.rest > 0), key=lambda c: (-c.rest, c.created, c.name)):
        if remaining <= 0:
            break
        given = min(unit, remaining)
        claim.fair += given
        remaining -= given
    return remaining


def set_fair_shares(tops: Sequence[LiveQueue], total: Amounts, k_value: float) -> None:
    """Compute fair and allocatable shares of a whole tree, top down."""
    shares: dict[str, list[float]] = {queue.name: [0, 0, 0] for queue in tops}
    for resource, unit in enumerate(UNITS):
        # What nobody asks for is given to nobody.
        if not any(queue.requested[resource] for queue in tops):
            continue
        claims = [QueueDemandState(queue, resource) for queue in tops]
        divide(total[resource], claims, unit, k_value)
        for claim in claims:
            shares[claim.name][resource] = claim.fair
    for queue in tops:
        cpu, memory, gpu = shares[queue.name]
        queue.fair = (cpu, memory, gpu)
        queue.share = allocatable_share(queue)
        queue.terms = None
        if queue.children:
            set_fair_shares(queue.children, queue.fair, k_value)


def allocatable_share(queue: LiveQueue) -> Amounts:
    """What a queue may hold undisturbed: its limit if the quota is unlimited, else quota or fair share below it."""
    cpu, memory, gpu = (
        limit if quota == INFINITE else min(limit, max(quota, fair))
        for limit, quota, fair in zip(queue.limit, queue.quota, queue.fair, strict=True)
    )
    return (cpu, memory, gpu)


def in_gpus(amounts: Sequence[float]) -> Amounts:
    """GPU, CPU, memory in the units of the snapshot, unlimited as -1: the order in which decisions tell them."""
    cpu, memory, gpu = (-1 if amount == INFINITE else amount for amount in amounts)
    return (_round_shares(gpu / 1000) if amounts[GPU] != INFINITE else -1, _round_shares(cpu), _round_shares(memory))


def _round_shares(amount: float) -> float:
    return int(amount) if amount == int(amount) else round(amount, 6)
