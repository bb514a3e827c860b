"""A `submit` command line as a workload between dialects, read by the flags of its kind. Called by `convert`.

Flags that are about the command, or name what only a server has, are listed as not carried.
"""

import re
import shlex
from collections.abc import Callable
from typing import Any

from fairlead.cli.files.convert import PROGRAMS
from fairlead.cli.flags import GLOBAL, Parsed, UsageError, parse
from fairlead.cli.workloads.submit_flags import MADE, fill_spec, submit_flags
from fairlead.client.kinds import KindEntry, load_kinds

Json = dict[str, Any]
_STANDARD = "standard"
#: What a shell takes as one piece, so far as a line break behind a backslash is concerned.
_PIECE = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_COMMAND = "is about the command, not about the workload"
_ASSET = "is an asset, which the server puts into a request when the command runs"
#: Flags that say nothing of the spec by themselves, and why they are not carried.
_REASONS = {
    "file": "names a file with a part of the request; convert that file by itself",
    "template": "only its server knows the template",
    "environment": _ASSET,
    "compute": _ASSET,
    "datasource": _ASSET,
}


def split_line(text: str, path: str) -> list[str]:
    """The words of a command as a shell splits them; lines that end in a backslash go on in the next."""
    joined = _PIECE.sub(lambda piece: piece[0] if piece[0][0] == "'" else piece[0].replace("\\\n", ""), text)
    try:
        return shlex.split(joined, comments=True)
    except ValueError as error:
        raise UsageError(f"{path} is no command line: {error}.") from None


def read_command(load: Callable[[str], Any], words: list[str]) -> Any:
    """The workload that the words ask for; `load` gives modules by their names."""
    rest = words[1:] if words[:1] and words[0] in PROGRAMS else list(words)
    kind, rest = _find_kind(rest)
    if rest[:1] != ["submit"]:
        raise UsageError(f"Only `{' '.join(kind.command)} submit` describes a workload.")
    parsed = parse(rest[1:], (*submit_flags(kind), *GLOBAL))
    if len(parsed.names) > 1:
        raise UsageError(f"`submit` does not know what to do with '{parsed.names[1]}'; words to run follow after --.")
    spec: Json = {}
    fill_spec(spec, kind, parsed)
    given, prefix = parsed.names[0] if parsed.names else parsed.values.get("name"), parsed.values.get("name-prefix")
    if given and prefix:
        raise UsageError("Give a name or --name-prefix, not both.")
    name, is_prefix = given or prefix or "-".join(kind.command), not given
    beside = {name: spec.pop(name) for name in kind.beside if name in spec}
    body = {"name": name, "useGivenNameAsPrefix": is_prefix, "spec": spec, **beside}
    found = load("convert_from_rest").from_request(kind.key, body, parsed.values.get("project", ""), "--project")
    return load("converted").altered(found, {"losses": [*found.losses, *_losses(load, parsed)]})


def _losses(load: Callable[[str], Any], parsed: Parsed) -> list[Any]:
    loss = load("convert_losses").Loss
    found = []
    for name, value in parsed.values.items():
        if name == "name-prefix":
            reason = "random characters follow a prefix everywhere else, not a number"
            found.append(loss(path=f"--{name}", reason=reason, value=value, now=value))
        elif name in _REASONS or name in _about_the_command():
            found.append(loss(path=f"--{name}", reason=_REASONS.get(name, _COMMAND), value=value))
    return found


def _about_the_command() -> set[str]:
    return {flag.name for flag in (*MADE, *GLOBAL)}


def _find_kind(words: list[str]) -> tuple[KindEntry, list[str]]:
    every = [one for entry in load_kinds().values() for one in (entry, *entry.subtypes)]
    entries = [entry for entry in every if tuple(words[: len(entry.command)]) == entry.command]
    if not entries:
        known = ", ".join(" ".join(entry.command) for entry in load_kinds().values())
        raise UsageError(f"'{' '.join(words[:2])}' is no kind of workload; there are {known}.")
    kind = max(entries, key=lambda entry: len(entry.command))
    rest = words[len(kind.command) :]
    return kind, rest[1:] if rest[:1] == [_STANDARD] else rest
