"""Tables in plain text: columns are as wide as their content, and shrink or are left out to fit a terminal."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fairlead.cli.terminal.console import fit

_GAP = "  "
#: The minimum width of columns that shrink, and of every column of a table that does not fit otherwise.
_NARROWEST = 8
_UNREADABLE = 3


class TableColumn(NamedTuple):
    title: str
    value: Callable[[Any], str]
    #: Only with `-o wide`.
    wide: bool = False
    #: Whether it shrinks to fit the terminal, and to which width at least while another column can be left out.
    shrinks: bool = False
    narrowest: int = _NARROWEST
    #: Whether it is left out of a table that does not fit the terminal; the rightmost goes first.
    spare: bool = False
    #: The colour of a cell by its text.
    colour: Callable[[str], str] | None = None


def render_table(
    columns: Sequence[TableColumn],
    rows: Sequence[object],
    *,
    width: int | None,
    headers: bool,
    paint: Callable[[str, str], str],
) -> list[str]:
    """The lines of a table. Every cell is one line; the last column is not padded."""
    texts = [[" ".join(column.value(row).split()) for column in columns] for row in rows]
    widths = [
        max([len(column.title) if headers else 0] + [len(line[place]) for line in texts])
        for place, column in enumerate(columns)
    ]
    if width is not None:
        shown = _find_kept(columns, widths, width)
        columns = [columns[place] for place in shown]
        texts = [[line[place] for place in shown] for line in texts]
        widths = _narrow(columns, [widths[place] for place in shown], width)
    titles = [column.title for column in columns]
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


def _find_kept(columns: Sequence[TableColumn], widths: Sequence[int], width: int) -> list[int]:
    """The places of the columns that fit: spare ones are left out until the others have their minimum width."""
    shown = list(range(len(columns)))
    narrowest = [
        min(widths[place], column.narrowest) if column.shrinks else widths[place]
        for place, column in enumerate(columns)
    ]
    for place in reversed(range(len(columns))):
        if sum(narrowest[each] for each in shown) + len(_GAP) * (len(shown) - 1) <= width:
            break
        if columns[place].spare:
            shown.remove(place)
    return shown


def _narrow(columns: Sequence[TableColumn], widths: list[int], width: int) -> list[int]:
    """Shrink the widest shrinkable column until the table fits; if that is not enough, the widest of all columns."""
    widths = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    for places, narrowest in ((shrinking, _NARROWEST), (range(len(columns)), _UNREADABLE)):
        while excess > 0:
            place = max(places, key=lambda candidate: widths[candidate], default=None)
            if place is None or widths[place] <= narrowest:
                break
            widths[place] -= 1
            excess -= 1
    return widths
