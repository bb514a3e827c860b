"""Finds who lent what was borrowed. Pure. Called by `totals.py`."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from fairlead.model.clock import Millis


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
            remaining = part
            loans = self._loans.setdefault(lender, {})
            for borrower, amount in self._borrowed.items():
                share = remaining if borrower is last_borrower else part * amount // borrowed
                remaining -= share
                loans[borrower] = loans.get(borrower, 0) + share

    def take_loans(self, since: Millis) -> Iterator[Loan]:
        loans, self._loans = self._loans, {}
        for lender, borrowers in loans.items():
            for borrower, amount in borrowers.items():
                yield Loan(since, lender, borrower, amount)
