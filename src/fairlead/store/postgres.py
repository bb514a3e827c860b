"""The store in PostgreSQL: for a server that others share, and for several servers on one database.

It has a schema of its own. Changes go through one writer per process (`postgres_writer.py`), reads through a few
connections, and one connection listens for the commits of other processes. PostgreSQL may restart at any time: until
it is back, every call raises `Unavailable`; then the store recovers by itself.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence

import msgspec
import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8BinaryDumper

from fairlead.model.errors import Refused, Unavailable
from fairlead.store.base import Change, Collection, Listener, Query, R, Store
from fairlead.store.changes import NumberedBatch, key_value, prepare, read_record
from fairlead.store.listeners import Listeners
from fairlead.store.migrations import MIGRATIONS, Migration, upgrade
from fairlead.store.postgres_versions import (
    check_older_writers,
    enter_as_writer,
    refill_after_upgrade,
    refill_if_alone,
)
from fairlead.store.postgres_writer import CHANNEL, UNREACHABLE, AsyncConnection, PostgresWriter
from fairlead.store.sql import POSTGRES, Parameter, render_count, render_find, statements

_log = logging.getLogger(__name__)

SCHEMA = "fairlead"
#: The key of the advisory lock: an arbitrary number that no other program uses.
_UPGRADE_LOCK = 0x66616972
_NEWEST = "SELECT value FROM counters WHERE name = 'revision'"
_SUBJECTS_AFTER = "SELECT revision, subject, subject_id FROM events WHERE revision > %s ORDER BY revision LIMIT 10000"


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Connections that run queries.
    readers: int = 4
    #: Timeout in seconds for a connection attempt, a lock or an answer.
    timeout: int = 5
    #: Backoff in seconds between attempts to listen again: the first, doubled up to the maximum.
    retry_first: float = 0.05
    retry_max: float = 2.0
    migrations: tuple[Migration, ...] = MIGRATIONS


async def open_postgres(url: str, settings: PostgresSettings | None = None) -> Store:
    """Connect, and create or upgrade the tables if needed. Raises `Refused` if a newer version wrote them."""
    settings = settings or PostgresSettings()
    try:
        conninfo = _conninfo(url, settings)
        is_filled = await asyncio.to_thread(_make_ready, conninfo, settings)
        store = PostgresStore(conninfo, settings)
        await store.start(is_filled=is_filled)
        return store
    except psycopg.Error as error:
        raise Unavailable(f"Cannot open the PostgreSQL database: {_first_line(error)}.") from error


class PostgresStore:
    """Made by `open_postgres` on the event loop that uses it."""

    def __init__(self, conninfo: str, settings: PostgresSettings) -> None:
        self._conninfo = conninfo
        self._settings = settings
        self._closed = False
        self._listeners = Listeners()
        #: The listeners know the events up to this revision.
        self._notified = 0
        self._catching_up = asyncio.Lock()
        self._readers = Readers(self._connect, settings.readers)
        self._writer = PostgresWriter(self._connect_writer, self._committed)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, *, is_filled: bool) -> None:
        """`is_filled`: whether all rows have all columns, so that no older version has left some out."""
        self._notified = (await self._readers.rows(_NEWEST, ()))[0][0]
        # At once, so that servers of a newer version see that this one may write.
        await self._writer.open()
        self._writer.start()
        self._spawn(self._listen())
        if not is_filled:
            self._spawn(self._refill())

    async def commit(self, change: Change) -> int:
        self._check_open()
        return await self._writer.submit(prepare(change, POSTGRES.mark))

    async def get(self, collection: Collection[R], id: str) -> R | None:
        self._check_open()
        text = statements(collection.name, POSTGRES.mark).get
        rows = await self._readers.rows(text, (key_value(collection, id),))
        return read_record(collection, *rows[0]) if rows else None

    async def find(self, query: Query[R]) -> list[R]:
        self._check_open()
        rows = await self._readers.rows(*render_find(query, POSTGRES))
        return [read_record(query.collection, *row[:2]) for row in rows]

    async def count(self, query: Query[object]) -> int:
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

    def _committed(self, numbered: NumberedBatch) -> None:
        """Called after a commit of this process. If others committed in between, reads their events first, in order."""
        if numbered.revision - len(numbered.events) > self._notified:
            self._spawn(self._try_to_catch_up())
        elif numbered.revision > self._notified or not numbered.events:
            self._notified = max(self._notified, numbered.revision)
            self._listeners.notify(self._notified, numbered.subjects)

    async def _listen(self) -> None:
        """Listen for commits of other processes as long as the store is open; reconnects after errors."""
        pause = self._settings.retry_first
        while True:
            try:
                connection = await self._connect()
                async with connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    # Events that were committed while this connection was down.
                    await self._catch_up()
                    pause = self._settings.retry_first
                    async for notice in connection.notifies():
                        await self._on_notice(notice)
            except (*UNREACHABLE, Unavailable) as error:
                _log.warning("Lost the connection that listens to PostgreSQL (%s); reconnecting", _first_line(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._settings.retry_max)

    async def _refill(self) -> None:
        """Fill what servers of older versions leave out, once they have gone."""
        while True:
            work = asyncio.ensure_future(asyncio.to_thread(refill_if_alone, self._conninfo, self._settings.migrations))
            try:
                if await asyncio.shield(work):
                    return
            except asyncio.CancelledError:
                # A thread cannot be cancelled, and its connection must not outlive the store.
                await asyncio.wait([work])
                raise
            except UNREACHABLE as error:
                _log.warning("Cannot fill columns of the previous layout yet: %s", _first_line(error))
            await asyncio.sleep(self._settings.retry_max)

    async def _on_notice(self, notice: psycopg.Notify) -> None:
        if int(notice.payload) > self._notified:
            await self._catch_up()
        elif notice.pid != self._writer.pid:
            # Another process committed a change without events.
            self._listeners.notify(self._notified, ())

    async def _try_to_catch_up(self) -> None:
        """Like `_catch_up`; if PostgreSQL is unreachable, the listening connection catches up later."""
        try:
            await self._catch_up()
        except Unavailable as error:
            _log.debug("Catching up later: %s", error)

    async def _catch_up(self) -> None:
        async with self._catching_up:
            while rows := await self._readers.rows(_SUBJECTS_AFTER, (self._notified,)):
                subjects = list(
                    dict.fromkeys((subject, id) for revision, subject, id in rows if revision > self._notified)
                )
                self._notified = max(self._notified, rows[-1][0])
                if subjects:
                    self._listeners.notify(self._notified, subjects)

    async def _connect(self) -> AsyncConnection:
        connection: AsyncConnection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        connection.adapters.register_dumper(int, Int8BinaryDumper)
        return connection

    async def _connect_writer(self) -> AsyncConnection:
        connection = await self._connect()
        await enter_as_writer(connection, self._settings.migrations[-1].number)
        return connection

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Readers:
    """A few connections for queries. If one fails, it is replaced and the query is run once more."""

    def __init__(self, connect: Callable[[], Awaitable[AsyncConnection]], max_connections: int) -> None:
        self._connect = connect
        self._free = asyncio.Semaphore(max_connections)
        self._idle: list[AsyncConnection] = []

    async def rows(self, text: str, values: Sequence[Parameter]) -> list[TupleRow]:
        async with self._free:
            while self._idle:
                try:
                    return await self._run(self._idle.pop(), text, values)
                except UNREACHABLE:
                    await self.close()
            try:
                return await self._run(await self._connect(), text, values)
            except UNREACHABLE as error:
                raise Unavailable(f"Cannot read from PostgreSQL: {_first_line(error)}.") from error

    async def _run(self, connection: AsyncConnection, text: str, values: Sequence[Parameter]) -> list[TupleRow]:
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
    """The URL with our required settings: the schema, and timeouts for a server that stops answering."""
    url_settings = conninfo_to_dict(url)
    options = f"{url_settings.get('options') or ''} -c search_path={SCHEMA}".strip()
    timeout = settings.timeout
    required: dict[str, str | int | None] = {
        "options": f"{options} -c lock_timeout={timeout}s -c idle_in_transaction_session_timeout={2 * timeout}s",
        "client_encoding": "utf8",
        "tcp_user_timeout": timeout * 1000,
    }
    defaults: dict[str, str | int | None] = {
        "connect_timeout": timeout,
        "application_name": "fairlead",
        "keepalives_idle": timeout,
    }
    return make_conninfo("", **{**defaults, **url_settings, **required})


def connect_alone(url: str) -> Connection[TupleRow]:
    """A separate connection, for programs that run beside or without a store."""
    return psycopg.connect(_conninfo(url, PostgresSettings()), autocommit=True)


def _make_ready(conninfo: str, settings: PostgresSettings) -> bool:
    """Whether all rows have all columns now; False if servers of an older version may leave some out."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        encoding = _load_text(connection, "SHOW server_encoding")
        if encoding != "UTF8":
            raise Refused(f"The PostgreSQL database has encoding {encoding}; create one with encoding UTF8.")
        with connection.transaction():
            # Servers that start at the same time upgrade one after another, however long the first one takes.
            connection.execute("SET LOCAL lock_timeout = '60s'")
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_UPGRADE_LOCK,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            check_older_writers(connection, settings.migrations)
            upgrade(
                connection, POSTGRES, settings.migrations, lambda version: _copy_before_upgrade(connection, version)
            )
        return refill_after_upgrade(connection, settings.migrations)


def _copy_before_upgrade(connection: Connection[TupleRow], version: int) -> str:
    """Copy all tables into another schema, in the transaction of the upgrade."""
    target = f"{SCHEMA}_backup_{version}"
    connection.execute(f"DROP SCHEMA IF EXISTS {target} CASCADE")
    connection.execute(f"CREATE SCHEMA {target}")
    names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (SCHEMA,)).fetchall()
    for (name,) in names:
        connection.execute(f'CREATE TABLE {target}."{name}" AS TABLE {SCHEMA}."{name}"')
    return target


def _load_text(connection: Connection[TupleRow], text: str) -> str:
    row = connection.execute(text).fetchone()
    return str(row[0]) if row else ""


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
