"""Copies a whole database to a file and back, for `fairlead backup` and `fairlead restore`.

Both run without a store. A backup can be made while a server runs; a restore needs a database that no server uses. A
SQLite backup is itself a database. A PostgreSQL backup is a text file with our tables as COPY writes them, so that it
can be read without other programs and restored into any PostgreSQL that Fairlead can use.
"""

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from fairlead.model.errors import Refused, Unavailable
from fairlead.store.changes import read_record
from fairlead.store.collections import COLLECTIONS
from fairlead.store.migrations import MIGRATIONS, MigrationConnection, load_oldest_reader, load_version, tables, upgrade
from fairlead.store.postgres import SCHEMA, connect_alone
from fairlead.store.sql import POSTGRES, SQLITE, SqlDialect
from fairlead.store.sqlite import connect, copy, whole_file

_END_OF_TABLE = b"\\.\n"
_PIECE = 1 << 20
#: PostgreSQL notices a little later that a server's connections are closed.
_ENDING_SECONDS = 3.0
NEWEST_LAYOUT = MIGRATIONS[-1].number


class _Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a PostgreSQL backup."""

    format: str = "fairlead-backup"
    layout: int


class _TableHeader(msgspec.Struct, frozen=True):
    """The line before a table's rows."""

    table: str
    columns: tuple[str, ...]


def backup(database: str, target: Path) -> None:
    """Copy a consistent state of the database (a path or a postgresql:// URL). Refuses a target that exists."""
    if target.exists():
        raise Refused(f"{target} already exists; choose another file name.")
    try:
        if _is_postgres(database):
            _backup_postgres(database, target)
        elif not Path(database).exists():
            raise Refused(f"The database {database} does not exist.")
        else:
            copy(Path(database), target)
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise Unavailable(f"The backup failed: {error}.") from error


def restore(database: str, source: Path) -> None:
    """Replace everything in the database with the backup. No server may be using it."""
    if not source.exists():
        raise Refused(f"The backup {source} does not exist.")
    try:
        if _is_postgres(database):
            _restore_postgres(database, source)
        else:
            _restore_sqlite(Path(database), source)
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise Unavailable(f"The restore failed: {error}.") from error


def verify(database: str, source: Path) -> int:
    """Restore the backup beside the database, which stays unchanged, and read every record. Returns how many there are.

    A backup of PostgreSQL is restored into a schema that is never committed; of SQLite into a file that is deleted.
    """
    try:
        if _is_postgres(database):
            return _verify_postgres(database, source)
        with tempfile.TemporaryDirectory(dir=source.parent) as scratch:
            path = Path(scratch, "restored.db")
            _restore_sqlite(path, source)
            with closing(connect(path)) as connection:
                return _read_records(connection, load_version(connection, SQLITE))
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise Unavailable(f"The backup cannot be restored: {error}.") from error


class Layout(NamedTuple):
    number: int
    #: The oldest layout whose version can run on this database.
    oldest_reader: int


def load_layout(database: str) -> Layout:
    """The layout of the database; number 0 if there is no database yet."""
    try:
        if _is_postgres(database):
            with connect_alone(database) as remote:
                return _load_layout(remote, POSTGRES)
        if not Path(database).exists():
            return Layout(0, 0)
        with closing(connect(Path(database))) as local:
            return _load_layout(local, SQLITE)
    except (sqlite3.Error, psycopg.Error, OSError) as error:
        raise Unavailable(f"The database cannot be opened: {str(error).partition(chr(10))[0]}.") from error


def _load_layout(connection: MigrationConnection, dialect: SqlDialect) -> Layout:
    return Layout(load_version(connection, dialect), load_oldest_reader(connection, dialect))


def _read_records(connection: MigrationConnection, layout: int) -> int:
    """Decode all records of a restored database; raises Refused for one that cannot be read."""
    number = 0
    present = tables([migration for migration in MIGRATIONS if migration.number <= layout])
    for collection in COLLECTIONS:
        if collection.name in present:
            for key, data in connection.execute(f"SELECT {collection.key}, data FROM {collection.name}"):
                try:
                    read_record(collection, key, bytes(data))
                except msgspec.MsgspecError as error:
                    raise Refused(
                        f"Record {key} of {collection.name} in the backup cannot be read: {error}."
                    ) from error
                number += 1
    return number


def _is_postgres(database: str) -> bool:
    return database.startswith(("postgres://", "postgresql://"))


def _restore_sqlite(path: Path, source: Path) -> None:
    _check_sqlite(source)
    if path.exists() and not _leave_log(path):
        path.unlink()
    if not path.exists():
        for leftover in ("-wal", "-shm"):
            # They belong to a previous database and would corrupt the restored one.
            path.with_name(path.name + leftover).unlink(missing_ok=True)
    copy(source, path)


def _leave_log(path: Path) -> bool:
    """Make the database a single file; False if it is damaged, which may be why somebody restores a backup."""
    try:
        with closing(connect(path, timeout=0)) as current:
            # SQLite leaves WAL mode only if no other connection is open.
            current.execute("PRAGMA journal_mode = DELETE")
            return True
    except sqlite3.OperationalError as error:
        raise Refused(f"A server is using {path}; stop it first.") from error
    except sqlite3.DatabaseError:
        return False


def _check_sqlite(source: Path) -> None:
    connection = connect(source)
    try:
        version = load_version(connection, SQLITE)
        sound = version and connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
    except sqlite3.DatabaseError:
        version, sound = 0, False
    finally:
        connection.close()
    if not sound:
        raise Refused(f"{source} is not a Fairlead backup, or it is damaged.")
    _check_layout(version)


def _check_layout(version: int) -> None:
    if version > NEWEST_LAYOUT:
        raise Refused(
            f"The backup has layout {version}; this version of Fairlead knows up to {NEWEST_LAYOUT}. "
            "Use a newer version."
        )


def _backup_postgres(url: str, target: Path) -> None:
    with (
        connect_alone(url) as connection,
        whole_file(target) as partial,
        open(partial, "wb") as file,
        connection.transaction(),
    ):
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        version = load_version(connection, POSTGRES)
        if not version:
            raise Refused("That PostgreSQL database has no Fairlead tables.")
        _write_line(file, _Header(layout=version))
        for name in _load_tables(connection):
            columns = _load_columns(connection, name)
            _write_line(file, _TableHeader(name, columns))
            with connection.cursor() as cursor, cursor.copy(f"COPY {name} ({', '.join(columns)}) TO STDOUT") as rows:
                for piece in rows:
                    file.write(piece)
            file.write(_END_OF_TABLE)


def _restore_postgres(url: str, source: Path) -> None:
    """Runs in one transaction: if the backup turns out to be damaged, the database stays unchanged."""
    with open(source, "rb") as file, connect_alone(url) as connection, connection.transaction():
        layout = _read_layout(file, source)
        _check_unused(connection)
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        _fill_postgres(connection, layout, file, source)


def _verify_postgres(url: str, source: Path) -> int:
    with open(source, "rb") as file, connect_alone(url) as connection, connection.transaction(force_rollback=True):
        layout = _read_layout(file, source)
        connection.execute(f"CREATE SCHEMA {SCHEMA}_verified")
        connection.execute(f"SET LOCAL search_path TO {SCHEMA}_verified")
        _fill_postgres(connection, layout, file, source)
        return _read_records(connection, layout)


def _read_layout(file: BinaryIO, source: Path) -> int:
    try:
        header = msgspec.json.decode(file.readline(), type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(f"{source} is not a Fairlead backup, or it is damaged.") from error
    if header.format != _Header(layout=0).format:
        raise Refused(f"{source} is not a Fairlead backup, or it is damaged.")
    _check_layout(header.layout)
    return header.layout


def _fill_postgres(connection: Connection[TupleRow], layout: int, file: BinaryIO, source: Path) -> None:
    """Create the tables in the current schema and fill them."""
    migrations = [migration for migration in MIGRATIONS if migration.number <= layout]
    upgrade(connection, POSTGRES, migrations, lambda version: "")
    restored = set()
    while line := file.readline():
        table = msgspec.json.decode(line, type=_TableHeader)
        restored.add(table.table)
        if table.table not in tables(migrations):
            raise Refused(f"{source} contains an unknown table {table.table}: it is damaged.")
        _restore_table(connection, table, file)
    if restored != set(tables(migrations)):
        raise Refused(f"{source} is incomplete: it is damaged.")


def _restore_table(connection: Connection[TupleRow], header: _TableHeader, file: BinaryIO) -> None:
    if not all(column.isidentifier() for column in header.columns):
        raise Refused(f"The backup has invalid column names for {header.table}: it is damaged.")
    connection.execute(f"TRUNCATE {header.table}")
    text = f"COPY {header.table} ({', '.join(header.columns)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(text) as rows:
        for piece in _pieces(file):
            rows.write(piece)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The lines up to the end of the table, many at a time."""
    lines: list[bytes] = []
    size = 0
    for line in iter(file.readline, _END_OF_TABLE):
        if not line.endswith(b"\n"):
            raise Refused("The backup ends in the middle of a table: it is damaged.")
        lines.append(line)
        size += len(line)
        if size > _PIECE:
            yield b"".join(lines)
            lines, size = [], 0
    yield b"".join(lines)


def _check_unused(connection: Connection[TupleRow]) -> None:
    deadline = time.monotonic() + _ENDING_SECONDS
    while _is_used(connection):
        if time.monotonic() > deadline:
            raise Refused("A server is using that PostgreSQL database; stop it first.")
        connection.execute("SELECT pg_sleep(0.02), pg_stat_clear_snapshot()")


def _is_used(connection: Connection[TupleRow]) -> bool:
    text = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'fairlead' AND pid <> pg_backend_pid()"
    )
    row = connection.execute(text).fetchone()
    return bool(row and row[0])


def _load_tables(connection: Connection[TupleRow]) -> list[str]:
    text = "SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename"
    return [name for (name,) in connection.execute(text, (SCHEMA,))]


def _load_columns(connection: Connection[TupleRow], table: str) -> tuple[str, ...]:
    text = (
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"
    )
    return tuple(name for (name,) in connection.execute(text, (SCHEMA, table)))


def _write_line(file: BinaryIO, record: msgspec.Struct) -> None:
    file.write(msgspec.json.encode(record) + b"\n")
