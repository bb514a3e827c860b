"""Counts requests and renders metrics in Prometheus' text format; metrics of other rooms are collected at a scrape.

A few dictionaries instead of a client library: the hot path costs one addition per request.
"""

from collections.abc import Callable, Iterable

import msgspec

from fairlead.control.loop.board import Board
from fairlead.control.loop.counters import Histogram
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


class HistogramSample(msgspec.Struct, frozen=True):
    """A metric with several values: how many were up to each bound."""

    name: str
    values: Histogram
    help: str
    labels: dict[str, str] = {}


#: Labels that name people and what is theirs.
_NAMES = frozenset({"department", "project", "user", "workload"})

#: Called at every scrape; must answer from memory.
Samples = Callable[[], Iterable[Sample | HistogramSample]]


class Metrics:
    """Requests by operation and status, and how long they took."""

    def __init__(self, others: Samples = tuple) -> None:
        self._others = others
        self._requests: dict[tuple[str, int], int] = {}
        self._durations: dict[str, Histogram] = {}
        self.in_flight = 0

    def count(self, operation: str, status: int, seconds: float) -> None:
        key = (operation, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        durations = self._durations.get(operation)
        if durations is None:
            durations = self._durations[operation] = Histogram(BUCKETS)
        durations.observe(seconds)

    def render(self, *, has_names: bool = True) -> str:
        """The text of a scrape; without names, the series that name people, projects or workloads are left out."""
        samples: list[Sample | HistogramSample] = [
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
        text = "Time from a request's arrival to its answer."
        samples += [
            HistogramSample("fairlead_http_request_duration_seconds", values, text, {"operation": operation})
            for operation, values in sorted(self._durations.items())
        ]
        others = self._others()
        return _render([*samples, *(one for one in others if has_names or _NAMES.isdisjoint(one.labels))])


def _render(samples: Iterable[Sample | HistogramSample]) -> str:
    lines: list[str] = []
    described: set[str] = set()
    for sample in samples:
        if sample.name not in described:
            described.add(sample.name)
            if sample.help:
                lines.append(f"# HELP {sample.name} {sample.help}")
            lines.append(f"# TYPE {sample.name} {sample.type if isinstance(sample, Sample) else 'histogram'}")
        if isinstance(sample, Sample):
            lines.append(_line(sample.name, sample.labels, f"{sample.value:g}"))
        else:
            lines += _histogram_lines(sample)
    return "\n".join(lines) + "\n" if lines else ""


def _line(name: str, labels: dict[str, str], value: str) -> str:
    listed = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{listed}}} {value}" if listed else f"{name} {value}"


def _histogram_lines(sample: HistogramSample) -> list[str]:
    lines, total = [], 0
    for bound, number in zip((*map(str, sample.values.bounds), "+Inf"), sample.values.counts, strict=True):
        total += number
        lines.append(_line(f"{sample.name}_bucket", {**sample.labels, "le": bound}, str(total)))
    lines.append(_line(f"{sample.name}_sum", sample.labels, f"{sample.values.sum:.6f}"))
    lines.append(_line(f"{sample.name}_count", sample.labels, str(total)))
    return lines


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def loop_samples(board: Board, metrics: LoopMetrics) -> list[Sample]:
    text = "Pods that have not ended, by phase"
    pods = [Sample("fairlead_pods", n, {"phase": phase}, text) for phase, n in board.count_pods().items()]
    return [
        *pods,
        Sample("fairlead_open_workloads", len(board.entries), help="Workloads that are neither finished nor deleted"),
        Sample("fairlead_loop_cycles_total", metrics.cycles, help="Cycles of the loop", type="counter"),
        Sample("fairlead_loop_last_seconds", metrics.last_cycle_milliseconds / 1000, help="Duration of the last cycle"),
        Sample("fairlead_scheduling_cycles_total", metrics.scheduling_cycles, help="Scheduling cycles", type="counter"),
        Sample(
            "fairlead_scheduling_seconds_total",
            metrics.scheduling_milliseconds / 1000,
            help="Time spent in scheduling cycles",
            type="counter",
        ),
        Sample(
            "fairlead_lost_races_total",
            metrics.conflicts,
            help="Writes that conflicted with other writers",
            type="counter",
        ),
    ]
