"""Splits what was used into what was within quota and what was borrowed, and finds who lent it. Pure.

Called by the report. All amounts are whole numbers (`ResourceAmounts` × milliseconds), so that parts add up exactly.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
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


class QuotaStep(NamedTuple):
    """The quota of an owner in one pool, from a time on; None for an unlimited one."""

    at: Millis
    deserved: int | None


class QuotaPart(NamedTuple):
    """A part of a use: how much of it was within the quota of its owner."""

    use: Use
    since: Millis
    until: Millis
    within: int


def split_by_quota(uses: Iterable[Use], steps: Iterable[QuotaStep], resource: int) -> Iterator[QuotaPart]:
    """Cut the uses of one owner in one pool into parts.

    If an owner has more than its quota, non-preemptible pods are within it first, then the pods that were placed first.
    """
    split = _QuotaSplit(resource)
    for at, changes in groupby(_changes(uses, steps, resource), key=itemgetter(0)):
        yield from split.advance(at, changes)


#: A time, what happens then (0: a use ends, 1: the quota changes, 2: a use begins), and the use or the quota.
_Change = tuple[Millis, int, str, Use | QuotaStep]
#: Its place in the order in which pods are within the quota.
_Place = tuple[bool, Millis, str]


def _changes(uses: Iterable[Use], steps: Iterable[QuotaStep], resource: int) -> list[_Change]:
    changes: list[_Change] = [(step.at, 1, "", step) for step in steps]
    for use in uses:
        if use.amounts[resource]:
            changes += ((use.since, 2, use.recorded.id, use), (use.until, 0, use.recorded.id, use))
    return sorted(changes, key=itemgetter(0, 1, 2))


class _QuotaSplit:
    """The pods of one owner at one time, in the order in which they are within its quota."""

    def __init__(self, resource: int) -> None:
        self._resource = resource
        self._order: list[_Place] = []
        self._uses: dict[_Place, Use] = {}
        #: Since when it has how much within the quota.
        self._within: dict[_Place, tuple[Millis, int]] = {}
        self._total = 0
        self._deserved: int | None = 0
        #: Whether all of it was within the quota, or nothing of it.
        self._was_uniform: bool | None = None

    def advance(self, at: Millis, changes: Iterable[_Change]) -> Iterator[QuotaPart]:
        new = []
        for _, _, _, change in changes:
            if isinstance(change, QuotaStep):
                self._deserved = change.deserved
                continue
            key = (change.recorded.preemptible, change.recorded.since, change.recorded.id)
            if key in self._uses:
                yield from self._close(key, at)
                self._order.remove(key)
                del self._uses[key], self._within[key]
                self._total -= change.amounts[self._resource]
            else:
                insort(self._order, key)
                self._uses[key] = change
                self._total += change.amounts[self._resource]
                new.append(key)
        yield from self._share(at, new)

    def _share(self, at: Millis, new: Sequence[_Place]) -> Iterator[QuotaPart]:
        rest = self._total if self._deserved is None else self._deserved
        uniform = True if rest >= self._total else False if rest == 0 else None
        is_same = uniform is not None and uniform is self._was_uniform
        self._was_uniform = uniform
        # As long as everything is within the quota, or nothing is, only what is new has to be looked at.
        for key in new if is_same else self._order:
            amount = self._uses[key].amounts[self._resource]
            within = amount if uniform else min(amount, rest)
            if not uniform:
                rest -= within
            if self._within.get(key, (0, -1))[1] != within:
                if key in self._within:
                    yield from self._close(key, at)
                self._within[key] = (at, within)

    def _close(self, key: _Place, at: Millis) -> Iterator[QuotaPart]:
        since, within = self._within[key]
        if since < at:
            yield QuotaPart(self._uses[key], since, at, within)


class Loan(NamedTuple):
    """What one owner had of another's quota since a cut."""

    since: Millis
    lender: str
    borrower: str
    amount: int


class PoolHistory(NamedTuple):
    """One resource in one pool: changes of what owners use, of their quotas, and of the capacity; by time."""

    #: (time, owner, difference)
    used: Sequence[tuple[Millis, str, int]]
    #: (time, owner, quota)
    deserved: Sequence[tuple[Millis, str, int | None]]
    #: (time, difference)
    capacity: Sequence[tuple[Millis, int]]


def find_loans(history: PoolHistory, cuts: Sequence[Millis]) -> Iterator[Loan]:
    """Who lent to whom. What is borrowed comes first from capacity that is in nobody's quota, and then from the owners
    who do not use their quota, in proportion to what each leaves unused. Loans are added up from cut to cut.
    """
    changes: list[tuple[Millis, int, str, int | None]] = [(at, _USED, owner, more) for at, owner, more in history.used]
    changes += [(at, _DESERVED, owner, quota) for at, owner, quota in history.deserved]
    changes += [(at, _CAPACITY, "", more) for at, more in history.capacity]
    changes += [(at, _CUT, "", None) for at in cuts]
    changes.sort(key=itemgetter(0))
    pool, since, cut, next_cut = _LendingPool(), 0, 0, iter((*cuts, None))
    end = next(next_cut)
    for at, group in groupby(changes, key=itemgetter(0)):
        pool.lend(at - since)
        since = at
        if at == end:
            yield from pool.take_loans(cut)
            cut, end = at, next(next_cut)
        for _, kind, owner, value in group:
            pool.change(kind, owner, value)


_USED, _DESERVED, _CAPACITY, _CUT = range(4)


class _LendingPool:
    """One resource of one pool at one time, and the loans since the last cut."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._deserved: dict[str, int | None] = {}
        self._borrowed: dict[str, int] = {}
        self._unused: dict[str, int] = {}
        self._capacity = 0
        self._promised = 0
        self._loans: dict[str, dict[str, int]] = {}

    def change(self, kind: int, owner: str, value: int | None) -> None:
        if kind == _CAPACITY:
            self._capacity += value or 0
        if kind in (_CAPACITY, _CUT):
            return
        self._promised -= self._promise(owner)
        if kind == _USED:
            self._used[owner] = self._used.get(owner, 0) + (value or 0)
        else:
            self._deserved[owner] = value
        promised = self._promise(owner)
        self._promised += promised
        more = self._used.get(owner, 0) - promised
        for amounts, amount in ((self._borrowed, more), (self._unused, -more)):
            if amount > 0:
                amounts[owner] = amount
            else:
                amounts.pop(owner, None)

    def _promise(self, owner: str) -> int:
        """Its quota. An owner without a limit to its quota neither borrows nor lends."""
        deserved = self._deserved.get(owner, 0)
        return self._used.get(owner, 0) if deserved is None else deserved

    def lend(self, time: Millis) -> None:
        """Add what was lent in a time in which nothing changed."""
        if not self._borrowed or not self._unused:
            return
        borrowed, unused = sum(self._borrowed.values()), sum(self._unused.values())
        lent = min(borrowed - max(0, self._capacity - self._promised), unused) * time
        if lent <= 0:
            return
        # The last one of each gets what rounding leaves, so that the parts add up.
        rest, last_lender, last_borrower = lent, next(reversed(self._unused)), next(reversed(self._borrowed))
        for lender, weight in self._unused.items():
            part = rest if lender is last_lender else lent * weight // unused
            rest -= part
            left = part
            loans = self._loans.setdefault(lender, {})
            for borrower, amount in self._borrowed.items():
                share = left if borrower is last_borrower else part * amount // borrowed
                left -= share
                loans[borrower] = loans.get(borrower, 0) + share

    def take_loans(self, since: Millis) -> Iterator[Loan]:
        loans, self._loans = self._loans, {}
        for lender, borrowers in loans.items():
            for borrower, amount in borrowers.items():
                yield Loan(since, lender, borrower, amount)
