"""What became of everything that was to be carried over."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

CREATED, CHANGED, UNCHANGED, LOST = "created", "changed", "unchanged", "not carried over"
#: The order of a report.
OUTCOMES = (CREATED, CHANGED, UNCHANGED, LOST)

#: Told what is done next, such as `Reading projects`.
OnStep = Callable[[str], None]


def ignore_step(step: str) -> None:
    """Nobody wants to know."""


class ReportLine(NamedTuple):
    """One thing and what became of it."""

    outcome: str
    #: Its kind in words, such as `project`.
    kind: str
    name: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{f': {self.why}' if self.why else ''}"


class Report:
    """Collects lines, and secrets that are shown only once."""

    def __init__(self, is_dry: bool = False) -> None:
        self.is_dry = is_dry
        self.lines: list[ReportLine] = []
        #: New passwords and client secrets: (kind, name, secret).
        self.secrets: list[tuple[str, str, str]] = []

    def add(self, outcome: str, kind: str, name: str, why: str = "") -> None:
        self.lines.append(ReportLine(outcome, kind, name, why))

    def lose(self, kind: str, name: str, why: str) -> None:
        self.add(LOST, kind, name, why)

    def of(self, outcome: str) -> list[ReportLine]:
        return [line for line in self.lines if line.outcome == outcome]

    def render(self) -> str:
        """The report as text: how many of each kind, then everything that was not carried over."""
        title = "Dry run: nothing was written." if self.is_dry else "Done."
        rows = [title]
        for outcome in OUTCOMES:
            counts = Counter(line.kind for line in self.of(outcome))
            if counts:
                summary = ", ".join(f"{count} {_plural(kind, count)}" for kind, count in counts.items())
                rows.append(f"{_verb(outcome, self.is_dry)}: {summary}")
        lost = self.of(LOST)
        if lost:
            rows += ["", "Not carried over:", *(f"  {line}" for line in lost)]
        return "\n".join(rows)


def _verb(outcome: str, is_dry: bool) -> str:
    if is_dry and outcome in (CREATED, CHANGED):
        return f"Would be {outcome}"
    return outcome[0].upper() + outcome[1:]


def _plural(kind: str, count: int) -> str:
    if count == 1:
        return kind
    noun, of, whole = kind.partition(" of ")
    plural = f"{noun[:-1]}ies" if noun.endswith("cy") else f"{noun}s"
    return f"{plural}{of}{whole}"
