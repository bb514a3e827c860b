"""`explain KIND[.FIELD…]`: what a field means, from the same declarations that the server uses.

It reads tables that are generated from them by the build, so that it answers at once.
"""

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from fairlead.cli.command import Command, Invocation
from fairlead.cli.exit_codes import NOT_FOUND, OK
from fairlead.cli.flags import GENERATED, Flag
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest

PREFIX = "explain-"
_WIDTH = 80
#: Keys between a list and the members of its items.
_BETWEEN = ("items", "value")
_FLAGS = (Flag("output", "Output format", short="o", choices=("text", "json"), default="text"),)
_DETAILS = """Examples:
  fairlead explain trainingworkload.spec
  fairlead explain trainingworkload.spec.pvcs.size
  fairlead explain training.spec.nodeAffinityRequired"""


class Unknown(Exception):
    """There is no such kind or field; the message suggests similar ones."""


class MatchedField(NamedTuple):
    """An explanation, and the kind and field that it is for."""

    kind: str
    version: str
    field: str
    entry: Json


def commands(_noun: str) -> tuple[Command, ...]:
    return (
        Command(
            "",
            "Explain a field of a workload",
            _run,
            _FLAGS,
            "KIND[.FIELD...]",
            min_names=1,
            max_names=1,
            details=_DETAILS,
        ),
    )


def _run(invocation: Invocation) -> int:
    environment = invocation.environment
    try:
        matched = explain(invocation.names[0])
    except Unknown as unknown:
        environment.stderr.write(f"fairlead: {unknown}\n")
        return NOT_FOUND
    if invocation.get("output") == "json":
        heading = {"kind": matched.kind, "version": matched.version, "field": matched.field}
        environment.stdout.write(json.dumps({**heading, **matched.entry}, indent=2, ensure_ascii=False) + "\n")
    else:
        environment.stdout.write(render_text(matched))
    return OK


def explain(field_path: str) -> MatchedField:
    """The explanation of `KIND`, `KIND.spec`, `KIND.spec.FIELD` or a deeper field; `spec` may be left out."""
    name, *steps = field_path.strip(".").split(".")
    table = _load_table(name)
    entries = {path.lower(): entry for path, entry in table["entries"].items()}
    path = steps[1:] if steps[:1] == ["spec"] and len(steps) > 1 else steps
    entry = _find(entries, path)
    if entry is None:
        near = _elsewhere(path) or _near(table, path)
        raise Unknown(f"There is no field '{'.'.join(path)}' in {table['kind']}.{near}")
    below = ".".join(path)
    field = below if path in ([], ["spec"]) else f"spec.{below}"
    return MatchedField(table["kind"], str(entry.get("version") or table["version"]), field, entry)


def _find(entries: dict[str, Json], path: list[str]) -> Json | None:
    """Find an entry by its path, without YAML's wrapper keys and the keys of items."""
    plain = [word.lower() for word in path if word.lower() not in _BETWEEN]
    tries = (".".join(word.lower() for word in path), ".".join(plain), ".".join([*plain[:1], *plain[-1:]]))
    return next((entries[each] for each in tries if each in entries), None)


def _near(table: Json, path: list[str]) -> str:
    """Suggestions from the members below the part of the path that exists."""
    entries = {known.lower(): known for known in table["entries"]}
    above = ".".join(word.lower() for word in path[:-1] if word.lower() not in _BETWEEN)
    depth = above.count(".") + 1 if above else 0
    known = [name for low, name in entries.items() if low.startswith(above) and low.count(".") == depth]
    return suggest(path[-1], [name.rpartition(".")[2] for name in known])


def _elsewhere(path: list[str]) -> str:
    """A sentence that names the kinds with such a field; empty if there are none."""
    kinds = []
    for file in _table_files():
        with open(os.path.join(GENERATED, file), encoding="utf-8") as opened:
            table = json.load(opened)
        entries = {known.lower(): entry for known, entry in table["entries"].items()}
        if _find(entries, path) is not None:
            kinds.append(table["kind"])
    return f" It belongs to {', '.join(kinds)}." if kinds else ""


def _table_files() -> list[str]:
    return sorted(file for file in os.listdir(GENERATED) if file.startswith(PREFIX))


def _load_table(name: str) -> Json:
    wanted = name.lower().replace("-", "")
    known: dict[str, str] = {}
    for file in _table_files():
        with open(os.path.join(GENERATED, file), encoding="utf-8") as opened:
            # The first line has only the names, so that tables of other kinds are not parsed.
            names = json.loads(opened.readline().rstrip().rstrip(",") + "}")["names"]
            if wanted in names:
                opened.seek(0)
                table: Json = json.load(opened)
                return table
        known.update(dict.fromkeys(names, names[0]))
    raise Unknown(
        f"There is no kind '{name}'.{suggest(wanted, known)} The kinds are {', '.join(sorted(set(known.values())))}."
    )


def render_text(matched: MatchedField) -> str:
    """The explanation in the layout of kubectl, with the parts that kubectl does not have below."""
    entry = matched.entry
    lines = [f"KIND:       {matched.kind}", f"VERSION:    {matched.version}", ""]
    if matched.field:
        lines += [f"FIELD: {matched.field} <{entry['type']}>", ""]
    lines += ["DESCRIPTION:", *_wrapped(entry["description"], 4), ""]
    for title, value in (
        ("DEFAULT", entry.get("default", "")),
        ("ONE OF", ", ".join(entry.get("choices", ()))),
        ("REST", ", ".join(entry.get("rest", ()))),
        ("FLAG", "; ".join(entry.get("flags", ()))),
        ("ALSO", ", ".join(entry.get("spellings", ()))),
        ("KINDS", ", ".join(entry.get("kinds", ()))),
        ("EXAMPLE", entry.get("example", "")),
    ):
        if value:
            lines.append(f"{title + ':':<11} {value}")
    lines += _engines(entry.get("engines", ()))
    if entry.get("fields"):
        lines += ["", "FIELDS:"] if lines[-1] else ["FIELDS:"]
        for name, kind, description in entry["fields"]:
            lines += [f"  {name}\t<{kind}>", *_wrapped(description, 4), ""]
    return "\n".join(lines).rstrip() + "\n"


def _engines(rows: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """What each engine does with the field, for each of its places in a request."""
    lines = ["", "ENGINES:"] if rows else []
    for path, effects in rows:
        lines += [f"  {path}"] if len(rows) > 1 else []
        lines += [line for engine, effect in effects.items() for line in _wrapped(f"{engine}: {effect}", 4)]
    return lines


def _wrapped(text: str, indent: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > _WIDTH - indent:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [" " * indent + part for part in (*lines, line) if part]
