"""The flags of a kind's spec on the command line, as plain data from the declarations.

A generator writes them into a file for the command line, which never loads the model.
"""

from msgspec import inspect

from fairlead.formats.flags.entry import FlagEntry, FlagPart
from fairlead.formats.rest.openapi import describe
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, FlagDeclaration, fields_of

#: The runai command cannot tell a time of 0 from one that is not given, and scripts rely on that.
_ZERO_IS_UNSET = " On the command line, 0 counts as not given."


def flag_table(kind: Kind) -> list[FlagEntry]:
    """Every flag of the kind."""
    return _flags_below(kind.spec, "")


def _flags_below(struct: type, path: str, roles: tuple[str, ...] = ()) -> list[FlagEntry]:
    """The flags of an object and of the objects inside; `roles` are those of the objects around it, the inner last."""
    entries: list[FlagEntry] = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        for flag in field.about.flags:
            if flag.form == "members":
                entries += _members(field, flag, here, roles)
            else:
                entries.append(_entry(field, flag, here, roles))
        if field.struct is not None and not field.is_list and not field.about.flags:
            inner = (*roles, field.about.role) if field.about.role else roles
            entries += _flags_below(field.struct, here, inner)
    return entries


def _members(field: Field, flag: FlagDeclaration, path: str, roles: tuple[str, ...]) -> list[FlagEntry]:
    """One flag for each member of an object, at any depth."""
    return [
        _entry(member, FlagDeclaration(name=f"{flag.name}-{member.about.part}"), f"{path}.{inner}", roles)
        for member, inner in _leaves(field.struct, "")
    ]


def _leaves(struct: type | None, path: str) -> list[tuple[Field, str]]:
    """The members of an item that have values, with their paths; a list of objects is one member."""
    leaves = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        if field.struct is not None and not field.is_list:
            leaves += _leaves(field.struct, here)
        else:
            leaves.append((field, here))
    return leaves


def _entry(field: Field, flag: FlagDeclaration, path: str, roles: tuple[str, ...]) -> FlagEntry:
    form = flag.form or _form(field)
    entry: FlagEntry = {
        "flag": _with_roles(flag.name, roles),
        "form": form,
        "type": _type(field),
        "path": path,
        "repeatable": form in ("list", "pair", "item"),
        "help": (flag.help or describe(field)) + (_ZERO_IS_UNSET if form == "duration" else ""),
    }
    aliases = [*flag.aliases, *(flag.role_aliases if roles else ())]
    choices = _choices(field) if form in ("value", "list") else []
    if flag.short and not roles:
        entry["short"] = flag.short
    if aliases:
        entry["aliases"] = [_with_roles(alias, roles) for alias in aliases]
    if choices:
        entry["choices"] = choices
    if field.about.default is not None:
        entry["default"] = field.about.default
    if flag.constant is not None:
        entry["constant"] = flag.constant
    if flag.preset:
        entry["preset"] = dict(flag.preset)
    if form == "pair":
        _add_pair(entry, field, flag)
    elif form in ("item", "object"):
        _add_parts(entry, field, flag)
    return entry


def _with_roles(name: str, roles: tuple[str, ...]) -> str:
    """A long name with the roles of its pods before it: `--master-image`."""
    return "--" + "-".join((*roles, name.removeprefix("--")))


def _form(field: Field) -> str:
    if field.is_list:
        return "item" if field.struct is not None else "list"
    return "switch" if isinstance(field.shape, inspect.BoolType) else "value"


def _type(field: Field) -> str:
    return "string" if field.struct is not None else field.type_word


def _choices(field: Field) -> list[str]:
    shape = field.item if field.is_list else field.shape
    return [str(value) for value in shape.values] if isinstance(shape, inspect.LiteralType) else []


def _add_pair(entry: FlagEntry, field: Field, flag: FlagDeclaration) -> None:
    """A third member comes after a comma and the name of its part: NAME=SECRET,key=KEY."""
    members = {path: member for member, path in _leaves(field.struct, "")}
    entry["pair"] = list(flag.pair)
    entry["pairTypes"] = [_type(members[path]) for path in flag.pair]
    if len(flag.pair) > 2:
        entry["separator"] = f",{members[flag.pair[2]].about.part}="


def _add_parts(entry: FlagEntry, field: Field, flag: FlagDeclaration) -> None:
    struct = field.struct
    members = fields_of(struct)
    wrap = ""
    if len(members) == 1 and members[0].is_list and members[0].struct is not None:
        # An item that is only a list: the value of the flag has its elements, separated by semicolons.
        struct, wrap = members[0].struct, members[0].rest
    leaves = [(member, path) for member, path in _leaves(struct, "") if not flag.parts or path in flag.parts]
    entry["parts"] = [_part(member, path) for member, path in leaves if path not in flag.preset]
    if wrap:
        entry["wrap"] = wrap


def _part(member: Field, path: str) -> FlagPart:
    part: FlagPart = {"name": member.about.part, "path": path, "type": _type(member), "help": describe(member)}
    if member.about.part_constant is not None:
        part["constant"] = member.about.part_constant
    if member.is_list:
        part["list"] = True
        if member.struct is not None:
            part["pair"] = [inner.rest for inner in fields_of(member.struct)]
    if _choices(member):
        part["choices"] = _choices(member)
    return part
