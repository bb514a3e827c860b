"""Finds the smallest change of a family that starts a workload, each candidate verified by playing `decide`.

`Steps` are ordered from the smallest change to the largest. Few of them are all tried in that order. Many are searched
by bisection, which finds a step that starts it while the one before does not. Of a `Pick`, a set of independent
changes, the fewest are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import comb
from typing import Literal, NamedTuple

from fairlead.foresight.changes import Change, apply
from fairlead.foresight.outlook import Outlook, look_ahead
from fairlead.scheduling.model.snapshot import Snapshot

Changes = tuple[Change, ...]
Method = Literal["every step", "bisection", "fewest", "none can be left out"]
#: Clusters with more jobs than this are asked by bisection, so that an answer takes seconds.
FEW_JOBS = 500
FEW_STEPS = 24
#: Sets are looked for among so many combinations, before one is only reduced until nothing can be left out.
FEW_SETS = 64
#: Calls of `decide` after which no further family is begun, on clusters with few and with many jobs.
BUDGET = (2_000, 48)


class Steps(NamedTuple):
    candidates: Sequence[Changes]


class Pick(NamedTuple):
    units: Sequence[Change]


class Solution(NamedTuple):
    changes: Changes
    outlook: Outlook
    method: Method
    #: Part of the largest change that was looked at, above 0 and up to 1.
    size: float


class ChangeSearch:
    """Asks whether the target starts after some changes; the same question is answered once."""

    def __init__(self, snapshot: Snapshot, target: frozenset[str], budget: int | None = None) -> None:
        self.snapshot = snapshot
        self.target = target
        self.calls = 0
        self.is_large = len(snapshot.jobs) > FEW_JOBS
        self.budget = BUDGET[self.is_large] if budget is None else budget
        self._known: dict[Changes, Outlook | None] = {}

    @property
    def is_spent(self) -> bool:
        return self.calls >= self.budget

    def try_out(self, changes: Changes) -> Outlook | None:
        """What happens then, if the target starts; else None."""
        if changes not in self._known:
            outlook = look_ahead(apply(self.snapshot, changes))
            self.calls += len(outlook.cycles)
            self._known[changes] = outlook if outlook.starts(self.target) is not None else None
        return self._known[changes]

    def search(self, family: Steps | Pick) -> Solution | None:
        return self._steps(family.candidates) if isinstance(family, Steps) else self._pick(family.units)

    def _steps(self, candidates: Sequence[Changes]) -> Solution | None:
        if len(candidates) <= (2 if self.is_large else FEW_STEPS):
            if self.try_out(candidates[-1]) is None:
                # Less of it would be a change that helps only because it is small.
                return None
            for number, changes in enumerate(candidates, start=1):
                outlook = self.try_out(changes)
                if outlook is not None:
                    return Solution(changes, outlook, "every step", number / len(candidates))
            return None
        index = bisect(len(candidates), lambda number: self.try_out(candidates[number]) is not None)
        outlook = None if index is None else self.try_out(candidates[index])
        if index is None or outlook is None:
            return None
        return Solution(candidates[index], outlook, "bisection", (index + 1) / len(candidates))

    def _pick(self, units: Sequence[Change]) -> Solution | None:
        if not units:
            return None
        size, tried = 1, 0
        while size <= len(units) and tried + comb(len(units), size) <= (8 if self.is_large else FEW_SETS):
            tried += comb(len(units), size)
            for chosen in combinations(units, size):
                outlook = self.try_out(chosen)
                if outlook is not None:
                    return Solution(chosen, outlook, "fewest", size / len(units))
            size += 1
        return self._reduce(units) if size <= len(units) else None

    def _reduce(self, units: Sequence[Change]) -> Solution | None:
        """The shortest prefix that starts it, then without everything that it does not need."""
        prefixes = [tuple(units[: count + 1]) for count in range(len(units))]
        index = bisect(len(prefixes), lambda number: self.try_out(prefixes[number]) is not None)
        if index is None:
            return None
        chosen = prefixes[index]
        if self.is_large and len(chosen) > FEW_STEPS:
            outlook = self.try_out(chosen)
            return None if outlook is None else Solution(chosen, outlook, "bisection", len(chosen) / len(units))
        while (shorter := self._leave_one_out(chosen)) is not None:
            chosen = shorter
        outlook = self.try_out(chosen)
        if outlook is None:
            return None
        return Solution(chosen, outlook, "none can be left out", len(chosen) / len(units))

    def _leave_one_out(self, chosen: Changes) -> Changes | None:
        """One change less, if that is enough; None if all are needed."""
        rests = (chosen[:place] + chosen[place + 1 :] for place in range(len(chosen)))
        return next((rest for rest in rests if rest and self.try_out(rest) is not None), None)


def bisect(count: int, holds: Callable[[int], bool]) -> int | None:
    """An index at which it holds and before which it does not, or the first; None if none was found.

    Small changes are likelier to be enough and quicker to try, so the steps double from the first one on.
    """
    low, high = -1, 0
    while high < count and not holds(high):
        low, high = high, min(2 * high + 1, count - 1) if high < count - 1 else count
    if high >= count:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
