"""Errors of the server in the words of the command line: the flag that sets a member instead of the member's REST path.

`submit`, `run` and `update` call it when the server refuses a request. Members that no flag sets keep their path.
"""

import re
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager

from fairlead.cli.command import Invocation
from fairlead.cli.workloads.spec_flags import load_table, name_of
from fairlead.client import ServerError
from fairlead.client.errors import Issue
from fairlead.formats.flags.entry import FlagEntry

#: Members outside the spec, and what sets them.
_OUTSIDE = {"projectId": "--project", "templateId": "--template"}
_POSITION = re.compile(r"\[\d+\]")
_PATH = re.compile(r"\bspec(?:\.\w+(?:\[\d+\])?)+")
#: Stands for a member that a flag sets without naming it.
_WHOLE = " "
#: A member in the text of a violation: REST names of several words are written together.
_MEMBER = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b")


@contextmanager
def flags_in_errors(kind: str, invocation: Invocation) -> Iterator[None]:
    """Errors of the server that are raised inside name the flags of the kind."""
    try:
        yield
    except ServerError as error:
        raise name_flags(error, load_table(kind), invocation.parsed.values) from error


def name_flags(error: ServerError, table: Sequence[FlagEntry], given: Container[str]) -> ServerError:
    """The same error, with flags instead of members; `given` are the flags that were used."""

    def shown(path: str) -> str:
        return _OUTSIDE.get(path) or _find(table, given, _clean(path)) or path

    def told(issue: Issue) -> str:
        parent = _clean(issue.field).rpartition(".")[0]
        own = shown(issue.field).partition(" ")[0]

        def replaced(match: re.Match[str]) -> str:
            flag = _find_nearest(table, given, parent, match[0])
            # Another part of the same flag needs only its name.
            return flag.removeprefix(f"{own} ") if flag else match[0]

        return _MEMBER.sub(replaced, issue.details)

    issues = tuple(Issue(shown(issue.field), told(issue), issue.rule) for issue in error.issues)
    details = _PATH.sub(lambda match: shown(match[0]), error.details)
    return ServerError(error.status, error.message, details, issues)


def _clean(path: str) -> str:
    return _POSITION.sub("", path.removeprefix("spec."))


def _find_nearest(table: Sequence[FlagEntry], given: Container[str], parent: str, member: str) -> str:
    """The flag that sets exactly this member of the object around, or of the next one around that has it."""
    while True:
        flag = _find(table, given, f"{parent}.{member}" if parent else member, is_exact=True)
        if flag or not parent:
            return flag
        parent = parent.rpartition(".")[0]


def _find(table: Sequence[FlagEntry], given: Container[str], path: str, is_exact: bool = False) -> str:
    """The flag that sets a member, with the part of its value if it has parts; empty if there is none."""
    known = []
    for entry in table:
        inner = path[len(entry["path"]) :]
        if path.startswith(entry["path"]) and inner[:1] in ("", "."):
            part = _part(entry, inner[1:])
            if part or not inner or not is_exact:
                known.append(
                    (_used(entry, given) != "", part != "", len(entry["path"]), "constant" not in entry, entry, part)
                )
    if not known:
        return ""
    # The flag that was used, then the one that has such a part, then the one for the innermost object.
    *_, entry, part = max(known, key=lambda one: one[:4])
    if entry["form"] == "words":
        return "the words after --"
    return f"--{_used(entry, given) or name_of(entry)}{part if part != _WHOLE else ''}"


def _part(entry: FlagEntry, inner: str) -> str:
    """How a member of an item is given with the flag: the name of its part, or the flag as a whole."""
    if entry.get("preset", {}).get(inner) or inner in entry.get("pair", ()):
        return _WHOLE
    inner = inner.removeprefix(f"{entry.get('wrap', '')}.")
    return next((f" {part['name']}" for part in entry.get("parts", ()) if part["path"] == inner), "")


def _used(entry: FlagEntry, given: Container[str]) -> str:
    """The name by which the flag was used; `run` has flags of its own that are aliases elsewhere."""
    names = (name_of(entry), *(alias.removeprefix("--") for alias in entry.get("aliases", ())))
    return next((name for name in names if name in given), "")
