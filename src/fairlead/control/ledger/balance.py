"""What every node pool had, and what became of it: used, idle or unavailable. Pure. Called by the report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from fairlead.control.ledger.periods import RESOURCES, Period, SupplySpan, Use
from fairlead.model.clock import Millis
from fairlead.model.records.ledger import NOTHING, SupplyInterval


def _zeros() -> list[int]:
    return [0, 0, 0]


class Balance(msgspec.Struct):
    """Everything that a pool had, in `ResourceAmounts` × milliseconds.

    used + idle + unavailable = capacity + overbooked
    """

    capacity: list[int] = msgspec.field(default_factory=_zeros)
    used: list[int] = msgspec.field(default_factory=_zeros)
    idle: list[int] = msgspec.field(default_factory=_zeros)
    #: The free part of nodes that were not ready or cordoned.
    unavailable: list[int] = msgspec.field(default_factory=_zeros)
    #: What pods held beyond the capacity of their node.
    overbooked: list[int] = msgspec.field(default_factory=_zeros)


class _Stretch(NamedTuple):
    """A time in which nothing changed on a node of one pool."""

    since: Millis
    until: Millis
    supply: SupplyInterval | None
    held: Sequence[int]


def balance_pools(
    nodes: Mapping[str, Sequence[SupplySpan]], uses: Iterable[Use], days: Sequence[Period]
) -> dict[tuple[str, Millis], Balance]:
    """The balances by pool and by the beginning of the day. `days` is one period for all, or several in a row."""
    spans: dict[tuple[str, str], list[SupplySpan]] = {}
    for name, of_node in nodes.items():
        for span in of_node:
            spans.setdefault((name, span.supply.node_pool), []).append(span)
    uses_by_place: dict[tuple[str, str], list[Use]] = {place: [] for place in spans}
    for use in uses:
        uses_by_place.setdefault((use.recorded.node, use.pool), []).append(use)
    balances: dict[tuple[str, Millis], Balance] = {}
    for place, there in uses_by_place.items():
        day = 0
        for stretch in _stretches(spans.get(place, ()), there, days):
            while days[day].until <= stretch.since:
                day += 1
            _add(balances.setdefault((place[1], days[day].since), Balance()), stretch)
    return balances


def _stretches(spans: Sequence[SupplySpan], uses: Iterable[Use], days: Iterable[Period]) -> Iterator[_Stretch]:
    times = {day.since for day in days} | {day.until for day in days}
    times |= {time for span in spans for time in (span.since, span.until)}
    changes: dict[Millis, list[int]] = {}
    for use in uses:
        for at, sign in ((use.since, 1), (use.until, -1)):
            change = changes.setdefault(at, _zeros())
            for resource in RESOURCES:
                change[resource] += sign * use.amounts[resource]
    in_use: tuple[int, ...] = (0, 0, 0)
    position = 0
    for since, until in pairwise(sorted(times | changes.keys())):
        if since in changes:
            in_use = tuple(old + more for old, more in zip(in_use, changes[since], strict=True))
        while position < len(spans) and spans[position].until <= since:
            position += 1
        is_there = position < len(spans) and spans[position].since <= since
        supply = spans[position].supply if is_there else None
        if any(in_use) or supply is not None:
            yield _Stretch(since, until, supply, in_use)


def _add(balance: Balance, stretch: _Stretch) -> None:
    time = stretch.until - stretch.since
    supply = stretch.supply
    for resource in RESOURCES:
        capacity = (supply.capacity if supply else NOTHING)[resource]
        free = capacity - stretch.held[resource]
        balance.capacity[resource] += capacity * time
        balance.used[resource] += stretch.held[resource] * time
        left = balance.overbooked if free < 0 else balance.idle if supply and supply.available else balance.unavailable
        left[resource] += abs(free) * time
