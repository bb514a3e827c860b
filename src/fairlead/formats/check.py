"""Checks plain data against the declarations: finds every violation, with its path and what is allowed.

Called by the formats when a typed decode has failed: msgspec stops at the first violation, users want all of them.
"""

import operator
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

import msgspec
from msgspec import inspect

from fairlead.model.quantity import BadQuantity, from_recommended, parse
from fairlead.model.spec.fields import Field, fields_of
from fairlead.model.spec.rules import Violation

#: More would not be read; a request with a million mistakes is still answered quickly.
_MAX_VIOLATIONS = 200
_NAMES = {bool: "a boolean", int: "an integer", float: "a number", str: "a text", list: "a list", dict: "an object"}
_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("ge", "at least", operator.ge),
    ("gt", "above", operator.gt),
    ("le", "at most", operator.le),
    ("lt", "below", operator.lt),
)


class SchemaViolation(msgspec.Struct, frozen=True):
    path: str
    details: str
    #: What the older dialect does instead, if the value has the right type and only breaks a pattern.
    instead: str = ""


def find_violations(struct: type, plain: object, path: str) -> list[SchemaViolation]:
    """Every violation of the declarations of `struct` in `plain`."""
    violations: list[SchemaViolation] = []
    _object(struct, plain, path, violations)
    return violations[:_MAX_VIOLATIONS]


def normalize_sizes(struct: type, plain: object) -> None:
    """Write sizes in recommended units (`1GB`, `10MIB`) as quantities. Changes `plain`, which only the caller uses."""
    if not isinstance(plain, dict):
        return
    for field in fields_of(struct):
        value = plain.get(field.rest)
        if field.has_recommended_units and isinstance(value, str):
            plain[field.rest] = from_recommended(value)
        elif field.struct is not None:
            for item in value if isinstance(value, list) else [value]:
                normalize_sizes(field.struct, item)


def follows_from(rule: Violation, wrong: Iterable[str]) -> bool:
    """Whether a rule is broken only because a wrong member was removed: that member itself, one below it, or an object
    whose rule names it. Rules name the members that they depend on."""
    parent = rule.path.rpartition(".")[0]
    owners = (rule.path, parent, parent.rpartition(".")[0])
    for path in wrong:
        if rule.path == path or rule.path.startswith((f"{path}.", f"{path}[")):
            return True
        owner, _, member = path.rpartition(".")
        if owner in owners and re.search(rf"\b{re.escape(member.partition('[')[0])}\b", rule.details):
            return True
    return False


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def type_name(value: object) -> str:
    """The JSON type of a value, for messages."""
    return "null" if value is None else _NAMES.get(type(value), "something else")


def _object(struct: type, plain: object, path: str, violations: list[SchemaViolation]) -> None:
    if not isinstance(plain, dict):
        violations.append(SchemaViolation(path, f"is {type_name(plain)}; an object is expected"))
        return
    declared = {field.rest: field for field in fields_of(struct)}
    for name, value in plain.items():
        field = declared.get(name)
        if field is None:
            violations.append(SchemaViolation(join(path, name[:100]), _unknown(name, declared)))
        else:
            _member(field, value, join(path, name), violations)
        if len(violations) > _MAX_VIOLATIONS:
            return
    violations.extend(
        SchemaViolation(join(path, field.rest), "is missing; it is required")
        for field in declared.values()
        if field.required and field.rest not in plain
    )


def _unknown(name: str, declared: dict[str, Field]) -> str:
    near = get_close_matches(name, declared, 1, 0.7) or [other for other in declared if other.lower() == name.lower()]
    if near:
        return f"is not a known property; did you mean {near[0]}?"
    return f"is not a known property; the properties are {', '.join(declared)}"


def _member(field: Field, value: object, path: str, violations: list[SchemaViolation]) -> None:
    if value is None:
        if not field.nullable:
            violations.append(SchemaViolation(path, "is null, which is not allowed; leave it out or set a value"))
    elif not field.is_list:
        _single(field.shape, field, value, path, violations)
    elif not isinstance(value, list):
        violations.append(SchemaViolation(path, f"is {type_name(value)}; a list is expected"))
    else:
        _items(field, value, path, violations)


def _items(field: Field, value: list[object], path: str, violations: list[SchemaViolation]) -> None:
    max_items = field.shape.max_length if isinstance(field.shape, inspect.VarTupleType) else None
    if max_items is not None and len(value) > max_items:
        violations.append(SchemaViolation(path, f"has {len(value)} items; at most {max_items} are allowed"))
    for number, item in enumerate(value[:max_items]):
        item_path = f"{path}[{number}]"
        if item is not None:
            _single(field.item, field, item, item_path, violations)
        elif not field.item_nullable:
            violations.append(SchemaViolation(item_path, "is null, which is not allowed"))
        if len(violations) > _MAX_VIOLATIONS:
            return


def _single(shape: object, field: Field, value: object, path: str, violations: list[SchemaViolation]) -> None:
    if field.struct is not None:
        _object(field.struct, value, path, violations)
    elif isinstance(shape, inspect.LiteralType):
        if value not in shape.values or isinstance(value, bool):
            violations.append(SchemaViolation(path, _not_one_of(value, shape.values)))
    elif isinstance(shape, inspect.BoolType):
        if not isinstance(value, bool):
            _mistyped(value, "true or false", path, violations)
    elif isinstance(shape, inspect.IntType):
        if isinstance(value, int) and not isinstance(value, bool):
            _bounds(shape, value, path, violations)
        else:
            _mistyped(value, "an integer", path, violations)
    elif isinstance(shape, inspect.FloatType):
        if isinstance(value, int | float) and not isinstance(value, bool):
            _bounds(shape, value, path, violations)
        else:
            _mistyped(value, "a number", path, violations)
    elif isinstance(shape, inspect.StrType):
        if isinstance(value, str):
            _text(shape, field, value, path, violations)
        else:
            _mistyped(value, "a text", path, violations)


def _mistyped(value: object, expected: str, path: str, violations: list[SchemaViolation]) -> None:
    violations.append(SchemaViolation(path, f"is {type_name(value)}; {expected} is expected"))


def _not_one_of(value: object, allowed: tuple[object, ...]) -> str:
    names = [str(name) for name in allowed]
    shown = repr(value)[:80] if isinstance(value, str) else type_name(value)
    near = [name for name in names if name.lower() == str(value).lower()] or get_close_matches(str(value), names, 1)
    hint = f"did you mean {near[0]}? " if near else ""
    return (
        f"is {shown}; {hint}Allowed are {', '.join(names)}" if hint else f"is {shown}; allowed are {', '.join(names)}"
    )


def _bounds(
    shape: inspect.IntType | inspect.FloatType, value: float, path: str, violations: list[SchemaViolation]
) -> None:
    for name, comparison, holds in _BOUNDS:
        bound = getattr(shape, name)
        if bound is not None and not holds(value, bound):
            violations.append(SchemaViolation(path, f"is {value}; it must be {comparison} {bound}"))


def _text(shape: inspect.StrType, field: Field, value: str, path: str, violations: list[SchemaViolation]) -> None:
    if "\0" in value:
        violations.append(SchemaViolation(path, "contains a zero character, which is not allowed"))
    if shape.min_length is not None and len(value) < shape.min_length:
        needed = "1 character is" if shape.min_length == 1 else f"{shape.min_length} characters are"
        details = "is empty" if not value else f"is '{value}'"
        violations.append(SchemaViolation(path, f"{details}; at least {needed} needed"))
    if shape.max_length is not None and len(value) > shape.max_length:
        violations.append(SchemaViolation(path, f"has {len(value)} characters; at most {shape.max_length} are allowed"))
    elif shape.pattern is not None and re.search(shape.pattern, value) is None:
        violations.append(SchemaViolation(path, _unmatched(field, value), field.about.older))


def _unmatched(field: Field, value: str) -> str:
    """What a text should be that breaks its pattern, in words: nobody reads regular expressions in messages."""
    if field.is_quantity:
        try:
            parse(value)
        except BadQuantity as bad:
            meant = from_recommended(value)
            return f"'{value}' is not a quantity; did you mean {meant}?" if meant != value else str(bad)
    return f"is '{value[:80]}'; {field.pattern_rule}"
