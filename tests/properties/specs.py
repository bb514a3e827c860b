"""Random specs of a kind, drawn from its declarations: every member left out, null or of its declared type."""

from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from fairlead.kinds.kind import Kind
from fairlead.model.spec.fields import Field, fields_of

#: What trips formats up: separators, quotes, things that look like other types, line breaks, wide characters.
AWKWARD = (
    "a",
    "plain words",
    "a,b",
    "a;b",
    "a:b",
    "a=b",
    "k=v,key=w",
    "it's",
    'say "hi"',
    "null",
    "~",
    "true",
    "0x10",
    "1e3",
    "12",
    " lead",
    "trail ",
    "line\nbreak",
    "tab\there",
    "# no comment",
    "- item",
    "{x: y}",
    "*star",
    "&and",
    "<<",
    "SECRET:a,b",
    "ünï→",
    "\u2028",
    "\x7f",
    "'",
    "--",
    "--flag=x",
    "",
)
QUANTITIES = ("1", "500m", "20M", "1Gi", "1.5G", "+3", "1e3", "007")
NAMES = ("a", "web", "run-1", "x0", "12")
ALPHABET = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


def texts(shape: inspect.StrType, is_quantity: bool) -> st.SearchStrategy[str]:
    if is_quantity:
        return st.sampled_from(QUANTITIES)
    if shape.pattern is not None:
        return st.one_of(st.sampled_from(NAMES), st.from_regex(shape.pattern)).filter(lambda text: _fits(shape, text))
    most = min(shape.max_length or 12, 12)
    return st.one_of(st.sampled_from(AWKWARD), st.text(ALPHABET, max_size=most)).filter(lambda text: _fits(shape, text))


def _fits(shape: inspect.StrType, text: str) -> bool:
    return (shape.min_length or 0) <= len(text) <= (shape.max_length or 10_000) and "\0" not in text


def numbers(shape: inspect.FloatType) -> st.SearchStrategy[float]:
    return st.one_of(
        st.sampled_from([0, 1, 2, 0.5, 0.25, 1.5]),
        st.floats(min_value=shape.ge or 0, max_value=1e9, allow_nan=False, allow_infinity=False),
        st.integers(min_value=0, max_value=1000),
    )


def values(shape: Any, field: Field) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        return objects(field.struct)
    if isinstance(shape, inspect.BoolType):
        return st.booleans()
    if isinstance(shape, inspect.IntType):
        return st.one_of(
            st.sampled_from([value for value in (0, 1, 2, 8080) if _within(shape, value)]),
            st.integers(min_value=shape.ge, max_value=shape.le),
        )
    if isinstance(shape, inspect.FloatType):
        return numbers(shape)
    if isinstance(shape, inspect.LiteralType):
        return st.sampled_from(shape.values)
    assert isinstance(shape, inspect.StrType)
    return texts(shape, field.is_quantity)


def _within(shape: inspect.IntType, value: int) -> bool:
    return (shape.ge is None or value >= shape.ge) and (shape.le is None or value <= shape.le)


def members(field: Field) -> st.SearchStrategy[Any]:
    if field.is_list:
        item = values(field.item, field)
        found: st.SearchStrategy[Any] = st.lists(
            st.one_of(item, st.none()) if field.item_nullable else item, max_size=3
        )
    else:
        found = values(field.shape, field)
    return st.one_of(found, st.none()) if field.nullable else found


def objects(struct: type) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of its members."""
    fields = fields_of(struct)
    required = {field.rest: members(field) for field in fields if field.required}
    optional = {field.rest: members(field) for field in fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional)


def specs(kind: Kind) -> st.SearchStrategy[dict[str, Any]]:
    return objects(kind.spec)
