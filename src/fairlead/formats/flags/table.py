"""The flags by which a kind's spec is given on the command line, as plain data walked out of the declarations.

A generator writes it into a file for the command line, which never loads the model. Paths are dotted REST paths below
`spec`; those of a part or pair are inside the item that the flag adds to the list at its path.
"""

from typing import Any

from msgspec import inspect

from fairlead.formats.rest.openapi import describe
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, FlagDeclaration, fields_of

Entry = dict[str, Any]
#: Until it is known whether a flag is a role's.
_OF_ROLES = "roleAliases"


def flag_table(kind: Kind) -> list[Entry]:
    """Every flag: flag, form, type, path, repeatable, help, and where they apply short, aliases, choices, default,
    constant, preset, pair, separator, parts, wrap."""
    return [{key: value for key, value in entry.items() if key != _OF_ROLES} for entry in _struct(kind.spec, "")]


def _struct(struct: Any, path: str) -> list[Entry]:
    entries: list[Entry] = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        for flag in field.about.flags:
            entries += _members(field, flag, here) if flag.form == "members" else [_entry(field, flag, here)]
        if field.struct is not None and not field.is_list and not field.about.flags:
            entries += [_for_role(entry, field.about.role) for entry in _struct(field.struct, here)]
    return entries


def _for_role(entry: Entry, role: str) -> Entry:
    """A flag of pods of another role: its long names with the role before them."""
    if not role:
        return entry
    kept = {key: value for key, value in entry.items() if key not in ("short", _OF_ROLES)}
    kept["flag"] = f"--{role}-{entry['flag'].removeprefix('--')}"
    aliases = [*entry.get("aliases", ()), *entry.get(_OF_ROLES, ())]
    if aliases:
        kept["aliases"] = [f"--{role}-{name.removeprefix('--')}" for name in aliases]
    return kept


def _members(field: Field, flag: FlagDeclaration, path: str) -> list[Entry]:
    """One flag for each member of an object, however deep it lies."""
    return [
        _entry(member, FlagDeclaration(name=f"{flag.name}-{member.about.part}"), f"{path}.{inner}")
        for member, inner in _leaves(field.struct, "")
    ]


def _leaves(struct: Any, path: str) -> list[tuple[Field, str]]:
    """The members of an item that carry values, with their paths; a list of objects counts as one."""
    leaves = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        if field.struct is not None and not field.is_list:
            leaves += _leaves(field.struct, here)
        else:
            leaves.append((field, here))
    return leaves


def _entry(field: Field, flag: FlagDeclaration, path: str) -> Entry:
    form = flag.form or _form(field)
    entry: Entry = {
        "flag": flag.name,
        "form": form,
        "type": _type(field),
        "path": path,
        "repeatable": form in ("list", "pair", "item"),
        "help": flag.help or describe(field),
    }
    more = {
        "short": flag.short,
        "aliases": list(flag.aliases),
        _OF_ROLES: list(flag.role_aliases),
        "choices": _choices(field) if form in ("value", "list") else [],
        "default": field.about.default,
        "constant": flag.constant,
        "preset": dict(flag.preset),
    }
    entry.update({key: value for key, value in more.items() if value not in ("", [], {}, None)})
    if form == "pair":
        entry.update(_pair(field, flag))
    elif form in ("item", "object"):
        entry.update(_parts(field, flag))
    return entry


def _form(field: Field) -> str:
    if field.is_list:
        return "item" if field.struct is not None else "list"
    return "switch" if isinstance(field.shape, inspect.BoolType) else "value"


def _type(field: Field) -> str:
    return "string" if field.struct is not None else field.type_word


def _choices(field: Field) -> list[Any]:
    shape = field.item if field.is_list else field.shape
    return list(shape.values) if isinstance(shape, inspect.LiteralType) else []


def _pair(field: Field, flag: FlagDeclaration) -> Entry:
    """The third of a pair stands after a comma by its part's name: NAME=SECRET,key=KEY."""
    members = {path: member for member, path in _leaves(field.struct, "")}
    entry: Entry = {"pair": list(flag.pair), "pairTypes": [_type(members[path]) for path in flag.pair]}
    if len(flag.pair) > 2:
        entry["separator"] = f",{members[flag.pair[2]].about.part}="
    return entry


def _parts(field: Field, flag: FlagDeclaration) -> Entry:
    struct, wrap = field.struct, ""
    members = fields_of(struct)
    if len(members) == 1 and members[0].is_list and members[0].struct is not None:
        # An item that is nothing but a list: the flag's value holds its elements, separated by semicolons.
        struct, wrap = members[0].struct, members[0].rest
    leaves = [(member, path) for member, path in _leaves(struct, "") if not flag.parts or path in flag.parts]
    entry: Entry = {"parts": [_part(member, path) for member, path in leaves if path not in flag.preset]}
    return {**entry, "wrap": wrap} if wrap else entry


def _part(member: Field, path: str) -> Entry:
    part: Entry = {"name": member.about.part, "path": path, "type": _type(member), "help": describe(member)}
    if member.about.part_constant is not None:
        part["constant"] = member.about.part_constant
    if member.is_list:
        part["list"] = True
        if member.struct is not None:
            part["pair"] = [inner.rest for inner in fields_of(member.struct)]
    if _choices(member):
        part["choices"] = _choices(member)
    return part
