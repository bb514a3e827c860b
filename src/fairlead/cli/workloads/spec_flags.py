"""Flags that set members of a workload's spec: a generated table says which flag sets which member, and how.

The table (`generated/<kind>.json`) is generated from the model by `python -m fairlead.cli.generate`, so that no command
loads the model. This module knows no field by name.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead.cli.flags import GENERATED, Flag, UsageError, read_typed
from fairlead.client.json_object import Json
from fairlead.client.suggest import suggest
from fairlead.formats.flags.entry import FlagEntry, FlagPart


def load_table(key: str) -> list[FlagEntry]:
    """The flags of one kind, as generated."""
    path = os.path.join(GENERATED, f"{key}.json")
    with open(path, encoding="utf-8") as file:
        entries: list[FlagEntry] = json.load(file)
    return entries


def as_flag(entry: FlagEntry) -> Flag:
    """An entry as a flag for the parser and the help. Most values are parsed later, by `apply_flags`."""
    form = entry["form"]
    is_plain = form == "value"
    return Flag(
        name_of(entry),
        entry.get("help", ""),
        "boolean" if form == "switch" else entry.get("type", "string") if is_plain else "string",
        entry.get("short", "").removeprefix("-"),
        bool(entry.get("repeatable")),
        tuple(entry.get("choices", ())) if is_plain else (),
        tuple(alias.removeprefix("--") for alias in entry.get("aliases", ())),
        _placeholder(entry),
    )


def name_of(entry: FlagEntry) -> str:
    return str(entry["flag"]).removeprefix("--")


def _placeholder(entry: FlagEntry) -> str:
    form = entry["form"]
    if form == "pair":
        return "NAME=VALUE"
    if form == "list":
        return "A,B"
    if form in ("item", "object"):
        names = dict.fromkeys(_part_shown(part) for part in entry["parts"])
        return ",".join(names)
    return "TIME" if form == "duration" else ""


def _part_shown(part: FlagPart) -> str:
    return str(part["name"]) if part.get("type") == "boolean" else f"{part['name']}="


def apply_flags(table: Sequence[FlagEntry], values: Mapping[str, object], spec: Json) -> None:
    """Set the values of the given flags in the spec; a value wins over the constant of a switch."""
    for entry in sorted(table, key=lambda entry: "constant" not in entry):
        name = name_of(entry)
        if name in values:
            _apply(entry, f"--{name}", values[name], spec)


def _apply(entry: FlagEntry, shown: str, value: Any, spec: Json) -> None:
    form, path = entry["form"], entry["path"]
    if form in ("pair", "item"):
        for text in value:
            append(spec, path, _read_pair(entry, shown, text) if form == "pair" else _read_item(entry, shown, text))
        return
    if form == "switch":
        _apply_switch(entry, value, spec)
    elif form == "object":
        _apply_object(entry, shown, value, spec)
    elif form == "duration":
        _apply_duration(entry, shown, value, spec)
    elif form == "list":
        items = [word for text in value for word in text.split(",") if word]
        place(spec, path, [_choose(entry, shown, read_typed(entry["type"], shown, word)) for word in items])
    else:
        place(spec, path, _whole(value))
    for other, constant in entry.get("preset", {}).items():
        place(spec, other, constant)


def _apply_switch(entry: FlagEntry, value: bool, spec: Json) -> None:
    constant = entry.get("constant", True)
    if value:
        place(spec, entry["path"], constant)
    elif isinstance(constant, bool):
        place(spec, entry["path"], not constant)


def _apply_object(entry: FlagEntry, shown: str, value: str, spec: Json) -> None:
    """Parts like those of an item; a first word without a name is the first part, as in `8000,protocol=http`."""
    first, *rest = value.split(",")
    names = {part["name"].lower() for part in entry["parts"]}
    if "=" not in first and first.strip().lower() not in names:
        first = f"{entry['parts'][0]['name']}={first}"
    for path, leaf in leaves(_read_parts(entry, shown, ",".join([first, *rest]))):
        place(spec, f"{entry['path']}.{path}", leaf)


def leaves(tree: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """The values in a tree of objects, with their dotted paths."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _apply_duration(entry: FlagEntry, shown: str, value: str, spec: Json) -> None:
    """For the runai CLI a time of 0 means not given, so it is not sent; a file can set 0."""
    seconds = int(read_typed("duration", shown, value))
    if seconds:
        place(spec, entry["path"], seconds)


def _whole(value: object) -> Any:
    """Turn a whole number into an integer, so that `2` is sent as 2."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_pair(entry: FlagEntry, shown: str, text: str) -> Json:
    """`NAME=VALUE`; further equals signs belong to the value. A third member comes after the entry's separator."""
    paths = entry["pair"]
    left, equals, right = text.partition("=")
    values = [left, right]
    if len(paths) > 2:
        values = [left, *right.split(entry["separator"], 1)]
    if not equals or not left or len(values) != len(paths):
        wanted = "NAME=VALUE" if len(paths) == 2 else f"NAME=VALUE{entry['separator']}VALUE"
        raise UsageError(f"{shown} must be {wanted}, not '{text}'.")
    item = _preset(entry)
    for path, kind, word in zip(paths, entry["pairTypes"], values, strict=True):
        place(item, path, read_typed(kind, shown, word))
    return item


def _read_item(entry: FlagEntry, shown: str, text: str) -> Json:
    """Parts separated by commas. An item that is only a list takes several of them, separated by semicolons."""
    wrap = entry.get("wrap")
    if wrap:
        return {wrap: [_read_parts(entry, shown, part) for part in text.split(";")]}
    return _read_parts(entry, shown, text)


def _read_parts(entry: FlagEntry, shown: str, text: str) -> Json:
    """Each part is `name=value`, or only a name if it is a switch."""
    parts = {part["name"].lower(): part for part in entry["parts"]}
    item = _preset(entry)
    for word in text.split(","):
        name, equals, value = word.partition("=")
        part = parts.get(name.strip().lower())
        if part is None:
            raise UsageError(f"{shown} has no part '{name}'; its parts are {', '.join(parts)}.{suggest(name, parts)}")
        place(item, part["path"], _read_part(part, f"{shown} {part['name']}", value if equals else None))
    return item


def _preset(entry: FlagEntry) -> Json:
    item: Json = {}
    for path, constant in entry.get("preset", {}).items():
        place(item, path, constant)
    return item


def _read_part(part: FlagPart, shown: str, text: str | None) -> Any:
    if "constant" in part:
        constant = part["constant"]
        given = True if text is None else read_typed("boolean", shown, text)
        return constant if given else not constant
    if text is None:
        if part.get("type") == "boolean":
            return True
        raise UsageError(f"{shown} needs a value: {part['name']}=…")
    if part.get("list"):
        items = [word for word in text.split(":") if word]
        pair = part.get("pair")
        return [_read_two(pair, shown, word) if pair else read_typed(part["type"], shown, word) for word in items]
    return _choose(part, shown, _whole(read_typed(part.get("type", "string"), shown, text)))


def _read_two(members: Sequence[str], shown: str, word: str) -> dict[str, str]:
    left, equals, right = word.partition("=")
    if not equals:
        raise UsageError(f"{shown} must be {members[0]}={members[1]}:…, not '{word}'.")
    return {members[0]: left, members[1]: right}


def _choose(declared: Mapping[str, Any], shown: str, value: Any) -> Any:
    """The choice that equals the value, ignoring case; the value itself if there are no choices."""
    choices = declared.get("choices")
    if not choices:
        return value
    for choice in choices:
        if str(choice).lower() == str(value).lower():
            return choice
    raise UsageError(f"{shown} must be one of {', '.join(choices)}, not '{value}'.{suggest(str(value), choices)}")


def place(tree: Json, path: str, value: object) -> None:
    """Set a member by its dotted path; missing objects on the path are created."""
    *parents, last = path.split(".")
    for parent in parents:
        below = tree.get(parent)
        if not isinstance(below, dict):
            below = tree[parent] = {}
        tree = below
    tree[last] = value


def append(tree: Json, path: str, item: object) -> None:
    """Add an item to the list at a dotted path."""
    *parents, last = path.split(".")
    for parent in parents:
        below = tree.get(parent)
        if not isinstance(below, dict):
            below = tree[parent] = {}
        tree = below
    items = tree.get(last)
    if not isinstance(items, list):
        items = tree[last] = []
    items.append(item)
