"""The kinds of workloads as data: their REST names and their verbs.

`kinds.json` is generated from the server's declarations by `python -m fairlead.cli.generate`, so that the SDK
imports nothing from the server and starts in milliseconds.
"""

import json
import os
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol

from fairlead.client.json_object import Json


class Submittable(Protocol):
    """A typed spec, such as those of `fairlead.specs`: it knows its kind and its creation request."""

    #: The key of its kind.
    kind_key: ClassVar[str]

    def as_request(self) -> Json:
        """The members of a creation request that the spec has."""


class KindEntry(NamedTuple):
    key: str
    #: The type in lists of workloads.
    title: str
    #: The segment of its REST path.
    rest: str
    #: The words of its command.
    command: tuple[str, ...]
    can_suspend: bool
    #: Its noun in sentences.
    noun: str = ""
    #: The member that this command sets in the spec: (member, value).
    sets: tuple[str, object] | None = None
    #: Sub-types: further commands for the same kind.
    subtypes: tuple["KindEntry", ...] = ()
    #: Members of the spec that can change later.
    can_change: tuple[str, ...] = ()
    #: Members of the spec that are beside it in a request.
    outside_spec: tuple[str, ...] = ()
    #: The member that gets the arguments after `--`; empty for the spec itself.
    command_member: str = ""
    #: Members that are copies of another one if they are not given.
    mirrored_members: tuple[tuple[str, str], ...] = ()


@cache
def load_kinds() -> dict[str, KindEntry]:
    """Every kind by its key."""
    with open(os.path.join(os.path.dirname(__file__), "kinds.json"), encoding="utf-8") as file:
        entries = json.load(file)
    return {entry["key"]: _entry(entry) for entry in entries}


def _entry(entry: dict[str, Any]) -> KindEntry:
    kind = KindEntry(
        entry["key"],
        entry["title"],
        entry["rest"],
        tuple(entry["command"]),
        entry["canSuspend"],
        noun=entry["noun"],
        can_change=tuple(entry["canChange"]),
        outside_spec=tuple(entry["outsideSpec"]),
        command_member=entry["commandMember"],
        mirrored_members=tuple((one, other) for one, other in entry["mirroredMembers"]),
    )
    subtypes = [kind._replace(command=tuple(each["command"]), sets=tuple(each["sets"])) for each in entry["subtypes"]]
    return kind._replace(subtypes=tuple(subtypes))
