"""How the text of filters is read, and how records in memory are compared: as the stores do it."""

from typing import Any

import pytest

from fairlead.control.filters import Filter, FilterField, as_conditions, is_match, parse_filters, select
from fairlead.model.errors import Invalid
from fairlead.store.base import Comparison, Where

FIELDS: dict[str, FilterField[dict[str, Any]]] = {
    "name": FilterField(column="name", read=lambda record: record["name"]),
    "size": FilterField("number", "size", read=lambda record: record.get("size")),
    "at": FilterField("time", "at"),
    "kind": FilterField(column="kind", stored_words={"big": "Big One", "small": "Small One"}),
    "never": FilterField(),
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        ("name==a", [("==", "a")]),
        ("name==a,name!=b", [("==", "a"), ("!=", "b")]),
        ("name==a,b", [("==", "a,b")]),
        ("name==a,b,size>=2", [("==", "a,b"), (">=", 2.0)]),
        ("name==a==b", [("==", "a==b")]),
        ("name=^=@", [("=^", "=@")]),
        ("name==\n", [("==", "\n")]),
        ("size==-1e3", [("==", -1000.0)]),
        ("at<=1970-01-01T00:00:01Z", [("<=", 1000)]),
        ("at<=1970-01-01T00:00:01", [("<=", 1000)]),
        ("at==1970-01-01T01:00:00+01:00", [("==", 0)]),
    ],
)
def test_filters_are_read(text: str, want: list[tuple[str, Any]]) -> None:
    assert [(item.comparison.value, item.value) for item in parse_filters(text, FIELDS)] == want


@pytest.mark.parametrize(
    "text", ["name", "name==", "==a", ",", "colour==red", "size=@1", "size==big", "size==nan", "at==soon", "at=^1970"]
)
def test_an_invalid_filter_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse_filters(text, FIELDS)
    assert [issue.field for issue in refused.value.issues] == ["filterBy"]


def test_conditions_for_the_store() -> None:
    filters = parse_filters("name=^a,kind=@one,kind!=Big One,never!=x", FIELDS)
    assert as_conditions(filters) == (
        Where("name", Comparison.STARTS, "a"),
        Where("kind", Comparison.ONE_OF, ["big", "small"]),
        Where("kind", Comparison.ONE_OF, ["small"]),
    )
    assert as_conditions(parse_filters("never==x", FIELDS)) is None


@pytest.mark.parametrize(
    ("comparison", "found", "wanted", "want_match"),
    [
        ("==", "a", "a", True),
        ("==", "a", "A", False),
        ("=@", "Alpha", "LPH", True),
        ("!@", "Alpha", "LPH", False),
        ("=^", "Alpha", "al", True),
        ("=$", "Alpha", "HA", True),
        ("<=", 2, 2.0, True),
        (">=", 2, 2.5, False),
        ("==", None, "a", False),
        ("!=", None, "a", True),
        ("!@", None, "a", True),
        ("<=", None, 5, False),
    ],
)
def test_comparing(comparison: str, found: Any, wanted: Any, want_match: bool) -> None:
    assert is_match(Comparison(comparison), found, wanted) is want_match


def test_selecting_sorts_null_below_every_value_and_ends_in_the_id() -> None:
    records = [{"name": "c", "size": 1}, {"name": "b"}, {"name": "a", "size": 1}, {"name": "d", "size": 0}]

    def names(filters: tuple[Filter, ...], descending: bool) -> str:
        selected = select(records, filters, FIELDS["size"], descending, lambda record: record["name"])
        return "".join(record["name"] for record in selected)

    assert names((), False) == "bdac"
    assert names((), True) == "acdb"
    assert names(parse_filters("size>=1", FIELDS), False) == "ac"
