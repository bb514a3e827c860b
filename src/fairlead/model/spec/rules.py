"""Checks a spec against the rules that the contract states in prose and no bound on one member can express.

`admission` checks every spec with it, and `formats` adds the violations to its own, so that a caller gets all of them
at once. The walk is here, the rules of single objects are in `object_rules.py`. It knows no kind.
"""

from collections.abc import Collection
from difflib import get_close_matches
from functools import cache
from typing import Protocol

import msgspec
from msgspec import UNSET

from fairlead.model.command_words import split_words
from fairlead.model.priority import CATEGORIES, PRIORITIES
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.canonical import items
from fairlead.model.spec.fields import Field, Maybe, Struct, fields_of, is_given
from fairlead.model.spec.object_rules import RULES, clean_path, mount_paths
from fairlead.model.syntax import flaw_of

#: Bytes of a user's annotations. Kubernetes keeps 256 KiB of an object's, of which some are the server's.
MAX_ANNOTATIONS = 240_000
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the place itself


class Violation(msgspec.Struct, frozen=True):
    #: The dotted path from where the check began; items of a list by position.
    path: str
    details: str
    #: What happens instead if the submission is in the older dialect; empty if it is refused in every dialect.
    instead: str = ""


class SubmissionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of this installation."""

    completions: int = 100_000


def violations(spec: msgspec.Struct, path: str) -> list[Violation]:
    """Every broken rule in the struct and below it; excluded items are not checked."""
    broken: list[Violation] = []
    _check(spec, path, broken, is_item=False)
    return broken


@cache
def _plan(struct: Struct) -> tuple[Field, ...]:
    """The members that there is something to check of."""
    return tuple(
        field
        for field in fields_of(struct)
        if field.about.mandatory or field.is_quantity or field.struct is not None or field.about.syntax is not None
    )


def _check(struct: msgspec.Struct, path: str, broken: list[Violation], is_item: bool) -> None:
    cls = struct.__class__
    for field in _plan(cls):
        value = getattr(struct, field.attribute)
        field_path = f"{path}.{field.rest}"
        if value is UNSET or value is None:
            if field.about.mandatory:
                instead = "the item is left out" if is_item else ""
                broken.append(Violation(field_path, "is missing; it must be given", instead))
        elif field.is_list and field.struct is not None:
            _check_items(field, value, field_path, broken)
        elif field.struct is not None:
            _check(value, field_path, broken, is_item=False)
        elif field.is_quantity:
            _check_quantity(field, value, field_path, broken)
        elif field.about.syntax is not None:
            texts = [(field_path, value)]
            if field.is_list:
                texts = [(f"{field_path}[{number}]", text) for number, text in enumerate(value) if text is not None]
            flaws = [(text_path, flaw_of(field.about.syntax, text)) for text_path, text in texts]
            broken.extend(Violation(text_path, flaw, field.about.older) for text_path, flaw in flaws if flaw)
    rule = RULES.get(cls)
    if rule is not None:
        broken.extend(
            Violation(f"{path}.{name}" if name else path, details, instead) for name, details, instead in rule(struct)
        )


def _check_items(field: Field, items: tuple[msgspec.Struct | None, ...], path: str, broken: list[Violation]) -> None:
    """The items that count; no two of them may have the same key, because the later would replace the earlier."""
    key = next((member for member in fields_of(field.struct) if member.rest == field.about.key), None)
    known: dict[object, int] = {}
    for number, item in enumerate(items):
        if item is None or getattr(item, "exclude", None) is True:
            continue
        item_path = f"{path}[{number}]"
        name = getattr(item, key.attribute) if key is not None else None
        if key is not None and is_given(name) and known.setdefault(name, number) != number:
            details = f"is '{str(name)[:80]}', the same as item {known[name]}; each item needs its own {key.rest}"
            broken.append(Violation(f"{item_path}.{key.rest}", details))
        _check(item, item_path, broken, is_item=True)
    for together in field.about.unique:
        _check_unique(together.split("+"), items, path, broken)


def _check_unique(
    members: list[str], items: tuple[msgspec.Struct | None, ...], path: str, broken: list[Violation]
) -> None:
    """Items that ask for the same, which only one of them can have."""
    known: dict[tuple[object, ...], int] = {}
    for number, item in enumerate(items):
        if item is None or getattr(item, "exclude", None) is True:
            continue
        names = {field.rest: field.attribute for field in fields_of(item.__class__)}
        values = tuple(getattr(item, names[member]) for member in members)
        if all(is_given(value) and value != "" for value in values) and known.setdefault(values, number) != number:
            shown = " and ".join(f"{member} {str(value)[:80]}" for member, value in zip(members, values, strict=True))
            details = f"is the same as in item {known[values]} ({shown}); only one item can have it"
            broken.append(Violation(f"{path}[{number}].{members[0]}", details))


def _check_quantity(field: Field, value: str, path: str, broken: list[Violation]) -> None:
    try:
        amount = parse(value)
    except BadQuantity as bad:
        broken.append(Violation(path, str(bad)))
        return
    minimum = field.min_bytes
    if minimum is not None and (amount < minimum or 0 < amount < 1):
        hint = f"; did you mean {value[:-1]}M?" if value.endswith("m") else ", such as 500M or 10Gi"
        broken.append(Violation(path, f"is '{value}', less than one byte; give an amount of bytes{hint}"))


def pod_violations(spec: msgspec.Struct, path: str) -> list[Violation]:
    """Between the members of one pod's spec: commands that cannot be split into words, more annotations than an object
    can have, and a volume where shared memory is mounted."""
    broken = []
    for rest in ("command", "args"):
        text = getattr(spec, rest)
        if isinstance(text, str):
            try:
                split_words(text)
            except ValueError:
                broken.append(Violation(f"{path}.{rest}", "has an unclosed quote; quote it as for a shell"))
    size = sum(len(f"{one.name}{one.value or ''}".encode()) for one in items(getattr(spec, "annotations", UNSET)))
    if size > MAX_ANNOTATIONS:
        broken.append(
            Violation(f"{path}.annotations", f"has {size} bytes in all; at most {MAX_ANNOTATIONS} can be kept")
        )
    compute, storage = (getattr(spec, name, UNSET) for name in ("compute", "storage"))
    if is_given(compute) and compute.large_shm_request is True and is_given(storage):
        details = f"is {SHARED_MEMORY}, where largeShmRequest mounts memory; leave one of them out"
        at_shared_memory = (each for each in mount_paths(storage) if clean_path(each[2]) == SHARED_MEMORY)
        broken.extend(Violation(f"{path}.storage.{volume}.{member}", details) for volume, member, _ in at_shared_memory)
    return broken


class _WithClasses(Protocol):
    @property
    def priority_class(self) -> Maybe[str]: ...

    @property
    def category(self) -> Maybe[str]: ...


def class_violations(spec: _WithClasses, path: str) -> list[Violation]:
    """A priority class or a category that does not exist."""
    return [
        *_unknown_name(spec.priority_class, PRIORITIES, f"{path}.priorityClass", "priority class"),
        *_unknown_name(spec.category, CATEGORIES, f"{path}.category", "category"),
    ]


def _unknown_name(name: Maybe[str], known: Collection[str], path: str, noun: str) -> list[Violation]:
    if not is_given(name) or name in known:
        return []
    near = get_close_matches(name, known, 1) or [one for one in known if one.lower() == name.lower()]
    hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
    return [Violation(path, f"is '{name[:80]}', which is not a {noun}{hint}")]
