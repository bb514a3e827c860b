"""Periods, and the parts of recorded intervals that are in them. Pure. Called by the modules of the report.

All amounts are whole numbers (`ResourceAmounts` × milliseconds), so that parts add up exactly.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from fairlead.model.clock import DAY, Millis
from fairlead.model.records.ledger import ResourceAmounts, SupplyInterval, UsageInterval

#: The places of the resources in `ResourceAmounts`.
RESOURCES = range(3)


class SupplySpan(NamedTuple):
    """What a node or an owner was in a part of the period."""

    since: Millis
    until: Millis
    supply: SupplyInterval


class Period(NamedTuple):
    since: Millis
    until: Millis

    def clip(self, since: Millis, until: Millis) -> "Period | None":
        """The part of an interval that is in this period."""
        start, end = max(self.since, since), min(self.until, until)
        return Period(start, end) if start < end else None

    def days(self) -> "list[Period]":
        """The days of the period, in UTC."""
        cuts = range(self.since - self.since % DAY + DAY, self.until, DAY)
        return [Period(start, end) for start, end in pairwise((self.since, *cuts, self.until))]


class Use(NamedTuple):
    """The part of a recorded interval that is in the period and in one pool."""

    since: Millis
    until: Millis
    pool: str
    recorded: UsageInterval

    @property
    def amounts(self) -> ResourceAmounts:
        return self.recorded.amounts


def clip_uses(intervals: Iterable[UsageInterval], period: Period) -> list[Use]:
    clipped = ((one, period.clip(one.since, one.until)) for one in intervals)
    return [Use(part.since, part.until, one.node_pool, one) for one, part in clipped if part]


def locate_uses(uses: Iterable[Use], nodes: Mapping[str, Sequence[SupplySpan]]) -> Iterator[Use]:
    """The uses, each in the pool that its node was in at the time, as the scheduler counts them."""
    for use in uses:
        spans = [
            span
            for span in nodes.get(use.recorded.node, ())
            if span.since < use.until and use.since < span.until and span.supply.node_pool not in ("", use.pool)
        ]
        position = use.since
        for span in spans:
            elsewhere = Use(max(position, span.since), min(use.until, span.until), span.supply.node_pool, use.recorded)
            if position < elsewhere.since:
                yield use._replace(since=position, until=elsewhere.since)
            yield elsewhere
            position = elsewhere.until
        if position < use.until:
            yield use._replace(since=position)
