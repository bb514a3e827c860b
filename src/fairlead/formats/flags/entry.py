"""The entries of the table of flags. Types only: the command line reads the table without loading the model.

`table` makes the entries from the declarations, `command_line` writes a spec with them, and the command line sets
members of a spec with them.
"""

from typing import NotRequired, TypedDict


class FlagPart(TypedDict):
    """One part of a value such as `path=/data,readwrite`."""

    name: str
    path: str
    type: str
    help: NotRequired[str]
    constant: NotRequired[bool]
    #: Whether its value is a list, separated by colons; `pair` are the two members of its items.
    list: NotRequired[bool]
    pair: NotRequired[list[str]]
    choices: NotRequired[list[str]]


class FlagEntry(TypedDict):
    """One flag. Paths are dotted REST paths below `spec`; those of a part or pair are inside of the item."""

    #: With its dashes.
    flag: str
    #: value, switch, duration, list, pair, item, object or words.
    form: str
    type: str
    path: str
    repeatable: bool
    help: str
    short: NotRequired[str]
    aliases: NotRequired[list[str]]
    choices: NotRequired[list[str]]
    default: NotRequired[object]
    #: What a switch sets, and what the flag sets besides its own value.
    constant: NotRequired[object]
    preset: NotRequired[dict[str, object]]
    #: The members of NAME=VALUE, their types, and what separates a third one.
    pair: NotRequired[list[str]]
    pairTypes: NotRequired[list[str]]
    separator: NotRequired[str]
    parts: NotRequired[list[FlagPart]]
    #: The member that has the items, if an item is only a list.
    wrap: NotRequired[str]
