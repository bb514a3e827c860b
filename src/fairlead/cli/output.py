"""Results in the format that was asked for: a table, JSON, YAML or bare names."""

import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.cli.command import Invocation
from fairlead.cli.console import Console
from fairlead.cli.tables import Column, render_table

#: PyYAML costs more to import than all else together, so only `-o yaml` loads it.
_YAML = "yaml"


def chosen_format(invocation: Invocation, settings: dict[str, Any]) -> str:
    """The output format: by flag, by configuration, or a table."""
    for name in ("json", "yaml", "table"):
        if invocation.get(name):
            return name
    return str(invocation.get("output") or settings.get("output") or "table")


def render_yaml(content: Any) -> str:
    text: str = importlib.import_module(_YAML).safe_dump(content, sort_keys=False, allow_unicode=True)
    return text.rstrip("\n")


def render_json(content: Any) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False)


class Listing:
    """How rows of one sort are shown."""

    def __init__(self, columns: Sequence[Column], name: Callable[[Any], str], empty: str) -> None:
        self._columns = columns
        self._name = name
        self._empty = empty

    def show(self, console: Console, form: str, rows: Sequence[Any], headers: bool) -> None:
        """Print rows as `form` says; an empty table says so beside the output, not in it."""
        if form == "json":
            console.data(render_json(rows))
        elif form == "yaml":
            console.data(render_yaml(list(rows)))
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
