"""The migrations of the database's layout, and how an older database is upgraded.

The stores call `upgrade` at every start, on a connection that holds an exclusive write lock. A released migration is
never edited: a new column is a new migration. Columns are derived from records, so a step only names the columns;
`refill.py` fills them from the stored records.

During a rolling upgrade, servers of the previous version use the new layout; a migration says if they cannot.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from fairlead.model.errors import Refused
from fairlead.store.base import Collection
from fairlead.store.collections import COLLECTIONS
from fairlead.store.sql import SqlDialect


class MigrationConnection(Protocol):
    """What sqlite3 and psycopg connections have in common."""

    def execute(self, query: Any, params: Any = ..., /) -> Any: ...

    def cursor(self) -> Any: ...


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A new table. Columns are written `name:type`; an index or a unique group is column names separated by spaces."""

    name: str
    columns: str
    key: str = "id"
    numbered: bool = False
    indexed: tuple[str, ...] = ()
    #: Indexes of columns that are mostly null and looked up by value; they leave nulls out.
    sparse: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()


class AddColumns(msgspec.Struct, frozen=True, kw_only=True):
    """New columns of an existing table, filled from its records; or only indexes of columns that it has."""

    table: str
    columns: str = ""
    indexed: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()
    #: Indexes that another one replaces.
    dropped: tuple[str, ...] = ()


Step = Table | AddColumns


class Migration(msgspec.Struct, frozen=True):
    number: int
    steps: tuple[Step, ...]
    #: Whether the version before it can run on its layout. False if records hold what that version cannot read or would
    #: lose with harm (a new value of an enum), or if rows that it writes break this version until they are refilled.
    admits_previous: bool = True


#: Columns of all records that workloads refer to by name, as of migration 2.
_KEPT = "name:text place:text created_by:text created_at:integer updated_at:integer"

MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        1,
        (
            Table(
                name="workloads",
                columns="type:text name:text cluster_id:text project_id:text project_name:text department_id:text "
                "department_name:text created_at:integer deleted_at:integer submitted_by:text phase:text "
                "completed_at:integer nodepool:text allocated_gpu:real phase_updated_at:integer category:text "
                "total_pending_time_seconds:integer total_running_time_seconds:integer priority:integer "
                "priority_class_name:text is_active:integer delete_at:integer live_name:text",
                indexed=("created_at", "is_active"),
                sparse=("deleted_at", "delete_at"),
                unique=("project_id live_name",),
            ),
            Table(
                name="pods",
                columns="workload_id:text project_id:text name:text phase:text node:text node_pool:text run:integer "
                "created_at:integer completed_at:integer is_active:integer",
                indexed=("workload_id", "is_active"),
            ),
            Table(name="clusters", columns="name:text created_at:integer", unique=("name",)),
            Table(
                name="departments",
                columns="name:text cluster_id:text created_at:integer",
                unique=("cluster_id name",),
            ),
            Table(
                name="projects",
                columns="name:text cluster_id:text department_id:text department_name:text created_at:integer",
                unique=("cluster_id name",),
            ),
            Table(
                name="node_pools",
                columns="name:text cluster_id:text created_at:integer updated_at:integer",
                unique=("cluster_id name",),
            ),
            Table(name="nodes", columns="name:text ready:integer gpu_type:text created_at:integer", unique=("name",)),
            Table(
                name="users",
                columns="type:text name:text created_by:text created_at:integer last_login_at:integer",
                unique=("type name",),
            ),
            Table(
                name="events",
                columns="at:integer subject:text subject_id:text project_id:text",
                key="revision",
                numbered=True,
                indexed=("subject_id",),
            ),
            Table(
                name="audit",
                columns="at:integer caller:text operation:text subject:text subject_id:text",
                key="number",
                numbered=True,
            ),
            Table(name="leases", columns="holder:text expires_at:integer"),
        ),
    ),
    Migration(
        2,
        (
            AddColumns(table="workloads", columns="waits_for:text", sparse=("waits_for",)),
            Table(name="secrets", columns=f"{_KEPT} type:text asset_id:text", unique=("place name",)),
            Table(name="config_maps", columns=_KEPT, unique=("place name",)),
            Table(name="claims", columns=f"{_KEPT} asset_id:text", unique=("place name",)),
            Table(name="data_volumes", columns=f"{_KEPT} project_id:text", unique=("name",)),
            Table(name="assets", columns=f"{_KEPT} kind:text", unique=("kind place name",)),
            Table(
                name="templates",
                columns=f"{_KEPT} updated_by:text kind:text scope_type:text scope_id:text",
                unique=("place name",),
            ),
            Table(name="access_rules", columns="subject_id:text subject_type:text created_at:integer"),
        ),
    ),
    Migration(
        3,
        (
            AddColumns(table="pods", columns="revision_id:text"),
            Table(
                name="revisions",
                columns="workload_id:text number:integer created_at:integer",
                indexed=("workload_id",),
            ),
        ),
    ),
    Migration(4, (AddColumns(table="workloads", columns="distributed_framework:text"),)),
    Migration(5, (Table(name="policies", columns=f"{_KEPT} type:text", unique=("type place",)),)),
    Migration(
        6,
        (
            Table(
                name="caller_environments",
                columns="workload_id:text created_by:text created_at:integer",
                indexed=("workload_id",),
            ),
        ),
    ),
    Migration(
        7,
        (
            AddColumns(
                table="audit",
                columns="caller_type:text action:text subject_name:text result:text address:text method:text url:text",
                indexed=("at",),
            ),
        ),
    ),
    Migration(8, (AddColumns(table="workloads", columns="is_listed:integer", indexed=("is_listed",)),)),
    # A page of the list: of all workloads by age, and of those of a few projects.
    Migration(9, (AddColumns(table="workloads", indexed=("is_listed created_at", "is_listed project_id created_at")),)),
    # Versions before it do not know the counters of a rolling upgrade.
    Migration(10, (), admits_previous=False),
    Migration(
        11,
        (
            Table(name="usage", columns="until:integer since:integer project_id:text", indexed=("until",)),
            Table(name="supply", columns="until:integer type:text subject:text"),
        ),
    ),
    Migration(
        12, (Table(name="provider_sessions", columns="user_id:text expires_at:integer", indexed=("expires_at",)),)
    ),
    Migration(13, (Table(name="cycles", columns=""),)),
    Migration(
        14,
        (
            Table(name="notification_rules", columns="owner_id:text project_id:text created_at:integer"),
            Table(
                name="deliveries",
                columns="owner_id:text created_at:integer next_at:integer has_failed:integer",
                indexed=("created_at",),
                sparse=("next_at",),
            ),
            Table(name="notification_positions", columns=""),
        ),
    ),
    # With the id, so that a page of a few projects needs no sorting.
    Migration(
        15,
        (
            AddColumns(
                table="workloads",
                indexed=("is_listed project_id created_at id",),
                dropped=("is_listed project_id created_at",),
            ),
        ),
    ),
    Migration(16, (AddColumns(table="audit", columns="cluster_id:text"),)),
)

#: The table of the layout's version, the newest revision and the newest audit number; and for rolling upgrades of the
#: oldest layout whose version can run on the database, and the oldest whose version may have written rows since
#: all columns were filled.
COUNTERS = "counters"
OLDEST_READER, OLDEST_WRITER = "oldest_reader", "oldest_writer"
_COUNTED = ("layout", "revision", "audit", OLDEST_READER, OLDEST_WRITER)


def upgrade(
    connection: MigrationConnection,
    dialect: SqlDialect,
    migrations: Sequence[Migration],
    backup: Callable[[int], str],
) -> None:
    """Upgrade the database to the newest layout inside the caller's transaction; new columns are not filled yet.

    An older database is first copied by `backup`, which is given its version. A newer one is refused unchanged, unless
    it admits this version.
    """
    version, newest = load_version(connection, dialect), migrations[-1].number
    if version > newest:
        _check_admitted(connection, dialect, version, newest)
    if version >= newest:
        connection.execute(render_record_writer(dialect), (newest, newest))
        return
    if version:
        backup(version)
    else:
        connection.execute(
            f"CREATE TABLE {COUNTERS} (name {dialect.types['text']} PRIMARY KEY NOT NULL, "
            f"value {dialect.types['integer']} NOT NULL)"
        )
    for name in _COUNTED:
        connection.execute(f"INSERT INTO {COUNTERS} (name, value) VALUES ('{name}', 0) ON CONFLICT DO NOTHING")
    for migration in migrations:
        if migration.number > version:
            for step in migration.steps:
                _apply(connection, dialect, step)
    oldest_reader = max((one.number for one in migrations if not one.admits_previous), default=1)
    # A server of the previous version may be running, and write rows without the new columns.
    oldest_writer = load_counter(connection, dialect, OLDEST_WRITER) or version or newest
    for name, value in (("layout", newest), (OLDEST_READER, oldest_reader), (OLDEST_WRITER, oldest_writer)):
        record_counter(connection, dialect, name, value)


def _check_admitted(connection: MigrationConnection, dialect: SqlDialect, version: int, newest: int) -> None:
    oldest = load_oldest_reader(connection, dialect)
    if oldest > newest:
        raise Refused(
            f"The database was written by a newer Fairlead: it has layout {version}, this version knows layouts up to "
            f"{newest}. Start the newer version, or restore the backup that was made before the upgrade."
        )


def breaks_previous(migrations: Sequence[Migration], version: int) -> bool:
    """Whether servers of that layout cannot go on after an upgrade."""
    return version > 0 and any(one.number > version and not one.admits_previous for one in migrations)


def render_record_writer(dialect: SqlDialect) -> str:
    """Notes that a version is about to write, given twice the newest layout that it knows."""
    return f"UPDATE {COUNTERS} SET value = {dialect.mark} WHERE name = '{OLDEST_WRITER}' AND value > {dialect.mark}"


def load_oldest_reader(connection: MigrationConnection, dialect: SqlDialect) -> int:
    """The oldest layout whose version can run on this database."""
    return load_counter(connection, dialect, OLDEST_READER) or load_version(connection, dialect)


def load_counter(connection: MigrationConnection, dialect: SqlDialect, name: str) -> int:
    """0 if the database does not have it."""
    if not connection.execute(dialect.has_table, (COUNTERS,)).fetchone()[0]:
        return 0
    row = connection.execute(f"SELECT value FROM {COUNTERS} WHERE name = {dialect.mark}", (name,)).fetchone()
    return int(row[0]) if row else 0


def record_counter(connection: MigrationConnection, dialect: SqlDialect, name: str, value: int) -> None:
    text = f"UPDATE {COUNTERS} SET value = {dialect.mark} WHERE name = {dialect.mark}"
    connection.execute(text, (value, name))


def load_version(connection: MigrationConnection, dialect: SqlDialect) -> int:
    """The layout's version; 0 if the database has no Fairlead tables."""
    return load_counter(connection, dialect, "layout")


def tables(migrations: Sequence[Migration]) -> tuple[str, ...]:
    """All tables that those migrations create, the counters last."""
    names = [step.name for migration in migrations for step in migration.steps if isinstance(step, Table)]
    return (*names, COUNTERS)


def _apply(connection: MigrationConnection, dialect: SqlDialect, step: Step) -> None:
    if isinstance(step, Table):
        for statement in _render_table(step, dialect):
            connection.execute(statement)
        return
    derived = {column.name for column in collection_of(step.table).columns}
    for name, type in column_types(step.columns):
        if name not in derived:
            raise KeyError(f"{step.table} has no column {name}")
        connection.execute(f"ALTER TABLE {step.table} ADD COLUMN {name} {dialect.types[type]}")
    for indexed in step.indexed:
        connection.execute(_render_index(step.table, indexed, dialect))
    for column in step.sparse:
        connection.execute(f"{_render_index(step.table, column, dialect)} WHERE {column} IS NOT NULL")
    for indexed in step.dropped:
        connection.execute(f"DROP INDEX {_index_name(step.table, indexed)}")


def _render_table(table: Table, dialect: SqlDialect) -> Iterator[str]:
    types = dialect.types
    key = "integer" if table.numbered else "text"
    lines = [f"{table.key} {types[key]} PRIMARY KEY NOT NULL"]
    if not table.numbered:
        lines.append(f"version {types['integer']} NOT NULL")
    lines += [f"{name} {types[type]}" for name, type in column_types(table.columns)]
    lines.append(f"data {types['bytes']} NOT NULL")
    lines += [f"UNIQUE ({', '.join(group.split())})" for group in table.unique]
    yield f"CREATE TABLE {table.name} ({', '.join(lines)})"
    for indexed in table.indexed:
        yield _render_index(table.name, indexed, dialect)
    for column in table.sparse:
        yield f"{_render_index(table.name, column, dialect)} WHERE {column} IS NOT NULL"


def _render_index(table: str, indexed: str, dialect: SqlDialect) -> str:
    names = indexed.split()
    # An id is never null, and queries sort by it without saying where nulls would be.
    columns = ", ".join(name if name == "id" else name + dialect.nulls[False] for name in names)
    return f"CREATE INDEX {_index_name(table, indexed)} ON {table} ({columns})"


def _index_name(table: str, indexed: str) -> str:
    return f"{table}_by_{'_'.join(indexed.split())}"


def column_types(words: str) -> list[tuple[str, str]]:
    pairs = [word.partition(":") for word in words.split()]
    return [(name, type) for name, _, type in pairs]


def collection_of(table: str) -> Collection[object]:
    return next(collection for collection in COLLECTIONS if collection.name == table)
