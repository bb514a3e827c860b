"""Reads a `submit` command line as a workload, with the flags of its kind. Called by `convert`.

Flags that concern the command itself, or name something that only a server has, are listed as losses.
"""

import re
import shlex

import msgspec

from fairlead.cli.flags import GLOBAL, Parsed, UsageError, parse
from fairlead.cli.workloads.submit_flags import COMMAND_FLAGS, fill_spec, submit_flags
from fairlead.client.kinds import KindEntry, load_kinds
from fairlead.formats.convert.from_rest import from_request
from fairlead.formats.intermediate import IntermediateWorkload
from fairlead.formats.losses import Loss

PROGRAMS = ("runai", "fairlead")
_STANDARD = "standard"
#: A quoted or escaped part of a command line; inside single quotes a backslash does not join lines.
_PIECE = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_COMMAND = "concerns the command, not the workload"
_ASSET = "is an asset; its content is looked up on the server when the command runs"
#: Flags that are not part of the spec, and why they are lost.
_REASONS = {
    "file": "names a file with part of the request; convert that file separately",
    "template": "only the server knows the template",
    "environment": _ASSET,
    "compute": _ASSET,
    "datasource": _ASSET,
}


def split_line(text: str, path: str) -> list[str]:
    """Split a command line like a shell; a backslash at the end of a line joins it with the next."""
    joined = _PIECE.sub(lambda piece: piece[0] if piece[0][0] == "'" else piece[0].replace("\\\n", ""), text)
    try:
        return shlex.split(joined, comments=True)
    except ValueError as error:
        raise UsageError(f"{path} is not a valid command line: {error}.") from None


def read_command(arguments: list[str]) -> IntermediateWorkload:
    """The workload that a command line would submit."""
    rest = arguments[1:] if arguments[:1] and arguments[0] in PROGRAMS else list(arguments)
    kind, rest = _find_kind(rest)
    if rest[:1] != ["submit"]:
        raise UsageError(f"Only `{' '.join(kind.command)} submit` describes a workload.")
    parsed = parse(rest[1:], (*submit_flags(kind), *GLOBAL))
    if len(parsed.names) > 1:
        raise UsageError(f"`submit` got an unexpected argument '{parsed.names[1]}'. Put -- before the command to run.")
    spec: dict[str, object] = {}
    fill_spec(spec, kind, parsed)
    given, prefix = parsed.names[0] if parsed.names else parsed.values.get("name"), parsed.values.get("name-prefix")
    if given and prefix:
        raise UsageError("Give a name or --name-prefix, not both.")
    name, is_prefix = given or prefix or "-".join(kind.command), not given
    beside = {name: spec.pop(name) for name in kind.outside_spec if name in spec}
    body = {"name": name, "useGivenNameAsPrefix": is_prefix, "spec": spec, **beside}
    workload = from_request(kind.key, body, parsed.values.get("project", ""), "--project")
    return msgspec.structs.replace(workload, losses=[*workload.losses, *_losses(parsed)])


def _losses(parsed: Parsed) -> list[Loss]:
    losses = []
    for name, value in parsed.values.items():
        if name == "name-prefix":
            reason = "the command line adds a number to a prefix, other formats add random characters"
            losses.append(Loss(path=f"--{name}", reason=reason, value=value, now=value))
        elif name in _REASONS or name in _flags_of_the_command():
            losses.append(Loss(path=f"--{name}", reason=_REASONS.get(name, _COMMAND), value=value))
    return losses


def _flags_of_the_command() -> set[str]:
    return {flag.name for flag in (*COMMAND_FLAGS, *GLOBAL)}


def _find_kind(arguments: list[str]) -> tuple[KindEntry, list[str]]:
    every = [one for entry in load_kinds().values() for one in (entry, *entry.subtypes)]
    entries = [entry for entry in every if tuple(arguments[: len(entry.command)]) == entry.command]
    if not entries:
        known = ", ".join(" ".join(entry.command) for entry in load_kinds().values())
        raise UsageError(f"'{' '.join(arguments[:2])}' is not a kind of workload; the kinds are {known}.")
    kind = max(entries, key=lambda entry: len(entry.command))
    rest = arguments[len(kind.command) :]
    return kind, rest[1:] if rest[:1] == [_STANDARD] else rest
