"""How long workloads run: declared, or as similar runs did, given the time that has already passed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from fairlead.scheduling.model.snapshot import Plain

Basis = Literal["declared", "similar runs", "time limit", "longer than all similar runs", "unknown"]
#: A workload that has outlived what was declared or known is taken to go on for this part of its time so far.
_MORE = 0.25
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
            return longer[min(int(part * len(longer)), len(longer) - 1)]
        if self.limit is not None:
            return self.limit
        return self.elapsed * (1 + _MORE) if self.runs else None


UNKNOWN = RunningTime()


def draw_part(key: str, sample: int, samples: int) -> float:
    """The quantile of a workload in one of several samples: evenly spread, and different for every workload."""
    offset = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32
    # Steps that are coprime to the number of samples mix the workloads.
    step = 1 + 2 * (int(offset * 1000) % 7)
    return ((sample * step + 0.5) / samples + offset) % 1.0


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(max(0, -int(-part * len(ordered) // 1) - 1), len(ordered) - 1)]
