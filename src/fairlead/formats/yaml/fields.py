"""The fields of workload YAML, computed from the declarations: name, kinds, form, type, and REST path.

Reading, writing, explaining and the custom resources' schemas walk this. Fields that differ
from REST are in `extra_fields.py`; `conversions.py` and `kind_conversions.py` implement them.
"""

from collections.abc import Iterable
from functools import cache

import msgspec
from msgspec import inspect

from fairlead.formats.yaml.extra_fields import (
    CHOICE_ALIASES,
    CHOICES,
    DEFAULTS,
    EXTRAS,
    ITEMS,
    MAP,
    MEMBER_CHOICES,
    MEMBER_DEFAULTS,
    MORE_MEMBERS,
    PAIRED,
    PLAIN,
    SETS,
    TEXTS,
    VALUE,
    YamlField,
)
from fairlead.kinds import KINDS
from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, fields_of

__all__ = [
    "ITEMS",
    "LETTERS",
    "MAP",
    "PLAIN",
    "VALUE",
    "YamlField",
    "kind_names",
    "kinds_with",
    "resources",
    "spellings",
    "yaml_fields",
]

#: What the letters of `FieldInfo.yaml_kinds` stand for if none of our kinds has them.
LETTERS = {
    "W": "interactive workloads (workspaces)",
    "D": "distributed workloads",
    "I": "inference workloads",
    "J": "the legacy Job",
}
#: For items that are not objects in REST: the member with the value.
_ITEM_MEMBERS = {"capabilities": "capability"}


@cache
def yaml_fields(kind: Kind) -> dict[str, YamlField]:
    """Every field of the kind's YAML by its name, in alphabetical order; those of other letters too."""
    fields = [*EXTRAS, *_walk(kind.spec, "")]
    return {field.name: field for field in sorted(fields, key=lambda field: field.name.lower())}


def kinds_with(name: str) -> str:
    """The letters of the kinds that have a field with that name, in any spelling; empty if none has."""
    fields = [matching for kind in KINDS.values() if kind.letter and (matching := spellings(kind).get(name.lower()))]
    return "".join(letter for letter in "WTDIJ" if any(letter in field.kinds for field in fields))


@cache
def spellings(kind: Kind) -> dict[str, YamlField]:
    """Every accepted spelling in lower case; users write `hostipc` and `Parallelism` too."""
    return _spellings(yaml_fields(kind).values())


def _spellings(fields: Iterable[YamlField]) -> dict[str, YamlField]:
    return {name.lower(): field for field in fields for name in (field.name, *field.also)}


@cache
def resources() -> dict[str, tuple[Kind, str]]:
    """Every kind of custom resource that is read, with our kind and its letter."""
    by_resource = {kind.resource: (kind, kind.letter) for kind in KINDS.values() if kind.letter}
    for kind in KINDS.values():
        by_resource.update({name: (kind, letter) for name, letter in kind.older_resources})
    return by_resource


def kind_names(letters: str) -> str:
    """The names of the kinds that the letters mean; our own kinds by the names of their resources."""
    here = {kind.letter: kind.resource for kind in KINDS.values()}
    return ", ".join(here.get(letter) or LETTERS[letter] for letter in letters)


def _walk(struct: object, path: str) -> list[YamlField]:
    fields = []
    for field in fields_of(struct):
        here = f"{path}.{field.rest}" if path else field.rest
        if field.about.yaml:
            fields.append(_field(field, here))
        if field.struct is not None and not field.is_list and here != "probes.readiness" and not field.about.role:
            fields += _walk(field.struct, here)
    return fields


def _field(field: Field, path: str) -> YamlField:
    about = field.about
    if path in TEXTS:
        about = msgspec.structs.replace(about, text=TEXTS[path], mandatory=False, unit="")
    if path in DEFAULTS:
        about = msgspec.structs.replace(about, default_text=DEFAULTS[path])
    shape = field.item if field.is_list else field.shape
    members: tuple[YamlField, ...] = ()
    form = VALUE
    key = ""
    if field.is_list and field.struct is not None:
        members = _members(about.yaml, field.struct)
        form = ITEMS if members else MAP
        member_paths = {member.path for member in members}
        key = about.key if about.key not in member_paths else ""
    elif about.yaml in _ITEM_MEMBERS:
        form = ITEMS
    return YamlField(
        name=about.yaml,
        also=about.yaml_also,
        kinds=about.yaml_kinds,
        form=form,
        type=PAIRED.get(path) or _type(field),
        choices=CHOICES.get(path) or (tuple(map(str, shape.values)) if isinstance(shape, inspect.LiteralType) else ()),
        choice_aliases=CHOICE_ALIASES.get(path, {}),
        meant={word.lower(): choice for word, choice in CHOICE_ALIASES.get(path, {}).items()},
        path=path,
        sets=SETS.get(path, ()),
        about=about,
        members=members,
        spelt=_spellings(members),
        key=key,
        member=_ITEM_MEMBERS.get(about.yaml, ""),
        is_paired=path in PAIRED,
        schema=field.schema,
        shape=shape,
    )


def _members(name: str, struct: object) -> tuple[YamlField, ...]:
    """The members of the items of a list: those of REST, and those that only YAML has."""
    members = []
    for member in _walk(struct, ""):
        choices = member.choices + MEMBER_CHOICES.get((name, member.name), ())
        about, default = member.about, MEMBER_DEFAULTS.get((name, member.name))
        if default:
            about = msgspec.structs.replace(about, mandatory=False, default_text=default)
        members.append(msgspec.structs.replace(member, choices=choices, about=about))
    return (*members, *MORE_MEMBERS.get(name, ())) if members else ()


def _type(field: Field) -> str:
    if field.is_list:
        return "list"
    return "quantity" if field.is_quantity else field.type_word
