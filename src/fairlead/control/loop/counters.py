"""What happened to workloads since the server started, counted for `/metrics`. The board notes every new record."""

from bisect import bisect_left
from collections import Counter

from fairlead.model.records.phase import TERMINAL
from fairlead.model.records.workload import Workload

#: Upper bounds of waits, in seconds: from a moment to two days.
WAITS = (1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 172_800.0)
#: Upper bounds of the duration of one scheduling cycle, in seconds.
CYCLES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Histogram:
    """Numbers of values up to each bound, as Prometheus counts them."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        #: One more than there are bounds: the last is for greater values.
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class WorkloadCounters:
    def __init__(self) -> None:
        #: Seconds that workloads waited before they started for the first time.
        self.waits = Histogram(WAITS)
        #: Evictions by rule: preempted, reclaimed, consolidated or stale.
        self.evictions: Counter[str] = Counter()
        #: Workloads that ended, by their last phase.
        self.ended: Counter[str] = Counter()

    def note(self, before: Workload, after: Workload) -> None:
        """Count what a new record of a workload tells."""
        if before.started_at is None and after.started_at is not None:
            self.waits.observe(after.pending_time / 1000)
        if after.last_eviction is not None and after.last_eviction != before.last_eviction:
            self.evictions[after.last_eviction.rule] += 1
        if after.phase in TERMINAL and before.phase not in TERMINAL:
            self.ended[after.phase.value] += 1
