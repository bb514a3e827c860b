"""The store in one SQLite file: for one server on one machine, with nothing to install or to run beside it.

Changes are handed to one writer thread (`sqlite_writer.py`) that commits what has gathered together. Reads have their
own connections: by id on the event loop (some microseconds), queries in a few threads. The file belongs to one server
at a time: another process may write it safely, but its commits are not told to the listeners here.
"""

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from fairlead.model.errors import Unavailable
from fairlead.store.base import Change, Collection, Listener, Query, Store
from fairlead.store.changes import key_value, prepare, read_record
from fairlead.store.listeners import Listeners
from fairlead.store.migrations import MIGRATIONS, Migration, upgrade
from fairlead.store.sql import SQLITE, render_count, render_find, statements
from fairlead.store.sqlite_writer import SqliteWriter

#: Seconds to wait at the start for another that makes or upgrades the same file.
_OPENING_PATIENCE = 60.0


class SqliteSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Seconds to wait while another process holds the file, before answering that it is unavailable.
    patience: float = 5.0
    #: Threads that run queries.
    readers: int = 2
    #: The file may grow to so many pages of 4096 bytes; 0 leaves it to the disk.
    pages_most: int = 0
    migrations: tuple[Migration, ...] = MIGRATIONS


async def open_sqlite(path: str | Path, settings: SqliteSettings | None = None) -> Store:
    """Open the file, made or upgraded if need be. Raises `Refused` if a newer program wrote it, else `Unavailable`."""
    settings = settings or SqliteSettings()
    path = Path(path)
    try:
        await asyncio.to_thread(_make_ready, path, settings)
        return SqliteStore(path, settings)
    except (sqlite3.Error, OSError) as error:
        raise Unavailable(f"The database {path} cannot be opened: {error}.") from error


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
        self._writer = SqliteWriter(lambda: self._connect(write=True), asyncio.get_running_loop(), self._listeners.tell)
        self._writer.start()

    async def commit(self, change: Change) -> int:
        if self._closed:
            raise Unavailable("The database is closed.")
        return await self._writer.submit(prepare(change, SQLITE.mark))

    async def get(self, collection: Collection, id: str) -> Any | None:
        text = statements(collection.name, SQLITE.mark).get
        try:
            rows = self._reader.execute(text, (key_value(collection, id),)).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        return read_record(collection, *rows[0]) if rows else None

    async def find(self, query: Query) -> list[Any]:
        text, values = render_find(query, SQLITE)
        found: list[Any] = await self._in_thread(
            lambda: [read_record(query.collection, *row) for row in self._rows(text, values)]
        )
        return found

    async def count(self, query: Query) -> int:
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

    async def _in_thread(self, read: Callable[[], Any]) -> Any:
        if self._closed:
            raise Unavailable("The database is closed.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, read)

    def _rows(self, text: str, values: Sequence[Any]) -> list[Any]:
        """Runs in a reader thread, each of which has its connection."""
        try:
            connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
                self._connections.append(connection)
            return connection.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> Unavailable:
        return Unavailable(f"The database {self._path} cannot be read now: {error}.")

    def _connect(self, *, write: bool = False) -> sqlite3.Connection:
        connection = connect(self._path, self._settings.patience)
        if write:
            # 16 MB of pages: inserting by random ids touches many.
            connection.execute("PRAGMA cache_size = -16384")
            # After a burst the log's file shrinks again.
            connection.execute("PRAGMA journal_size_limit = 67108864")
            if self._settings.pages_most:
                connection.execute(f"PRAGMA max_page_count = {self._settings.pages_most}")
        else:
            connection.execute("PRAGMA query_only = ON")
        return connection


def connect(path: Path, patience: float = 5.0) -> sqlite3.Connection:
    """A connection that begins and ends transactions only when told, and syncs at every commit."""
    connection = sqlite3.connect(
        path, timeout=patience, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _make_ready(path: Path, settings: SqliteSettings) -> None:
    # It holds password hashes and what people run: nobody else's business. SQLite gives its other files the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(path, _OPENING_PATIENCE)
    try:
        _use_write_ahead_log(connection)
        connection.execute("BEGIN IMMEDIATE")
        upgrade(connection, SQLITE, settings.migrations, lambda version: _copy_before_upgrade(path, version))
        connection.execute("COMMIT")
    finally:
        connection.close()


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """SQLite does not wait by itself when two connections want to change the mode of a file at once."""
    deadline = time.monotonic() + _OPENING_PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _copy_before_upgrade(path: Path, version: int) -> str:
    """A second connection reads what is committed, while the first one keeps others from writing."""
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
    """A file to fill that becomes the target, synced to disk, when all went well, and is gone otherwise."""
    partial = target.with_name(target.name + ".partial")
    try:
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
        yield partial
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
