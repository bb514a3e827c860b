"""Fills columns that were added to the layout after a row was written.

Columns are derived from records, so they can be filled at any time. The stores do it after an upgrade, and again when
no server of an older version can write any more: such a server neither fills nor updates the new columns.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from fairlead.store.base import Collection
from fairlead.store.changes import columns_of, read_record
from fairlead.store.migrations import (
    OLDEST_WRITER,
    AddColumns,
    Migration,
    MigrationConnection,
    collection_of,
    column_types,
    load_counter,
    record_counter,
)
from fairlead.store.sql import SqlDialect

#: Rows per transaction: writers wait for one of them.
_BATCH = 200


def needs_refill(connection: MigrationConnection, dialect: SqlDialect, migrations: Sequence[Migration]) -> bool:
    """Whether a version with an older layout may have written rows since all columns were filled."""
    return _load_oldest_writer(connection, dialect) < migrations[-1].number


def refill(
    connection: MigrationConnection,
    dialect: SqlDialect,
    migrations: Sequence[Migration],
    begin: Callable[[], AbstractContextManager[object]],
) -> None:
    """Fill the columns that older versions did not. `begin` opens a transaction in which nobody else writes."""
    for table, names in _added_since(migrations, _load_oldest_writer(connection, dialect)).items():
        _fill(connection, dialect, collection_of(table), names, begin)


def record_refilled(connection: MigrationConnection, dialect: SqlDialect, migrations: Sequence[Migration]) -> None:
    """Called if no older version can have written since the refill began."""
    record_counter(connection, dialect, OLDEST_WRITER, migrations[-1].number)


def older_layouts(connection: MigrationConnection, dialect: SqlDialect, migrations: Sequence[Migration]) -> range:
    """The layouts of versions that may have written rows which lack columns."""
    return range(_load_oldest_writer(connection, dialect), migrations[-1].number)


def _load_oldest_writer(connection: MigrationConnection, dialect: SqlDialect) -> int:
    return load_counter(connection, dialect, OLDEST_WRITER)


def _fill(
    connection: MigrationConnection,
    dialect: SqlDialect,
    collection: Collection[object],
    names: Sequence[str],
    begin: Callable[[], AbstractContextManager[object]],
) -> None:
    last: str | int = -1 if collection.numbered else ""
    while True:
        with begin():
            rows = _load_batch(connection, dialect, collection, last)
            if not rows:
                return
            _update(connection, dialect, collection, names, rows)
        last = rows[-1][0]


def _added_since(migrations: Sequence[Migration], layout: int) -> dict[str, list[str]]:
    """The columns by table that a version with that layout does not write."""
    added: dict[str, list[str]] = {}
    for step in _steps_since(migrations, layout):
        added.setdefault(step.table, []).extend(name for name, _ in column_types(step.columns))
    return added


def _steps_since(migrations: Sequence[Migration], layout: int) -> Iterator[AddColumns]:
    for migration in migrations:
        if migration.number > layout:
            yield from (step for step in migration.steps if isinstance(step, AddColumns) and step.columns)


def _load_batch(
    connection: MigrationConnection, dialect: SqlDialect, collection: Collection[object], last: str | int
) -> list[tuple[str | int, bytes]]:
    key = collection.key
    text = f"SELECT {key}, data FROM {collection.name} WHERE {key} > {dialect.mark} ORDER BY {key} LIMIT {_BATCH}"
    rows: list[tuple[str | int, bytes]] = connection.execute(text, (last,)).fetchall()
    return rows


def _update(
    connection: MigrationConnection,
    dialect: SqlDialect,
    collection: Collection[object],
    names: Sequence[str],
    rows: Sequence[tuple[str | int, bytes]],
) -> None:
    assignments = ", ".join(f"{name} = {dialect.mark}" for name in names)
    text = f"UPDATE {collection.name} SET {assignments} WHERE {collection.key} = {dialect.mark}"
    values = [(*columns_of(collection, read_record(collection, key, data), names), key) for key, data in rows]
    connection.cursor().executemany(text, values)
