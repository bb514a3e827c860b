"""How long workloads run: declared, or as similar runs did, given the time that has already passed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from fairlead.scheduling.model.snapshot import Plain

Basis = Literal["declared", "similar runs", "time limit", "longer than all similar runs", "unknown"]
#: A workload that has outlived what was declared is taken to go on for this part of its time so far.
_MORE = 0.25
#: A run that is longer than all similar ones is taken to be so many times as long as the longest.
_BEYOND = 2
#: Among workloads that have outlived all similar runs, this quantile and those above it are taken to be equal.
_LATEST = 0.9
_STEPS = (1, 3, 7, 9, 11, 13, 17)
#: Nothing ends in less than this many seconds.
_LEAST = 1.0


class RunningTime(Plain, frozen=True, kw_only=True):
    """What is known about the running time of one workload, in seconds."""

    declared: float | None = None
    #: Running times of similar runs that have ended.
    runs: tuple[float, ...] = ()
    #: It is stopped then.
    limit: float | None = None
    #: How long it has run already.
    elapsed: float = 0

    @property
    def basis(self) -> Basis:
        if self.declared is not None:
            return "declared"
        if any(run > self.elapsed for run in self.runs):
            return "similar runs"
        if self.limit is not None:
            return "time limit"
        return "longer than all similar runs" if self.runs else "unknown"

    def remaining(self, part: float) -> float | None:
        """Seconds that are left at this quantile, 0 to 1; None if nothing is known."""
        total = self._total(part)
        if total is None:
            return None
        if self.limit is not None:
            total = min(total, self.limit)
        return max(total - self.elapsed, _LEAST)

    def _total(self, part: float) -> float | None:
        if self.declared is not None:
            return self.declared if self.declared > self.elapsed else self.elapsed * (1 + _MORE)
        longer = sorted(run for run in self.runs if run > self.elapsed)
        if longer:
            # The next of n runs is the longest of all with a probability of 1 in n + 1: few runs tell little.
            place = int(part * (len(longer) + 1))
            return longer[place] if place < len(longer) else longer[-1] * _BEYOND
        if self.limit is not None:
            return self.limit
        # Nothing else is known: it lasts as long again with a probability of one half, nine times with one tenth.
        return self.elapsed / (1 - min(part, _LATEST)) if self.runs else None


UNKNOWN = RunningTime()


def draw_part(key: str, sample: int, samples: int) -> float:
    """The quantile of a workload in one of several samples: evenly spread, and different for every workload."""
    offset, step = _mix(key)
    return ((sample * step + 0.5) / samples + offset) % 1.0


@lru_cache(maxsize=20_000)
def _mix(key: str) -> tuple[float, int]:
    """Where a workload begins among the quantiles, and its step from sample to sample.

    Steps have no factor in common with 5 and 20, the usual numbers of samples, so every quantile is drawn once.
    """
    offset = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32
    return offset, _STEPS[int(offset * 1000) % len(_STEPS)]


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(0, -int(-part * len(ordered) // 1) - 1), len(ordered) - 1)]
