"""Splits what was used into what was within quota and what was borrowed. Pure. Called by `totals.py`."""

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from fairlead.control.ledger.periods import Use
from fairlead.model.clock import Millis


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
