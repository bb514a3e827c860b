"""Counts requests and renders metrics in Prometheus' text format; metrics of other rooms are collected at a scrape.

A few dictionaries instead of a client library: the hot path costs one addition per request.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable

import msgspec

from fairlead.control.loop.board import Board
from fairlead.control.loop.reconcile import LoopMetrics

#: Upper bounds of the duration buckets, in seconds.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Sample(msgspec.Struct, frozen=True):
    """One metric of another room: `fairlead_pods{phase="Running"} 3`."""

    name: str
    value: float
    labels: dict[str, str] = {}
    help: str = ""
    #: `gauge` or `counter`.
    type: str = "gauge"


#: Called at every scrape; must answer from memory.
Samples = Callable[[], Iterable[Sample]]


class Metrics:
    """Requests by operation and status, and how long they took."""

    def __init__(self, others: Samples = tuple) -> None:
        self._others = others
        self._requests: dict[tuple[str, int], int] = {}
        self._durations: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self.in_flight = 0

    def count(self, operation: str, status: int, seconds: float) -> None:
        key = (operation, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        buckets = self._durations.get(operation)
        if buckets is None:
            buckets = self._durations[operation] = [0] * (len(BUCKETS) + 1)
        buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds[operation] = self._seconds.get(operation, 0.0) + seconds

    def render(self) -> str:
        samples = [
            Sample(
                "fairlead_http_requests_total",
                number,
                {"operation": operation, "status": str(status)},
                "Requests answered, by operation and status.",
                "counter",
            )
            for (operation, status), number in sorted(self._requests.items())
        ]
        samples.append(Sample("fairlead_http_requests_in_flight", self.in_flight, {}, "Requests being answered now."))
        text = _render(samples) + self._render_durations()
        return text + _render(self._others())

    def _render_durations(self) -> str:
        name = "fairlead_http_request_duration_seconds"
        lines = [f"# HELP {name} Time from a request's arrival to its answer.", f"# TYPE {name} histogram"]
        for operation, buckets in sorted(self._durations.items()):
            total = 0
            for bound, number in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += number
                lines.append(f'{name}_bucket{{operation="{operation}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{operation="{operation}"}} {self._seconds[operation]:.6f}')
            lines.append(f'{name}_count{{operation="{operation}"}} {total}')
        return "\n".join(lines) + "\n"


def _render(samples: Iterable[Sample]) -> str:
    lines: list[str] = []
    named: set[str] = set()
    for sample in samples:
        if sample.name not in named:
            named.add(sample.name)
            if sample.help:
                lines.append(f"# HELP {sample.name} {sample.help}")
            lines.append(f"# TYPE {sample.name} {sample.type}")
        labels = ",".join(f'{key}="{_escape(value)}"' for key, value in sample.labels.items())
        lines.append(f"{sample.name}{{{labels}}} {sample.value:g}" if labels else f"{sample.name} {sample.value:g}")
    return "\n".join(lines) + "\n" if lines else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def loop_samples(board: Board, figures: LoopMetrics) -> list[Sample]:
    pods = [Sample("fairlead_pods", n, {"phase": phase}) for phase, n in board.count_pods().items()]
    return [
        *pods,
        Sample("fairlead_open_workloads", len(board.entries), help="Workloads that are neither finished nor deleted"),
        Sample("fairlead_loop_cycles_total", figures.cycles, help="Cycles of the loop", type="counter"),
        Sample("fairlead_loop_last_seconds", figures.last_cycle_milliseconds / 1000, help="Duration of the last cycle"),
        Sample("fairlead_scheduling_cycles_total", figures.scheduling_cycles, type="counter"),
        Sample("fairlead_scheduling_seconds_total", figures.scheduling_milliseconds / 1000, type="counter"),
        Sample(
            "fairlead_lost_races_total",
            figures.conflicts,
            help="Writes that conflicted with other writers",
            type="counter",
        ),
    ]
