"""A spec in canonical plain form: only members that count, with the defaults of its objects, keyed by REST names.

Kinds build the remaining fields of pods with it. Nulls, excluded items and items without a mandatory member are left
out; admission refuses the latter in every dialect but the older one.
"""

from functools import cache

import msgspec
from msgspec import UNSET

from fairlead.model.spec.fields import Field, Json, Maybe, S, Struct, fields_of

_SCALAR, _STRUCT, _SCALARS, _STRUCTS = range(4)


@cache
def _plan(struct: Struct, without: frozenset[str] = frozenset()) -> tuple[tuple[str, str, int, Json, bool], ...]:
    """Per member but `exclude`: attribute, REST name, how to treat it, default, mandatory."""
    return tuple(
        (field.attribute, field.rest, _treatment(field), field.about.default, field.about.mandatory)
        for field in fields_of(struct)
        if field.attribute != "exclude" and field.attribute not in without
    )


def _treatment(field: Field) -> int:
    if field.is_list:
        return _STRUCTS if field.struct is not None else _SCALARS
    return _STRUCT if field.struct is not None else _SCALAR


def canonical(spec: msgspec.Struct, without: frozenset[str] = frozenset()) -> dict[str, Json]:
    """The plain form of a spec struct; `without` leaves out attributes at the top."""
    plain: dict[str, Json] = {}
    for attribute, rest, treatment, default, _ in _plan(spec.__class__, without):
        value = getattr(spec, attribute)
        if value is UNSET or value is None:
            if default is not None:
                plain[rest] = default
        elif treatment == _SCALAR:
            plain[rest] = value
        elif treatment == _STRUCT:
            plain[rest] = canonical(value)
        elif treatment == _SCALARS:
            plain[rest] = [item for item in value if item is not None]
        else:
            plain[rest] = [canonical(item) for item in value if item is not None and counts(item)]
    return plain


def counts(item: msgspec.Struct) -> bool:
    """Whether an item of a list counts: it is not excluded, and no mandatory member is missing."""
    if getattr(item, "exclude", UNSET) is True:
        return False
    for attribute, _, _, _, mandatory in _plan(item.__class__):
        if mandatory and getattr(item, attribute) in (UNSET, None):
            return False
    return True


def items(value: Maybe[tuple[S | None, ...]]) -> list[S]:
    """The items of a list that count; none if the list was left out or null."""
    if value is UNSET or value is None:
        return []
    return [item for item in value if item is not None and counts(item)]


def drop_null_choices(struct: Struct, plain: dict[str, Json]) -> dict[str, Json]:
    """A plain spec without nulls of members that are one of several words. The contract lists those words without
    null, so that a strict client could not read them back; null means the same as leaving the member out."""
    members: dict[str, Json] = {}
    for field in fields_of(struct):
        if field.rest not in plain:
            continue
        value = plain[field.rest]
        if value is None and isinstance(field.shape, msgspec.inspect.LiteralType):
            continue
        if field.struct is not None and isinstance(value, dict):
            value = drop_null_choices(field.struct, value)
        elif field.struct is not None and isinstance(value, list):
            value = [drop_null_choices(field.struct, item) if isinstance(item, dict) else item for item in value]
        members[field.rest] = value
    return members
