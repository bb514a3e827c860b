"""Tables in plain text: columns are as wide as their content, and shrink to fit a terminal."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlead.cli.terminal.console import fit

_GAP = "  "
#: The minimum width of columns that shrink.
_NARROWEST = 8


class TableColumn(NamedTuple):
    title: str
    value: Callable[[Any], str]
    #: Only with `-o wide`.
    wide: bool = False
    #: Whether it shrinks to fit the terminal.
    shrinks: bool = False
    #: The colour of a cell by its text.
    colour: Callable[[str], str] | None = None


def render_table(
    columns: Sequence[TableColumn],
    rows: Sequence[Any],
    *,
    width: int | None,
    headers: bool,
    paint: Callable[[str, str], str],
) -> list[str]:
    """The lines of a table. Every cell is one line; the last column is not padded."""
    texts = [[" ".join(column.value(row).split()) for column in columns] for row in rows]
    titles = [column.title for column in columns]
    widths = [
        max([len(titles[place]) if headers else 0] + [len(line[place]) for line in texts])
        for place in range(len(columns))
    ]
    if width is not None:
        widths = _narrow(columns, widths, width)
    lines = [_join(titles, widths, [None] * len(columns), paint)] if headers else []
    colours = [column.colour for column in columns]
    return lines + [_join(line, widths, colours, paint) for line in texts]


def _join(
    cells: Sequence[str],
    widths: Sequence[int],
    colours: Sequence[Callable[[str], str] | None],
    paint: Callable[[str, str], str],
) -> str:
    shown = []
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        text = fit(cell, width)
        padding = "" if place == len(cells) - 1 else " " * (width - len(text))
        chosen = colours[place]
        shown.append((paint(text, chosen(cell)) if chosen else text) + padding)
    return _GAP.join(shown).rstrip()


def _narrow(columns: Sequence[TableColumn], widths: list[int], width: int) -> list[int]:
    """Shrink the widest shrinkable column until the table fits or no column can shrink further."""
    widths = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    while excess > 0:
        place = max(shrinking, key=lambda candidate: widths[candidate], default=None)
        if place is None or widths[place] <= _NARROWEST:
            break
        widths[place] -= 1
        excess -= 1
    return widths
