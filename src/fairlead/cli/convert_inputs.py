"""What `convert` reads beside files: a command line, by the flags of its kind, and a workload of the server.

Loaded when it is asked for, since it brings most of the command line with it.
"""

from collections.abc import Callable
from typing import Any

from fairlead.cli.command import Invocation
from fairlead.cli.convert import PROGRAMS
from fairlead.cli.flags import UsageError, parse
from fairlead.cli.kinds import commands as kind_commands
from fairlead.cli.session import Session
from fairlead.cli.submission import fill_spec
from fairlead.client.kinds import KindEntry, load_kinds

Json = dict[str, Any]
Load = Callable[[str], Any]
_STANDARD = "standard"


def read_live(invocation: Invocation, name: str) -> Any:
    """A workload as the server has it."""
    session = Session(invocation)
    row = session.workload(name)
    key = next((key for key, entry in load_kinds().items() if entry.title == row["type"]), None)
    if key is None:
        raise UsageError(f"This version of the command does not know workloads of type {row['type']}.")
    client = session.client.kind(key)
    content = client.get(row["id"])
    session.close()
    body = {"name": content["name"], "spec": content.get("spec") or {}}
    body |= {name: content[name] for name in client.entry.beside if name in content}
    load = invocation.surroundings.load
    found = load("convert_from_rest").from_request(key, body, row["projectName"])
    return load("converted").altered(found, {"is_active": content["desiredPhase"] != "Stopped"})


def read_command(load: Load, words: list[str]) -> Any:
    """A `submit` command line, read by the flags of its kind."""
    rest = words[1:] if words[:1] and words[0] in PROGRAMS else list(words)
    kind, rest = _find_kind(rest)
    if rest[:1] != ["submit"]:
        raise UsageError(f"Only `{' '.join(kind.command)} submit` describes a workload.")
    parsed = parse(rest[1:], kind_commands(kind)[0].flags)
    spec: Json = {}
    fill_spec(spec, kind, parsed)
    prefix = parsed.values.get("name-prefix")
    name = parsed.names[0] if parsed.names else parsed.values.get("name") or prefix or "-".join(kind.command)
    is_prefix = not (parsed.names or parsed.values.get("name"))
    beside = {name: spec.pop(name) for name in kind.beside if name in spec}
    body = {"name": name, "useGivenNameAsPrefix": is_prefix, "spec": spec, **beside}
    return load("convert_from_rest").from_request(kind.key, body, parsed.values.get("project", ""))


def _find_kind(words: list[str]) -> tuple[KindEntry, list[str]]:
    every = [one for entry in load_kinds().values() for one in (entry, *entry.subtypes)]
    entries = [entry for entry in every if tuple(words[: len(entry.command)]) == entry.command]
    if not entries:
        known = ", ".join(" ".join(entry.command) for entry in load_kinds().values())
        raise UsageError(f"'{' '.join(words[:2])}' is no kind of workload; there are {known}.")
    kind = max(entries, key=lambda entry: len(entry.command))
    rest = words[len(kind.command) :]
    return kind, rest[1:] if rest[:1] == [_STANDARD] else rest
