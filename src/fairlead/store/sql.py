"""The SQL text that SQLite and PostgreSQL share, and where they differ (`SqlDialect`).

The stores call it; it opens nothing and runs nothing. Text for reading and writing records is constant per collection,
so that databases prepare each statement once. Ordering and comparing are the same on both: text by its bytes, letter
case ignored for ASCII only, null below every value.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import TypeVar, cast

import msgspec

from fairlead.store.base import Collection, Column, Comparison, Query, R, Value, Where
from fairlead.store.collections import COLLECTIONS

_MAX_INTEGER = 2**63 - 1
_SIZES = (64, 16, 4, 1)
#: A list of values up to this length is narrow.
_FEW = 16

T = TypeVar("T")
#: What a statement is given: a column's value, a record's data, or a list of values for PostgreSQL.
Parameter = Value | bytes | list[Value]


class SqlDialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where the SQL of the two databases differs."""

    #: The placeholder of a parameter.
    mark: str
    #: Type names for `text`, `integer`, `real` and `bytes`.
    types: dict[str, str]
    #: Templates with `{column}` and `{mark}`: unequal, where null is a value like any other; matching a pattern,
    #: ignoring ASCII letter case; equal to one of several.
    differs: str
    like_any_case: str
    one_of: str
    #: What follows a column to sort by, ascending and descending.
    nulls: tuple[str, str]
    #: Written before the key if another index should find the rows: SQLite has no statistics and would otherwise scan
    #: the whole table in order instead of sorting a few rows.
    steer: str
    #: Template with `{select}` and `{order}`: one of several queries to merge. PostgreSQL sorts the rows of all unless
    #: each is ordered; SQLite orders each by itself.
    merged: str
    #: Counts the tables of a name.
    has_table: str


SQLITE = SqlDialect(
    mark="?",
    types={"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB"},
    differs="{column} IS NOT {mark}",
    like_any_case="{column} LIKE {mark} ESCAPE '!'",
    one_of="{column} IN (SELECT value FROM json_each({mark}))",
    nulls=("", " DESC"),
    steer="+",
    merged="{select}",
    has_table="SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
)

POSTGRES = SqlDialect(
    mark="%s",
    types={"text": 'text COLLATE "C"', "integer": "bigint", "real": "double precision", "bytes": "bytea"},
    differs="{column} IS DISTINCT FROM {mark}",
    like_any_case='lower({column} COLLATE "C") LIKE lower({mark} COLLATE "C") ESCAPE \'!\'',
    one_of="{column} = ANY({mark})",
    nulls=(" NULLS FIRST", " DESC NULLS LAST"),
    steer="",
    merged="({select}{order})",
    has_table="SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = %s",
)


class Statements(msgspec.Struct, frozen=True):
    """The constant statements of one collection. Their values are in the order version, columns, data, key."""

    insert: str
    update: str
    delete: str
    get: str


@cache
def statements(name: str, dialect_mark: str) -> Statements:
    """The statements for the collection of that name, in the dialect with that placeholder."""
    collection = next(collection for collection in COLLECTIONS if collection.name == name)
    fields = [*([] if collection.numbered else ["version"]), *(column.name for column in collection.columns), "data"]
    table, key, mark = collection.name, collection.key, dialect_mark
    assignments = ", ".join(f"{field} = {mark}" for field in fields)
    marks = ", ".join([mark] * (len(fields) + 1))
    return Statements(
        insert=f"INSERT INTO {table} ({', '.join(fields)}, {key}) VALUES ({marks})",
        update=f"UPDATE {table} SET {assignments} WHERE {key} = {mark} AND version = {mark}",
        delete=f"DELETE FROM {table} WHERE {key} = {mark}",
        get=f"SELECT {key}, data FROM {table} WHERE {key} = {mark}",
    )


def render_find(query: Query[object], dialect: SqlDialect) -> tuple[str, list[Parameter]]:
    """The statement, with its values, that reads the matching records in order: key, data, and what it sorts by."""
    one, listed = _split(query)
    order = _render_order(one, dialect, is_steered=not listed and _is_narrow(query))
    condition, values = _render_condition(one, dialect)
    key = query.collection.key
    names = [key, "data", *(name for name, _ in query.order if len(listed) > 1 and name != key)]
    text = f"SELECT {', '.join(names)} FROM {query.collection.name}{condition}"
    if len(listed) > 1:
        text = " UNION ALL ".join([dialect.merged.format(select=text, order=order)] * len(listed))
        values = [value for first in listed for value in (first, *values[1:])]
    text += order
    if query.limit is not None or query.offset:
        text += f" LIMIT {dialect.mark} OFFSET {dialect.mark}"
        values += [_whole(_MAX_INTEGER if query.limit is None else query.limit), _whole(query.offset)]
    return text, values


def _render_order(query: Query[object], dialect: SqlDialect, *, is_steered: bool) -> str:
    key = query.collection.key
    steer = dialect.steer if is_steered else ""
    order = [
        steer + _column(query.collection, name).name + dialect.nulls[descending] for name, descending in query.order
    ]
    if all(name != key for name, _ in query.order):
        # In the direction of the column before, so that an index that ends in the key is read as it is, or backwards.
        tie = f"{key} DESC" if query.order and query.order[-1][1] else key
        order.append(dialect.steer + tie if _has_better_index(query) else tie)
    return f" ORDER BY {', '.join(order)}"


def _split(query: Query[object]) -> tuple[Query[object], list[Value]]:
    """The query for one value of a short list, as its first condition, and all these values; itself and none if no
    index has the rows of each value in order.

    Databases merge such queries and stop at the limit. For the list as a whole they would read and sort all its rows.
    """
    for where in query.where:
        if query.limit is not None and _is_short_list(where) and _has_index_in_order(query, where.column):
            column = _column(query.collection, where.column)
            given = dict.fromkeys(_value(column, value) for value in cast(Sequence[Value], where.value))
            values: list[Value] = [value for value in given if value is not None]
            if values:
                others = (each for each in query.where if each is not where)
                conditions = (Where(where.column, Comparison.EQUAL, values[0]), *others)
                return msgspec.structs.replace(query, where=conditions), values
    return query, []


def _has_index_in_order(query: Query[object], listed: str) -> bool:
    """Whether an index begins with that column and others that have one value, followed by the column to sort by."""
    if not query.order:
        return False
    equal = {each.column for each in query.where if each.comparison is Comparison.EQUAL and each.value is not None}
    for index in query.collection.indexes:
        before = index[: index.index(query.order[0][0])] if query.order[0][0] in index else ()
        if listed in before and equal.issuperset(set(before) - {listed}):
            return True
    return False


def _is_narrow(query: Query[object]) -> bool:
    """Whether a condition leaves so few rows that finding and sorting them is faster than walking all in order."""
    return any(_is_short_list(where) for where in query.where)


def _is_short_list(where: Where) -> bool:
    return where.comparison is Comparison.ONE_OF and isinstance(where.value, Sequence) and len(where.value) <= _FEW


def _names_few(query: Query[object], where: Where) -> bool:
    """Whether a condition finds a few rows by an index: those with one text, or one of several."""
    column = _column(query.collection, where.column)
    is_one = where.comparison is Comparison.EQUAL and isinstance(where.value, str)
    return column.indexed and (is_one or where.comparison is Comparison.ONE_OF)


def _has_better_index(query: Query[object]) -> bool:
    """Whether a condition uses an indexed column and no order is requested."""
    return not query.order and any(
        where.comparison in _BY_INDEX and where.value is not None and _column(query.collection, where.column).indexed
        for where in query.where
    )


def render_count(query: Query[object], dialect: SqlDialect) -> tuple[str, list[Parameter]]:
    condition, values = _render_condition(query, dialect)
    return f"SELECT count(*) FROM {query.collection.name}{condition}", values


def _render_condition(query: Query[object], dialect: SqlDialect) -> tuple[str, list[Parameter]]:
    parts: list[str] = []
    values: list[Parameter] = []
    names = not query.order and any(_names_few(query, where) for where in query.where)
    for where in query.where:
        text, value = _render_where(_column(query.collection, where.column), where, dialect)
        # Without statistics SQLite would prefer `is_active = 1`, which most rows may match.
        is_steered = names and not _names_few(query, where) and where.comparison is Comparison.EQUAL
        parts.append(dialect.steer + text if is_steered else text)
        values += value
    if query.search:
        pattern = "%" + _escape(query.search) + "%"
        columns = [_column(query.collection, name) for name in query.search_in]
        matches = [dialect.like_any_case.format(column=_as_text(column), mark=dialect.mark) for column in columns]
        parts.append(f"({' OR '.join(matches) or '1 = 0'})")
        values += [pattern] * len(matches)
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), values


_ORDERED = {
    Comparison.EQUAL: "=",
    Comparison.AT_MOST: "<=",
    Comparison.AT_LEAST: ">=",
    Comparison.BELOW: "<",
    Comparison.ABOVE: ">",
}
_BY_INDEX = frozenset({*_ORDERED, Comparison.ONE_OF})
_PATTERNS = {
    Comparison.CONTAINS: "%{}%",
    Comparison.LACKS: "%{}%",
    Comparison.STARTS: "{}%",
    Comparison.ENDS: "%{}",
}


def _render_where(column: Column[R], where: Where, dialect: SqlDialect) -> tuple[str, Sequence[Parameter]]:
    """One condition. Null differs from every value, so that `!=` and `!@` match it."""
    comparison, mark = where.comparison, dialect.mark
    if comparison is Comparison.IS_NULL or (comparison is Comparison.EQUAL and where.value is None):
        is_null = comparison is Comparison.EQUAL or bool(where.value)
        return f"{column.name} IS {'' if is_null else 'NOT '}NULL", ()
    if comparison is Comparison.ONE_OF:
        texts = [_value(column, value) for value in cast(Iterable[Value], where.value)]
        listed: Parameter = msgspec.json.encode(texts).decode() if dialect is SQLITE else texts
        return dialect.one_of.format(column=column.name, mark=mark), (listed,)
    wanted = cast(Value, where.value)
    if comparison is Comparison.NOT_EQUAL:
        return dialect.differs.format(column=column.name, mark=mark), (_value(column, wanted),)
    if comparison in _PATTERNS:
        pattern = _PATTERNS[comparison].format(_escape(str(wanted)))
        text = dialect.like_any_case.format(column=_as_text(column), mark=mark)
        return (f"({text}) IS NOT TRUE" if comparison is Comparison.LACKS else text), (pattern,)
    return f"{column.name} {_ORDERED[comparison]} {mark}", (_value(column, wanted),)


def _column(collection: Collection[R], name: str) -> Column[R]:
    """The column of that name. An unknown name is a mistake in our own code and must not reach the SQL text."""
    if name == collection.key:
        return Column(name, "integer" if collection.numbered else "text", attrgetter("id"))
    for column in collection.columns:
        if column.name == name:
            return column
    raise KeyError(f"{collection.name} has no column {name!r}")


def _as_text(column: Column[R]) -> str:
    return column.name if column.type == "text" else f"CAST({column.name} AS TEXT)"


def _value(column: Column[R], value: Value) -> Value:
    """The value in the column's type, because the databases convert types differently."""
    if value is None:
        return None
    if column.type == "text":
        return clean_text(str(value))
    number = float(value) if column.type == "real" or isinstance(value, float) else int(value)
    return _whole(number) if isinstance(number, int) else number


def _whole(number: int) -> int:
    """Clamped to what the databases can hold; nothing stored is beyond it."""
    return max(-_MAX_INTEGER, min(_MAX_INTEGER, number))


def clean_text(text: str) -> str:
    """The text without NUL characters, which PostgreSQL cannot store in a column; the record's data keeps them."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def _escape(text: str) -> str:
    """The text for LIKE with the escape character `!`, matching itself only."""
    return clean_text(text).replace("!", "!!").replace("%", "!%").replace("_", "!_")


def parts(items: list[T]) -> Iterator[list[T]]:
    """Split a list into parts of a few fixed sizes, so that only a few statements are prepared."""
    position = 0
    while position < len(items):
        size = next(size for size in _SIZES if size <= len(items) - position)
        yield items[position : position + size]
        position += size


@cache
def repeat_values(insert: str, times: int) -> str:
    """The insert statement for several rows."""
    head, values = insert.split(" VALUES ")
    return f"{head} VALUES {', '.join([values] * times)}"
