"""Results in the chosen format: a table, JSON, YAML or names."""

import json
from collections.abc import Callable, Mapping, Sequence

from fairlead.cli.command import Invocation
from fairlead.cli.terminal.console import Console
from fairlead.cli.terminal.tables import TableColumn, render_table
from fairlead.client.json_object import Json
from fairlead.formats.yaml.text import render_yaml


def chosen_format(invocation: Invocation, settings: Mapping[str, str]) -> str:
    """The output format: by flag, by configuration, or a table."""
    for name in ("json", "yaml", "table"):
        if invocation.get(name):
            return name
    return str(invocation.get("output") or settings.get("output") or "table")


def render(console: Console, form: str, content: object) -> str:
    """Render content as YAML for the form `yaml`, otherwise as JSON."""
    if form != "yaml":
        return json.dumps(content, indent=2, ensure_ascii=False)
    return render_yaml(content).rstrip("\n")


class Listing:
    """How rows of one type are listed."""

    def __init__(self, columns: Sequence[TableColumn], name: Callable[[Json], str], empty: str) -> None:
        self._columns = columns
        self._name = name
        self._empty = empty

    def show(self, console: Console, form: str, rows: Sequence[Json], headers: bool) -> None:
        """Print rows in the given form; for an empty table, print a note to standard error."""
        if form in ("json", "yaml"):
            console.data(render(console, form, list(rows)))
        elif form == "name":
            for row in rows:
                console.data(self._name(row))
        elif not rows:
            console.say(self._empty)
        else:
            columns = [column for column in self._columns if form == "wide" or not column.wide]
            width = None if form == "wide" else console.width()
            for line in render_table(columns, rows, width=width, headers=headers, paint=console.paint):
                console.data(line)
