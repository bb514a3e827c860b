"""The store in PostgreSQL: for a server that others share, and for several servers on one database.

It lives in a schema of its own. Changes go through one writer per process (`postgres_writer.py`), reads through a few
connections, and a connection that listens hears of the commits of other processes. The server may be restarted at any
time: until it is back everything raises `Unavailable`, then it goes on by itself.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8BinaryDumper

from fairlead.model.errors import Refused, Unavailable
from fairlead.store.base import Change, Collection, Listener, Query, Store
from fairlead.store.changes import key_value, prepare, read_record
from fairlead.store.listeners import Listeners
from fairlead.store.migrations import MIGRATIONS, Migration, upgrade
from fairlead.store.postgres_writer import CHANNEL, UNREACHABLE, AsyncConnection, PostgresWriter
from fairlead.store.sql import POSTGRES, render_count, render_find, statements

_log = logging.getLogger(__name__)

SCHEMA = "fairlead"
#: Any number that no other program locks by.
_UPGRADE_LOCK = 0x66616972
_NEWEST = "SELECT value FROM counters WHERE name = 'revision'"
_SUBJECTS_AFTER = "SELECT revision, subject, subject_id FROM events WHERE revision > %s ORDER BY revision LIMIT 10000"


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Connections that run queries.
    readers: int = 4
    #: Seconds until a connection attempt, a lock or an answer is given up.
    patience: int = 5
    #: Seconds between attempts to listen again: the first, doubled up to the greatest.
    retry_first: float = 0.05
    retry_most: float = 2.0
    migrations: tuple[Migration, ...] = MIGRATIONS


async def open_postgres(url: str, settings: PostgresSettings | None = None) -> Store:
    """Connect, make or upgrade the tables if need be. Raises `Refused` if a newer program wrote them."""
    settings = settings or PostgresSettings()
    try:
        conninfo = _conninfo(url, settings)
        await asyncio.to_thread(_make_ready, conninfo, settings)
        store = PostgresStore(conninfo, settings)
        await store.start()
        return store
    except psycopg.Error as error:
        raise Unavailable(f"The PostgreSQL database cannot be opened: {_first_line(error)}.") from error


class PostgresStore:
    """Made by `open_postgres` on the event loop that uses it."""

    def __init__(self, conninfo: str, settings: PostgresSettings) -> None:
        self._conninfo = conninfo
        self._settings = settings
        self._closed = False
        self._listeners = Listeners()
        #: Events up to this revision were told to the listeners.
        self._told = 0
        self._catching_up = asyncio.Lock()
        self._readers = Readers(self._connect, settings.readers)
        self._writer = PostgresWriter(self._connect, self._committed)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._told = (await self._readers.rows(_NEWEST, ()))[0][0]
        self._writer.start()
        self._spawn(self._listen())

    async def commit(self, change: Change) -> int:
        self._check_open()
        return await self._writer.submit(prepare(change, POSTGRES.mark))

    async def get(self, collection: Collection, id: str) -> Any | None:
        self._check_open()
        text = statements(collection.name, POSTGRES.mark).get
        rows = await self._readers.rows(text, (key_value(collection, id),))
        return read_record(collection, *rows[0]) if rows else None

    async def find(self, query: Query) -> list[Any]:
        self._check_open()
        rows = await self._readers.rows(*render_find(query, POSTGRES))
        return [read_record(query.collection, *row) for row in rows]

    async def count(self, query: Query) -> int:
        self._check_open()
        return int((await self._readers.rows(*render_count(query, POSTGRES)))[0][0])

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._listeners.add(listener)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._writer.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._readers.close()

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("The database is closed.")

    def _committed(self, revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        """A commit of ours. If others committed in between, all is read again, so that nobody hears out of order."""
        if revision - len(subjects) > self._told:
            self._spawn(self._catch_up_calmly())
        elif revision > self._told or not subjects:
            self._told = max(self._told, revision)
            self._listeners.tell(self._told, subjects)

    async def _listen(self) -> None:
        """Hear of the commits of other processes, for as long as the store is open, over any number of connections."""
        pause = self._settings.retry_first
        while True:
            try:
                connection = await self._connect()
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    # What was committed while nobody listened.
                    await self._catch_up()
                    pause = self._settings.retry_first
                    async for notice in connection.notifies():
                        await self._heard(notice)
            except (*UNREACHABLE, Unavailable) as error:
                _log.warning("PostgreSQL cannot be listened to (%s); trying again", _first_line(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._settings.retry_most)

    async def _heard(self, notice: psycopg.Notify) -> None:
        if int(notice.payload) > self._told:
            await self._catch_up()
        elif notice.pid != self._writer.pid:
            # Somebody's change without events.
            self._listeners.tell(self._told, ())

    async def _catch_up_calmly(self) -> None:
        """As `_catch_up`; if the server is away, the listening connection catches up when it is back."""
        try:
            await self._catch_up()
        except Unavailable as error:
            _log.debug("catching up later: %s", error)

    async def _catch_up(self) -> None:
        async with self._catching_up:
            while rows := await self._readers.rows(_SUBJECTS_AFTER, (self._told,)):
                subjects = [(subject, id) for revision, subject, id in rows if revision > self._told]
                self._told = max(self._told, rows[-1][0])
                if subjects:
                    self._listeners.tell(self._told, subjects)

    async def _connect(self) -> AsyncConnection:
        connection: AsyncConnection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        return connection

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Readers:
    """A few connections for queries. One that fails is replaced and the query run once more: the server may be back."""

    def __init__(self, connect: Callable[[], Any], most: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(most)
        self._idle: list[AsyncConnection] = []

    async def rows(self, text: str, values: Sequence[Any]) -> list[Any]:
        async with self._free:
            while self._idle:
                try:
                    return await self._run(self._idle.pop(), text, values)
                except UNREACHABLE:
                    await self.close()
            try:
                return await self._run(await self._connect(), text, values)
            except UNREACHABLE as error:
                raise Unavailable(f"PostgreSQL cannot be read now: {_first_line(error)}.") from error

    async def _run(self, connection: AsyncConnection, text: str, values: Sequence[Any]) -> list[Any]:
        try:
            cursor = await connection.execute(text, values, binary=True)
            rows = await cursor.fetchall()
        except BaseException:
            await connection.close()
            raise
        self._idle.append(connection)
        return rows

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()


def _conninfo(url: str, settings: PostgresSettings) -> str:
    """The URL with what we insist on: our schema, and an end to waiting for a server that is silently gone."""
    given = conninfo_to_dict(url)
    options = f"{given.get('options') or ''} -c search_path={SCHEMA}".strip()
    patience = settings.patience
    insisted: dict[str, str | int | None] = {
        "options": f"{options} -c lock_timeout={patience}s -c idle_in_transaction_session_timeout={2 * patience}s",
        "client_encoding": "utf8",
        "tcp_user_timeout": patience * 1000,
    }
    offered: dict[str, str | int | None] = {
        "connect_timeout": patience,
        "application_name": "fairlead",
        "keepalives_idle": patience,
    }
    return make_conninfo("", **{**offered, **given, **insisted})


def connect_alone(url: str) -> psycopg.Connection[Any]:
    """A connection of its own, for what runs beside or without a store."""
    return psycopg.connect(_conninfo(url, PostgresSettings()), autocommit=True)


def _make_ready(conninfo: str, settings: PostgresSettings) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        encoding = _one(connection, "SHOW server_encoding")
        if encoding != "UTF8":
            raise Refused(f"The PostgreSQL database has encoding {encoding}; make one with encoding UTF8.")
        with connection.transaction():
            # Servers that start at the same time do this one after another, however long the first one takes.
            connection.execute("SET LOCAL lock_timeout = '60s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_UPGRADE_LOCK,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            upgrade(
                connection, POSTGRES, settings.migrations, lambda version: _copy_before_upgrade(connection, version)
            )


def _copy_before_upgrade(connection: psycopg.Connection[Any], version: int) -> str:
    """All tables into a schema beside ours, in the transaction of the upgrade: both happen or neither."""
    target = f"{SCHEMA}_backup_{version}"
    connection.execute(f"DROP SCHEMA IF EXISTS {target} CASCADE")
    connection.execute(f"CREATE SCHEMA {target}")
    names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,)).fetchall()
    for (name,) in names:
        connection.execute(f'CREATE TABLE {target}."{name}" AS TABLE {SCHEMA}."{name}"')
    return target


def _one(connection: psycopg.Connection[Any], text: str) -> Any:
    row = connection.execute(text).fetchone()
    return row[0] if row else None


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
