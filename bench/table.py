"""A measured number and the table of them. Every bench yields `Measurement`s; `python -m bench` prints them.

To add a bench: a module in this folder with `measure(options) -> Iterator[Measurement]`, and its name in `BENCHES` in
`__main__.py`.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What every bench is told."""

    #: A short look instead of a measurement: fewer rounds, smaller numbers, no verdict.
    quick: bool = False
    #: Install and measure peers beside ours.
    peers: bool = False
    #: A folder that is removed afterwards.
    folder: Path = field(default_factory=lambda: Path("/tmp/fairlead-bench"))


@dataclass(frozen=True)
class Measurement:
    what: str
    unit: str
    #: One value per round.
    values: Sequence[float]
    goal: float | None = None
    #: Whether the goal is the least (a rate) or the most (a time, a size) that is wanted.
    more_is_better: bool = False
    #: What was measured exactly, or what holds it back.
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.median >= self.goal if self.more_is_better else self.median <= self.goal


def render_number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def render_row(measurement: Measurement) -> tuple[str, ...]:
    low, high = min(measurement.values), max(measurement.values)
    spread = f"{render_number(low)} – {render_number(high)}" if len(measurement.values) > 1 else "one round"
    sign = "≥" if measurement.more_is_better else "≤"
    goal = "" if measurement.goal is None else f"{sign} {render_number(measurement.goal)}"
    verdict = {None: "", True: "met", False: "MISSED"}[measurement.is_met]
    median = f"{render_number(measurement.median)} {measurement.unit}"
    return measurement.what, median, spread, str(len(measurement.values)), goal, verdict, measurement.note


HEADINGS = ("what", "median", "lowest – highest", "n", "goal", "", "note")


def render_table(measurements: Sequence[Measurement]) -> str:
    """A Markdown table with aligned columns: readable in a terminal and in a document."""
    rows = [HEADINGS, *(render_row(measurement) for measurement in measurements)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS) - 1)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append(f"| {' | '.join(cells)} | {row[-1]} |")
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|---|")
    return "\n".join(lines)
