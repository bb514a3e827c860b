"""Writes a REST spec as a command line, with a list of the members that no flag can set.

Called by `convert` and when a workload is shown as a command. It is the inverse of how the command line applies flags
to a spec, and uses the same table; it knows no flag by name, only that the arguments after `--` are the command.
"""

import shlex
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from fairlead.formats.flags.entry import FlagEntry, FlagPart
from fairlead.formats.flags.table import flag_table
from fairlead.formats.losses import Loss, Source, converted, leaves
from fairlead.formats.plain import Plain
from fairlead.kinds.kind import Kind
from fairlead.model.command_words import split_words

_NO_FLAG = "no flag can set it"


class _Inexpressible(Exception):
    """A text that the parser of flags would read differently."""


def render_command(
    kind: Kind, spec: Plain, table: list[FlagEntry] | None = None
) -> tuple[list[str], list[str], list[Loss]]:
    """The flags, the arguments after `--`, and what they cannot set (paths below the spec).

    With `--command` among the flags the arguments replace the image's entrypoint, otherwise they are its arguments.
    """
    source = Source(spec)
    table = flag_table(kind) if table is None else table
    flags: list[str] = []
    lists: dict[str, list[FlagEntry]] = {}
    for entry in table:
        form = entry["form"]
        if form in ("pair", "item"):
            lists.setdefault(entry["path"], []).append(entry)
        elif form == "object":
            flags += _object(entry, source)
        elif form != "words":
            flags += _scalar(entry, source)
    for path, entries in lists.items():
        for number, item in source.items(path, excluded_too=True):
            flags += _item(entries, source, f"{path}[{number}]", item)
    arguments = _render_arguments(source, flags)
    losses = source.losses + [_left_over(path, value) for path, value in source.left.items()]
    arriving = converted(spec, losses)
    for name, like in kind.mirrored_members:
        if like:
            flags += _apart(arriving, name, like)
        else:
            losses += _filled_in(table, arriving, name)
    return flags, arguments, losses


def _apart(arriving: Plain, name: str, like: str) -> list[str]:
    """The flag that stops a role from being a copy of another one, if the copy would add something to it."""
    more = set(arriving.get(like) or ()) - set(arriving.get(name) or ())
    return [f"--{name}-as-{like}=false"] if more else []


def _filled_in(table: list[FlagEntry], arriving: Plain, name: str) -> list[Loss]:
    """What a command line copies from the shared spec to a role, because no flag sets it."""
    if not arriving.get(name):
        return []
    members = {entry["path"].split(".")[1] for entry in table if entry["path"].startswith(f"{name}.")}
    missing = [member for member in arriving if member in members and member not in arriving[name]]
    reason = "is copied from the shared spec if no flag sets it"
    return [
        Loss(path=f"{name}.{path}", reason=reason, now=value)
        for member in missing
        for path, value in leaves({member: arriving[member]}).items()
    ]


def _left_over(path: str, value: object) -> Loss:
    if value is None:
        reason = "null is the same as not given on a command line"
    elif value in ({}, []):
        reason = "is empty, which is the same as not given on a command line"
    else:
        reason = _NO_FLAG
    return Loss(path=path, reason=reason, value=value)


def _scalar(entry: FlagEntry, source: Source) -> list[str]:
    path, flag, preset = entry["path"], entry["flag"], entry.get("preset", {})
    value = source.peek(path)
    if value is UNSET or any(source.peek(other) != constant for other, constant in preset.items()):
        return []
    try:
        text = _flag_text(entry, value)
    except _Inexpressible as unsayable:
        source.lose(path, str(unsayable))
        return []
    for member_path in (path, *preset):
        source.take(member_path)
    return [flag if text is None else f"{flag}={text}"]


def _object(entry: FlagEntry, source: Source) -> list[str]:
    """Nothing if a member cannot be set: the flags of single members set what they can."""
    try:
        text, used_paths = _part_texts(entry, source, entry["path"])
    except _Inexpressible:
        return []
    for path in used_paths:
        source.take(path)
    return [f"{entry['flag']}={text}"] if text else []


def _flag_text(entry: FlagEntry, value: Any) -> str | None:
    form = entry["form"]
    if form == "switch":
        if "constant" in entry and value != entry["constant"]:
            raise _Inexpressible(_NO_FLAG)
        return None if value == entry.get("constant", True) else "false"
    if form == "duration":
        if value <= 0 or int(float(value)) != value:
            raise _Inexpressible("a time of 0 means not given on a command line")
        return f"{value}s"
    if form == "list":
        if not value or any(not word or "," in word for word in value):
            raise _Inexpressible("is a list of words; they cannot be empty or contain commas")
        return ",".join(value)
    return _typed(entry["type"], value)


def _typed(kind: str, value: object) -> str:
    if kind == "number":
        text = repr(value)
        if float(text) != value:
            raise _Inexpressible("has more digits than the command line can read")
        return text
    return str(value)


def _item(entries: list[FlagEntry], source: Source, here: str, item: Plain) -> list[str]:
    """The flag that sets the most members of the item; the first of several."""
    best: tuple[str, list[str], list[tuple[str, Any]]] | None = None
    for entry in entries:
        presets = _presets(entry, source, here)
        if presets is None:
            continue
        try:
            text, used_paths = (
                _pair(entry, source, here) if entry["form"] == "pair" else _parts(entry, source, here, item)
            )
        except _Inexpressible:
            continue
        if text and (best is None or _reach(used_paths, here) > _reach(best[1], here)):
            best = (f"{entry['flag']}={text}", used_paths, presets)
    if best is None:
        return []
    flag, used_paths, presets = best
    for path, constant in presets:
        if source.peek(path) is UNSET:
            source.lose(path, f"is {str(constant).lower()} if this flag is used", constant)
        else:
            source.take(path)
    for path in used_paths:
        source.take(path)
    return [flag]


def _reach(used_paths: list[str], here: str) -> tuple[int, int]:
    """How many members of the item are set, and how many leaves."""
    return len({path.removeprefix(f"{here}.").split(".")[0] for path in used_paths}), len(used_paths)


def _presets(entry: FlagEntry, source: Source, here: str) -> list[tuple[str, Any]] | None:
    """What the flag sets by itself; None if the item has another value. The item must have a preset that is true."""
    presets = [(f"{here}.{path}", constant) for path, constant in entry.get("preset", {}).items()]
    for path, constant in presets:
        value = source.peek(path)
        if value != constant and not (value is UNSET and constant is False):
            return None
    return presets


def _pair(entry: FlagEntry, source: Source, here: str) -> tuple[str, list[str]]:
    """`NAME=VALUE`, or `NAME=VALUE,key=VALUE`."""
    paths = [f"{here}.{path}" for path in entry["pair"]]
    values = [source.peek(path) for path in paths]
    if any(value is UNSET for value in values):
        raise _Inexpressible(_NO_FLAG)
    texts = [str(value) for value in values]
    if not texts[0] or "=" in texts[0] or any(entry.get("separator", "\0") in text for text in texts[1:2]):
        raise _Inexpressible(_NO_FLAG)
    return f"{texts[0]}={entry.get('separator', '').join(texts[1:])}", paths


def _parts(entry: FlagEntry, source: Source, here: str, item: Plain) -> tuple[str, list[str]]:
    wrap = entry.get("wrap")
    if not wrap:
        return _part_texts(entry, source, here)
    inner = item.get(wrap)
    if not inner or not all(isinstance(one, dict) for one in inner):
        raise _Inexpressible(_NO_FLAG)
    texts, used_paths = [], []
    for number in range(len(inner)):
        text, paths = _part_texts(entry, source, f"{here}.{wrap}[{number}]")
        if ";" in text or not text:
            raise _Inexpressible(_NO_FLAG)
        texts.append(text)
        used_paths += paths
    return ";".join(texts), used_paths


def _part_texts(entry: FlagEntry, source: Source, here: str) -> tuple[str, list[str]]:
    """The parts, separated by commas. If one part cannot be set, none is: the item would mean something else."""
    texts, used_paths = [], []
    for part in entry["parts"]:
        path = f"{here}.{part['path']}"
        value = source.peek(path)
        if "pair" in part:
            value, paths = _pairs_of(part, source, path)
        else:
            paths = [path]
        if value is UNSET:
            continue
        texts.append(_part_text(part, value))
        used_paths += paths
    return ",".join(texts), used_paths


def _pairs_of(part: FlagPart, source: Source, path: str) -> tuple[Any, list[str]]:
    left, right = part["pair"]
    pairs, used_paths, number = [], [], 0
    while source.peek(f"{path}[{number}].{left}") is not UNSET:
        key, value = f"{path}[{number}].{left}", f"{path}[{number}].{right}"
        if "=" in source.peek(key) or source.peek(value) is UNSET:
            raise _Inexpressible(_NO_FLAG)
        pairs.append(f"{source.peek(key)}={source.peek(value)}")
        used_paths += [key, value]
        number += 1
    return (pairs or UNSET), used_paths


def _part_text(part: FlagPart, value: object) -> str:
    name = part["name"]
    if isinstance(value, bool):
        wanted = part.get("constant", True)
        return name if value == wanted else f"{name}=false"
    if isinstance(value, list):
        text = ":".join(value)
        if any(not word or ":" in word for word in value):
            raise _Inexpressible(_NO_FLAG)
    else:
        text = _typed(part.get("type", "string"), value)
    if "," in text:
        raise _Inexpressible(_NO_FLAG)
    return f"{name}={text}"


def _render_arguments(source: Source, flags: list[str]) -> list[str]:
    """Command and arguments: the first word of the command is the program, all others are arguments."""
    command, arguments = source.peek("command"), source.peek("args")
    if command is UNSET:
        return _arguments(source, flags, arguments)
    try:
        arguments_given = [*split_words(command), *(split_words(arguments) if arguments is not UNSET else ())]
    except ValueError:
        source.lose("command", "has an unclosed quote")
        return []
    if not arguments_given or not split_words(command):
        source.lose("command", "is empty")
        return []
    flags.append("--command")
    reason = "the command line has one program and its arguments; together they are the same"
    for path, was, now in (("command", command, arguments_given[:1]), ("args", arguments, arguments_given[1:])):
        text = shlex.join(now) if now else UNSET
        if text == was:
            source.take(path)
        elif text is not UNSET or was is not UNSET:
            source.lose(path, reason, text)
    return arguments_given


def _arguments(source: Source, flags: list[str], arguments: object) -> list[str]:
    if arguments is UNSET:
        return []
    source.take("args")
    try:
        quoted = list(split_words(arguments))
    except ValueError:
        quoted = []
    if quoted and shlex.join(quoted) == arguments:
        return quoted
    flags.append(f"--args={arguments}")
    return []


def render_line(program: Iterable[str], flags: list[str], arguments: list[str]) -> str:
    """The complete command, quoted for a shell, one flag per line."""
    parts = [shlex.join(program), *(shlex.quote(flag) for flag in flags)]
    if arguments:
        parts.append(f"-- {shlex.join(arguments)}")
    return " \\\n  ".join(parts) + "\n"
