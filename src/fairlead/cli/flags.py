"""Flags of the command line: how they are declared and how arguments are parsed.

The grammar is that of the runai CLI: `--name value`, `--name=value`, `-n value`, `-nvalue`; a switch takes its value
only after `=`; flags may come before and after names; arguments after `--` are not parsed. argparse has another
grammar, and importing it and declaring one kind's flags takes 18 ms of CPU, while a whole Python process starts in 7.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fairlead.client.suggest import suggest

#: Tables that `python -m fairlead.cli.generate` makes from the declarations, one file per kind.
GENERATED = os.path.join(os.path.dirname(__file__), "generated")


#: A flag's value, as its type says.
FlagValue = str | int | float | bool


class UsageError(Exception):
    """The command line is wrong; the message says what is wrong and what would be right."""


class Flag(NamedTuple):
    #: Without dashes.
    name: str
    help: str
    #: string, integer, number, boolean or duration (read as seconds).
    type: str = "string"
    short: str = ""
    repeatable: bool = False
    choices: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    #: Shown for the value in the help text.
    placeholder: str = ""
    default: str = ""


class Parsed(NamedTuple):
    #: By flag name, only the given ones. Values of repeatable flags are lists.
    values: dict[str, Any]
    names: list[str]
    #: The arguments after `--`; None if there was no `--`.
    trailing: list[str] | None
    #: The other name by which a flag was typed, by flag name.
    aliases: Mapping[str, str] = MappingProxyType({})

    def typed(self) -> set[str]:
        """The given flags, by the names that were typed."""
        return {self.aliases.get(name, name) for name in self.values}


GLOBAL = (
    Flag("config-file", "Name of the configuration file", placeholder="NAME", default="config.json"),
    Flag("config-path", "Folder of the configuration file", placeholder="FOLDER"),
    Flag("data-dir", "Data folder of the server on this machine", placeholder="FOLDER"),
    Flag("url", "Server address; overrides the configured one", placeholder="URL"),
    Flag("debug", "Show requests, and a traceback for errors", "boolean", "d"),
    Flag("quiet", "Print only results and errors", "boolean", "q"),
    Flag("verbose", "Print more details", "boolean"),
    Flag("help", "Show this help", "boolean", "h"),
)
CLUSTER = Flag("cluster", "Cluster; overrides the configured one", placeholder="NAME")
PROJECT = Flag("project", "Project; overrides the configured one", short="p", placeholder="NAME")
OUTPUT = (
    Flag(
        "output",
        "Output format",
        short="o",
        choices=("table", "wide", "json", "yaml", "name"),
        placeholder="FORMAT",
        default="table",
    ),
    Flag("json", "Same as -o json", "boolean"),
    Flag("yaml", "Same as -o yaml", "boolean"),
    Flag("table", "Same as -o table", "boolean"),
    Flag("no-headers", "Print tables without headers", "boolean"),
)

_TRUE = ("true", "1", "yes")
_FALSE = ("false", "0", "no")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse(arguments: Sequence[str], flags: Iterable[Flag]) -> Parsed:
    """Parse the arguments of a command."""
    long, short = _index(flags)
    values: dict[str, Any] = {}
    names: list[str] = []
    aliases: dict[str, str] = {}
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if word == "--":
            return Parsed(values, names, list(arguments[position:]), aliases)
        if word.startswith("--"):
            position += _read_long(word, arguments[position:], long, values)
            name = word[2:].partition("=")[0]
            if long[name].name != name:
                aliases[long[name].name] = name
        elif len(word) > 1 and word[0] == "-" and not _is_number(word):
            position += _read_short(word, arguments[position:], short, values)
        else:
            names.append(word)
    return Parsed(values, names, None, aliases)


def _index(flags: Iterable[Flag]) -> tuple[dict[str, Flag], dict[str, Flag]]:
    long: dict[str, Flag] = {}
    short: dict[str, Flag] = {}
    for flag in flags:
        for name in (flag.name, *flag.aliases):
            long.setdefault(name, flag)
        if flag.short:
            short.setdefault(flag.short, flag)
    return long, short


def _is_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdecimal()


def _read_long(word: str, following: Sequence[str], known: dict[str, Flag], values: dict[str, Any]) -> int:
    """Parse one long flag; returns how many of the following words it used."""
    name, equals, text = word[2:].partition("=")
    flag = known.get(name)
    if flag is None:
        raise UsageError(f"Unknown flag --{name}.{suggest(name, known, '--')}")
    if equals:
        _store(flag, f"--{name}", text, values)
        return 0
    return _store_given(flag, f"--{name}", following, values)


def _read_short(word: str, following: Sequence[str], known: dict[str, Flag], values: dict[str, Any]) -> int:
    """Parse a word of short flags: switches may be joined, the last flag may carry its value."""
    letters = word[1:]
    for place, letter in enumerate(letters):
        flag = known.get(letter)
        if flag is None:
            raise UsageError(f"Unknown flag -{letter}{f' in {word}' if letters[1:] else ''}.")
        rest = letters[place + 1 :]
        if flag.type != "boolean" and rest:
            _store(flag, f"-{letter}", rest.removeprefix("="), values)
            return 0
        if rest.startswith("="):
            _store(flag, f"-{letter}", rest[1:], values)
            return 0
        if flag.type != "boolean":
            return _store_given(flag, f"-{letter}", following, values)
        _store(flag, f"-{letter}", "true", values)
    return 0


def _store_given(flag: Flag, shown: str, following: Sequence[str], values: dict[str, Any]) -> int:
    if flag.type == "boolean":
        _store(flag, shown, "true", values)
        return 0
    if not following or following[0] == "--":
        raise UsageError(f"{shown} needs a value.")
    _store(flag, shown, following[0], values)
    return 1


def _store(flag: Flag, shown: str, text: str, values: dict[str, Any]) -> None:
    value = read_value(flag, shown, text)
    if flag.repeatable:
        values.setdefault(flag.name, []).append(value)
    else:
        values[flag.name] = value


def read_value(flag: Flag, shown: str, text: str) -> FlagValue:
    """Parse a value by the flag's type and choices."""
    if flag.choices:
        for choice in flag.choices:
            if choice.lower() == text.lower():
                return choice
        raise UsageError(
            f"{shown} must be one of {', '.join(flag.choices)}, not '{text}'.{suggest(text, flag.choices)}"
        )
    return read_typed(flag.type, shown, text)


def read_typed(kind: str, shown: str, text: str) -> FlagValue:
    """Parse a value by the name of its type."""
    try:
        if kind == "integer":
            return int(text)
        if kind == "number":
            return float(text)
        if kind == "duration":
            return read_duration(text)
    except ValueError:
        wanted = {"integer": "a whole number", "number": "a number", "duration": "a duration such as 90s, 5m or 1h30m"}
        raise UsageError(f"{shown} must be {wanted[kind]}, not '{text}'.") from None
    if kind == "boolean":
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise UsageError(f"{shown} must be true or false, not '{text}'.")
    return text


def read_duration(text: str) -> float:
    """Parse a duration such as `90`, `90s`, `1h30m` or `1.5h` into seconds; raises ValueError for other texts."""
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    total, rest = 0.0, text
    while rest:
        digits = len(rest) - len(rest.lstrip("0123456789."))
        after = rest[digits:]
        unit = after[: len(after) - len(after.lstrip("hmsd"))]
        if unit not in _UNITS:
            raise ValueError(text)
        total += float(rest[:digits]) * _UNITS[unit]
        rest = after[len(unit) :]
    return total if text else float(text)
