"""Flags that fill a workload's spec: a generated table says which flag sets which member, and how.

The table (`generated/<kind>.json`) is written from the model by `python -m fairlead.cli.generate`, so that no command
loads the model. This module knows no field by name.
"""

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.cli.flags import Flag, UsageError, read_typed
from fairlead.cli.suggest import suggest

Entry = Mapping[str, Any]


def load_table(key: str) -> list[Entry]:
    """The flags of one kind, as generated."""
    path = os.path.join(os.path.dirname(__file__), "generated", f"{key}.json")
    with open(path, encoding="utf-8") as file:
        entries: list[Entry] = json.load(file)
    return entries


def as_flag(entry: Entry) -> Flag:
    """An entry as the parser and the help text see it. Values are read later, when they are put in their place."""
    form = entry["form"]
    return Flag(
        entry["flag"].removeprefix("--"),
        entry.get("help", ""),
        "boolean"
        if form == "switch"
        else _SIMPLE.get(entry.get("type", ""), "string")
        if form == "value"
        else "string",
        entry.get("short", "").removeprefix("-"),
        form in ("list", "pair", "item"),
        tuple(entry.get("choices", ())) if form == "value" else (),
        tuple(alias.removeprefix("--") for alias in entry.get("aliases", ())),
        _placeholder(entry),
        str(entry.get("default") or ""),
    )


_SIMPLE = {"integer": "integer", "number": "number", "boolean": "boolean"}


def _placeholder(entry: Entry) -> str:
    form = entry["form"]
    if form == "pair":
        return "NAME=VALUE"
    if form == "list":
        return "A,B"
    if form == "item":
        return ",".join(_part_shown(part) for part in entry.get("parts", ()))
    return "TIME" if form == "duration" else ""


def _part_shown(part: Mapping[str, Any]) -> str:
    return str(part["name"]) if "constant" in part else f"{part['name']}="


def apply_flags(table: Sequence[Entry], values: Mapping[str, Any], spec: dict[str, Any]) -> None:
    """Put the values of the flags that were given into the spec."""
    for entry in table:
        name = entry["flag"].removeprefix("--")
        if name in values:
            _apply(entry, f"--{name}", values[name], spec)


def _apply(entry: Entry, shown: str, value: Any, spec: dict[str, Any]) -> None:
    form, path = entry["form"], entry["path"]
    if form == "switch":
        constant = entry.get("constant", True)
        place(spec, path, constant if value or not isinstance(constant, bool) else not constant)
    elif form == "duration":
        place(spec, path, int(read_typed("duration", shown, value)))
    elif form == "list":
        words = [word for text in value for word in text.split(",") if word]
        place(spec, path, [read_typed(entry.get("type", "string"), shown, word) for word in words])
    elif form in ("pair", "item"):
        for text in value:
            item = _read_pair(entry, shown, text) if form == "pair" else _read_item(entry, shown, text)
            append(spec, path, item)
        return
    else:
        place(spec, path, _whole(value))
    for other, constant in entry.get("preset", {}).items():
        place(spec, other, constant)


def _whole(value: Any) -> Any:
    """A number without fraction as an integer, so that `2` is sent as 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_pair(entry: Entry, shown: str, text: str) -> dict[str, Any]:
    """`NAME=VALUE`; more than one `=` belongs to the value. Parts may follow the pair after commas if it takes any."""
    left, equals, right = text.partition("=")
    if not equals or not left:
        raise UsageError(f"{shown} takes NAME=VALUE, not '{text}'.")
    item: dict[str, Any] = {}
    for path, constant in entry.get("preset", {}).items():
        place(item, path, constant)
    paths = entry["pair"]
    words = [left, right] if len(paths) == 2 else [left, *right.split(entry.get("separator", ","), len(paths) - 2)]
    if len(words) != len(paths):
        raise UsageError(f"{shown} takes {_pair_shown(entry)}, not '{text}'.")
    types = entry.get("pairTypes", ())
    for number, (path, word) in enumerate(zip(paths, words, strict=True)):
        place(item, path, read_typed(types[number] if number < len(types) else "string", shown, word))
    return item


def _pair_shown(entry: Entry) -> str:
    first, *others = entry["pair"]
    return f"{first}=" + str(entry.get("separator", ",")).join(others)


def _read_item(entry: Entry, shown: str, text: str) -> dict[str, Any]:
    """Parts joined by commas: `name=value`, or a bare word for a part that is a switch."""
    parts = {part["name"].lower(): part for part in entry["parts"]}
    item: dict[str, Any] = {}
    for path, constant in entry.get("preset", {}).items():
        place(item, path, constant)
    for word in text.split(","):
        name, equals, value = word.partition("=")
        part = parts.get(name.strip().lower())
        if part is None:
            known = [found["name"] for found in entry["parts"]]
            raise UsageError(f"{shown} has no part '{name}'; it takes {', '.join(known)}.{suggest(name, known)}")
        place(item, part["path"], _read_part(part, f"{shown} {part['name']}", value if equals else None))
    return item


def _read_part(part: Mapping[str, Any], shown: str, text: str | None) -> Any:
    if "constant" in part:
        constant = part["constant"]
        given = True if text is None else read_typed("boolean", shown, text)
        return constant if given else not constant
    if text is None:
        if part.get("type") == "boolean":
            return True
        raise UsageError(f"{shown} needs a value: {part['name']}=…")
    if part.get("list"):
        return [read_typed(part.get("type", "string"), shown, word) for word in text.split(":") if word]
    return _choose(part, shown, _whole(read_typed(part.get("type", "string"), shown, text)))


def _choose(part: Mapping[str, Any], shown: str, value: Any) -> Any:
    choices = part.get("choices")
    if not choices:
        return value
    for choice in choices:
        if str(choice).lower() == str(value).lower():
            return choice
    raise UsageError(f"{shown} is one of {', '.join(choices)}, not '{value}'.")


def place(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a member by its dotted path, making the objects on the way."""
    *parents, last = path.split(".")
    for parent in parents:
        below = tree.get(parent)
        if not isinstance(below, dict):
            below = tree[parent] = {}
        tree = below
    tree[last] = value


def append(tree: dict[str, Any], path: str, item: Any) -> None:
    """Add an item to the list at a dotted path."""
    *parents, last = path.split(".")
    for parent in parents:
        below = tree.get(parent)
        if not isinstance(below, dict):
            below = tree[parent] = {}
        tree = below
    found = tree.get(last)
    if not isinstance(found, list):
        found = tree[last] = []
    found.append(item)
