"""Filters and sorting of lists: from `name=@lm,phase==Running` to conditions for the store or for records in memory.

`lists.py` calls this with the fields that each list declares.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec

from fairlead.model.clock import from_iso
from fairlead.model.errors import ComplianceIssue, Invalid
from fairlead.store.base import Comparison, Where

R = TypeVar("R")
#: What a field holds.
Value: TypeAlias = str | float | None

OPERATORS = {
    "==": Comparison.EQUAL,
    "!=": Comparison.NOT_EQUAL,
    "<=": Comparison.AT_MOST,
    ">=": Comparison.AT_LEAST,
    "=@": Comparison.CONTAINS,
    "!@": Comparison.LACKS,
    "=^": Comparison.STARTS,
    "=$": Comparison.ENDS,
}
_ORDERED = ("==", "!=", "<=", ">=")
_OPERATOR = r"(==|!=|<=|>=|=@|!@|=\^|=\$)"
_ITEM = re.compile(rf"([A-Za-z0-9_]+){_OPERATOR}(.+)", re.DOTALL)
#: A comma separates filters only if a field and an operator follow it, so that values may contain commas. Some clients
#: encode the separating commas and others do not, so the encoding does not help.
_SEPARATOR = re.compile(rf",(?=[A-Za-z0-9_]+{_OPERATOR})")


class FilterField(msgspec.Struct, Generic[R], frozen=True):
    """Something that a list can be filtered and sorted by."""

    #: `text`, `number` or `time`.
    type: str = "text"
    #: The store's column; empty for lists that are filtered in memory and for fields that are constant here.
    column: str = ""
    #: Reads it from a record in memory.
    read: Callable[[R], Value] | None = None
    #: Its value in every record, for fields of the contract that are never set here.
    constant: Value = None
    #: For a column with other words than the interface: the stored word → the interface's word.
    stored_words: Mapping[str, str] | None = None


class Filter(msgspec.Struct, Generic[R], frozen=True):
    field: FilterField[R]
    comparison: Comparison
    value: str | float


def parse_filters(text: str, fields: Mapping[str, FilterField[R]]) -> tuple[Filter[R], ...]:
    """The filters in `text`; raises `Invalid` with every part that is not a filter."""
    if not text:
        return ()
    filters: list[Filter[R]] = []
    issues: list[ComplianceIssue] = []
    # The look-ahead captures the operator, so split also returns it between the parts.
    for part in _SEPARATOR.split(text)[::2]:
        parsed = _parse(part, fields)
        if isinstance(parsed, Filter):
            filters.append(parsed)
        else:
            issues.append(ComplianceIssue("filterBy", parsed))
    if issues:
        raise Invalid("The filter is not valid", tuple(issues))
    return tuple(filters)


def _parse(part: str, fields: Mapping[str, FilterField[R]]) -> Filter[R] | str:
    match = _ITEM.fullmatch(part)
    if match is None:
        return f"{part[:100]!r} is not a filter; give a field, an operator ({' '.join(OPERATORS)}) and a value"
    name, operator, text = match.groups()
    field = fields.get(name)
    if field is None:
        return f"{name!r} is not a field to filter by; known are {', '.join(fields)}"
    if field.type != "text" and operator not in _ORDERED:
        return f"{name} does not support {operator}; use one of {', '.join(_ORDERED)}"
    try:
        value = _value(field, text)
    except (ValueError, OverflowError):
        kind = "an ISO 8601 date and time" if field.type == "time" else "a number"
        return f"{name} must be compared with {kind}, not with {text[:60]!r}"
    return Filter(field, OPERATORS[operator], value)


def _value(field: FilterField[R], text: str) -> str | float:
    if field.type == "time":
        return from_iso(text)
    if field.type == "number":
        number = float(text)
        if not math.isfinite(number):
            raise ValueError(text)
        return number
    return text


def as_conditions(filters: Iterable[Filter[R]]) -> tuple[Where, ...] | None:
    """The conditions for the store; None if a filter on a constant field excludes everything."""
    conditions: list[Where] = []
    for item in filters:
        field = item.field
        if not field.column:
            if not is_match(item.comparison, field.constant, item.value):
                return None
        elif field.stored_words is not None:
            stored_words = [
                own for own, word in field.stored_words.items() if is_match(item.comparison, word, item.value)
            ]
            conditions.append(Where(field.column, Comparison.ONE_OF, stored_words))
        else:
            conditions.append(Where(field.column, item.comparison, item.value))
    return tuple(conditions)


def is_match(comparison: Comparison, value: Value, wanted: str | float) -> bool:
    """Compares as the stores do: null differs from every value; `=@`, `!@`, `=^` and `=$` ignore case."""
    if value is None:
        return comparison in (Comparison.NOT_EQUAL, Comparison.LACKS)
    if comparison in (Comparison.EQUAL, Comparison.NOT_EQUAL):
        return (value == wanted) is (comparison is Comparison.EQUAL)
    if comparison in (Comparison.AT_MOST, Comparison.AT_LEAST):
        return _is_ordered(value, wanted) if comparison is Comparison.AT_MOST else _is_ordered(wanted, value)
    text, part = str(value).lower(), str(wanted).lower()
    if comparison is Comparison.STARTS:
        return text.startswith(part)
    if comparison is Comparison.ENDS:
        return text.endswith(part)
    return (part in text) is (comparison is Comparison.CONTAINS)


def _is_ordered(low: str | float, high: str | float) -> bool:
    """Whether `low` is at most `high`; both are numbers or both are strings."""
    if isinstance(low, str) or isinstance(high, str):
        return str(low) <= str(high)
    return low <= high


def select(
    records: Iterable[R],
    filters: Sequence[Filter[R]],
    sort: FilterField[R] | None,
    descending: bool,
    id_of: Callable[[R], str],
) -> list[R]:
    """The matching records in order; ties are broken by id, and null sorts below every value."""
    matching = [
        record for record in records if all(is_match(f.comparison, _read(f.field, record), f.value) for f in filters)
    ]
    matching.sort(key=id_of)
    if sort is not None:
        matching.sort(key=lambda record: _sort_key(_read(sort, record)), reverse=descending)
    return matching


def _read(field: FilterField[R], record: R) -> Value:
    return field.constant if field.read is None else field.read(record)


def _sort_key(value: Value) -> tuple[bool, str | float]:
    return (value is not None, 0 if value is None else value)
