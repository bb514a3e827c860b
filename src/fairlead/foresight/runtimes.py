"""How long workloads run: declared, or as similar runs did, given the time that has already passed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import Literal

from fairlead.scheduling.model.snapshot import Plain

Basis = Literal["declared", "similar runs", "time limit", "longer than all similar runs", "unknown"]
#: A workload that has outlived what was declared is taken to go on for this part of its time so far.
_MORE = 0.25
#: Among runs that outlive all similar ones, this quantile and those above it are taken to be equal.
_LATEST = 0.9
#: How much the running times of different workloads in a sample have in common: their correlation.
_TOGETHER = 0.2
_NORMAL = NormalDist()
_EDGE = 1e-6
_STEPS = (1, 7, 11, 13, 17, 19, 23)
#: Nothing ends in less than this many seconds.
_MIN_REMAINING = 1.0


class RunningTime(Plain, frozen=True, kw_only=True):
    """What is known about the running time of one workload, in seconds."""

    declared: float | None = None
    #: Running times of similar runs that have ended.
    runs: tuple[float, ...] = ()
    #: How long similar runs have run that have not ended: without them, long runs would seem rarer than they are.
    running: tuple[float, ...] = ()
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
        total = self.total(part)
        return None if total is None else max(total - self.elapsed, _MIN_REMAINING)

    def total(self, part: float) -> float | None:
        """Seconds from start to end, given that it has run for the time that has passed."""
        total = self._undisturbed(part)
        return total if total is None or self.limit is None else min(total, self.limit)

    def _undisturbed(self, part: float) -> float | None:
        if self.declared is not None:
            return self.declared if self.declared > self.elapsed else self.elapsed * (1 + _MORE)
        if any(run > self.elapsed for run in self.runs):
            return self._total_of_similar(part)
        if self.limit is not None:
            return self.limit
        # Nothing else is known.
        return _outlive(self.elapsed, part) if self.runs else None

    def _total_of_similar(self, part: float) -> float:
        """Kaplan and Meier's estimate: what still runs counts as long as it has run, and then says nothing more."""
        longer = [(run, True) for run in self.runs if run > self.elapsed]
        longer += [(run, False) for run in self.running if run > self.elapsed]
        longer.sort()
        shorter, rest = 0.0, 1.0
        for place, (run, has_ended) in enumerate(longer):
            if has_ended:
                # This run itself is one of those that are left: few runs tell little.
                ends_here = rest / (len(longer) - place + 1)
                shorter, rest = shorter + ends_here, rest - ends_here
                if part < shorter:
                    return run
        return _outlive(longer[-1][0], (part - shorter) / rest)


def _outlive(longest: float, part: float) -> float:
    """How long a run is that outlives all others: half of them twice as long, a tenth ten times."""
    return longest / (1 - min(part, _LATEST))


UNKNOWN = RunningTime()


def draw_part(key: str, sample: int, samples: int) -> float:
    """The quantile of a workload in one of several samples: evenly spread, and different for every workload."""
    offset, step = _mix(key)
    return ((sample * step + 0.5) / samples + offset) % 1.0


def draw_together(key: str, sample: int, samples: int) -> float:
    """As `draw_part`, but in some samples all runs tend to be long, and in others short.

    Runs that are submitted together are often of one kind, and what was learned from the past may not fit them. Drawn
    apart from each other, the errors of many workloads would cancel out, and all samples would agree too well.
    """
    common = _NORMAL.inv_cdf((sample + 0.5) / samples)
    own = _NORMAL.inv_cdf(min(max(draw_part(key, sample, samples), _EDGE), 1 - _EDGE))
    return _NORMAL.cdf(sqrt(_TOGETHER) * common + sqrt(1 - _TOGETHER) * own)


@lru_cache(maxsize=20_000)
def _mix(key: str) -> tuple[float, int]:
    """Where a workload begins among the quantiles, and its step from sample to sample.

    Steps have no factor in common with 5, 9 and 20, the usual numbers of samples: every quantile is drawn once.
    """
    offset = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32
    return offset, _STEPS[int(offset * 1000) % len(_STEPS)]


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(0, -int(-part * len(ordered) // 1) - 1), len(ordered) - 1)]


def foretell(samples: Sequence[float], part: float) -> float:
    """The value that the next sample does not exceed with this probability, as far as there are samples enough."""
    ordered = sorted(samples)
    return ordered[min(round(part * (len(ordered) + 1)), len(ordered)) - 1]
