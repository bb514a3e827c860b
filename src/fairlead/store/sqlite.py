"""The store in one SQLite file: for one server on one machine, with nothing else to install or run.

Changes go to one writer thread (`sqlite_writer.py`), which commits those that have gathered together. Reads have their
own connections: by id on the event loop (some microseconds), queries in a few threads. The file belongs to one server
at a time: another process may safely write to it, but listeners here are not notified of its commits.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairlead.model.errors import Unavailable
from fairlead.store.base import Change, Collection, Listener, Query, R, Store
from fairlead.store.changes import key_value, prepare, read_record
from fairlead.store.listeners import Listeners
from fairlead.store.migrations import MIGRATIONS, Migration, upgrade
from fairlead.store.refill import needs_refill, record_refilled, refill
from fairlead.store.sql import SQLITE, Parameter, render_count, render_find, statements
from fairlead.store.sqlite_writer import SqliteWriter

#: Seconds to wait at start while another process creates or upgrades the same file.
_OPENING_TIMEOUT = 60.0

T = TypeVar("T")


class SqliteSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Seconds to wait while another process has the file locked, before raising `Unavailable`.
    timeout: float = 5.0
    #: Threads that run queries.
    readers: int = 2
    #: The largest size of the file in pages of 4096 bytes; 0 for no limit.
    max_pages: int = 0
    migrations: tuple[Migration, ...] = MIGRATIONS


async def open_sqlite(path: str | Path, settings: SqliteSettings | None = None) -> Store:
    """Open the file; create or upgrade it if needed. Raises `Refused` if a newer version wrote it, or `Unavailable`."""
    settings = settings or SqliteSettings()
    path = Path(path)
    try:
        await asyncio.to_thread(_make_ready, path, settings)
        return SqliteStore(path, settings)
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"Cannot open the database {path}: {error}.") from error


class SqliteStore:
    """Made by `open_sqlite` on the event loop that uses it."""

    def __init__(self, path: Path, settings: SqliteSettings) -> None:
        self._path = path
        self._settings = settings
        self._listeners = Listeners()
        self._closed = False
        self._reader = self._connect()
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._threads = ThreadPoolExecutor(settings.readers, thread_name_prefix="store-reader")
        self._writer = SqliteWriter(
            lambda: self._connect(write=True), asyncio.get_running_loop(), self._listeners.notify
        )
        self._writer.start()

    async def commit(self, change: Change) -> int:
        if self._closed:
            raise Unavailable("The database is closed.")
        return await self._writer.submit(prepare(change, SQLITE.mark))

    async def get(self, collection: Collection[R], id: str) -> R | None:
        text = statements(collection.name, SQLITE.mark).get
        try:
            rows = self._reader.execute(text, (key_value(collection, id),)).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        return read_record(collection, *rows[0]) if rows else None

    async def find(self, query: Query[R]) -> list[R]:
        text, values = render_find(query, SQLITE)
        return await self._in_thread(
            lambda: [read_record(query.collection, *row[:2]) for row in self._rows(text, values)]
        )

    async def count(self, query: Query[object]) -> int:
        text, values = render_count(query, SQLITE)
        return int(await self._in_thread(lambda: self._rows(text, values)[0][0]))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._listeners.add(listener)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.stop()
        await asyncio.to_thread(self._threads.shutdown)
        for connection in (self._reader, *self._connections):
            connection.close()

    async def _in_thread(self, read: Callable[[], T]) -> T:
        if self._closed:
            raise Unavailable("The database is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    def _rows(self, text: str, values: Sequence[Parameter]) -> list[tuple[Any, ...]]:
        """Runs in a reader thread; each thread has its own connection."""
        try:
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
                self._connections.append(connection)
            return connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> Unavailable:
        return Unavailable(f"Cannot read the database {self._path}: {error}.")

    def _connect(self, *, write: bool = False) -> sqlite3.Connection:
        connection = connect(self._path, self._settings.timeout)
        if write:
            # 16 MB of pages: inserts by random ids touch many pages.
            connection.execute("PRAGMA cache_size = -16384")
            # The log file shrinks again after a burst.
            connection.execute("PRAGMA journal_size_limit = 67108864")
            if self._settings.max_pages:
                connection.execute(f"PRAGMA max_page_count = {self._settings.max_pages}")
        else:
            connection.execute("PRAGMA query_only = ON")
        return connection


def connect(path: Path, timeout: float = 5.0) -> sqlite3.Connection:
    """A connection with explicit transactions that syncs to disk at every commit."""
    connection = sqlite3.connect(
        path, timeout=timeout, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _make_ready(path: Path, settings: SqliteSettings) -> None:
    # It holds password hashes, so only the owner may read it. SQLite gives its other files the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(path, _OPENING_TIMEOUT)
    try:
        _use_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        upgrade(connection, SQLITE, settings.migrations, lambda version: _copy_before_upgrade(path, version))
        if needs_refill(connection, SQLITE, settings.migrations):
            refill(connection, SQLITE, settings.migrations, nullcontext)
            record_refilled(connection, SQLITE, settings.migrations)
        connection.execute("COMMIT")
    finally:
        connection.close()


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Retries, because SQLite does not wait when two connections change the mode of a file at once."""
    deadline = time.monotonic() + _OPENING_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _copy_before_upgrade(path: Path, version: int) -> str:
    """Copy through a second connection, while the first one keeps others from writing."""
    target = path.with_name(f"{path.name}.layout-{version}.backup")
    copy(path, target)
    return str(target)


def copy(source: Path, target: Path) -> None:
    """A consistent copy of a database that may be in use."""
    with whole_file(target) as partial:
        reading, writing = connect(source), connect(partial)
        try:
            reading.backup(writing)
        finally:
            writing.close()
            reading.close()


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """A file to fill that is synced and renamed to the target on success, and deleted on failure."""
    partial = target.with_name(target.name + ".partial")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        yield partial
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
