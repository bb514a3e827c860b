"""Jobs in a notebook and in a terminal: a card, a table, and a table that changes in place."""

import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TextIO

from fairlead.client.json_object import Json

_COLUMNS = ("name", "type", "projectName", "phase", "phaseMessage")
_TITLES = {"projectName": "project", "phaseMessage": "message"}
_COLOURS = {"Running": "#1a7f37", "Completed": "#0969da", "Failed": "#cf222e", "Degraded": "#cf222e"}
#: Facts of a card, in order, with their titles.
_CARD = (
    ("type", "type"),
    ("projectName", "project"),
    ("phase", "phase"),
    ("phaseMessage", "message"),
    ("submittedBy", "submitted by"),
    ("createdAt", "created"),
    ("completedAt", "ended"),
    ("id", "id"),
)
#: What HTML would read as markup. The standard library's `html` is 2 ms of every command's start.
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
#: The longest message in a terminal's table.
_LONGEST = 60


class HtmlTable(Protocol):
    def _repr_html_(self) -> str: ...


def render_card(workload: Json) -> str:
    """One workload as HTML."""
    rows = [
        f"<tr><th style='text-align:left'>{title}</th><td style='text-align:left'>{_cell(workload, key)}</td></tr>"
        for key, title in _CARD
        if workload.get(key)
    ]
    return f"<table><caption>{_escape(str(workload['name']))}</caption><tbody>{''.join(rows)}</tbody></table>"


def render_table(workloads: Sequence[Json]) -> str:
    """Workloads as an HTML table, one row each."""
    head = "".join(f"<th style='text-align:left'>{_TITLES.get(key, key)}</th>" for key in _COLUMNS)
    rows = "".join(_row(row) for row in workloads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(workload: Json) -> str:
    cells = "".join(f"<td style='text-align:left'>{_cell(workload, key)}</td>" for key in _COLUMNS)
    return f"<tr>{cells}</tr>"


def _escape(text: str) -> str:
    return text.translate(_MARKUP)


def _cell(workload: Json, key: str) -> str:
    text = _escape(str(workload.get(key) or ""))
    colour = _COLOURS.get(str(workload.get(key))) if key == "phase" else None
    return f"<span style='color:{colour}'>{text}</span>" if colour else text


def render_text(workloads: Sequence[Json]) -> str:
    """Workloads as lines of text, aligned."""
    if not workloads:
        return "no jobs"
    rows = [[str(row.get(key) or "")[:_LONGEST] for key in _COLUMNS] for row in workloads]
    rows.insert(0, [_TITLES.get(key, key).upper() for key in _COLUMNS])
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def open_display(table: HtmlTable, output: TextIO | None = None) -> Callable[[], None]:
    """Show a table, in place in a notebook and line by line elsewhere; returns what shows it again."""
    # In a notebook IPython is loaded already; elsewhere it need not be installed.
    notebook = sys.modules.get("IPython.display")
    shell = sys.modules.get("IPython")
    if output is None and notebook is not None and shell is not None and shell.get_ipython() is not None:
        handle = notebook.display(table, display_id=True)
        return lambda: handle.update(table)
    terminal = _Terminal(table, output or sys.stdout)
    terminal.draw()
    return terminal.draw


class _Terminal:
    """A table on a terminal, drawn over the previous one; into a file, only lines that changed."""

    def __init__(self, table: HtmlTable, output: TextIO) -> None:
        self._table = table
        self._output = output
        self._lines: list[str] = []

    def draw(self) -> None:
        lines = repr(self._table).splitlines()
        if self._output.isatty():
            up = f"\x1b[{len(self._lines)}A" if self._lines else ""
            self._output.write(up + "".join(f"\x1b[2K{line}\n" for line in lines))
        else:
            self._output.write("".join(f"{line}\n" for line in lines if line not in self._lines))
        self._output.flush()
        self._lines = lines
