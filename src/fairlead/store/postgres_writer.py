"""The one writer of a process to PostgreSQL: changes that arrive during a commit go into the next one together.

`postgres.py` hands it prepared changes and awaits their futures. Every batch first locks the row that counts
revisions, so that revisions follow the order of commits over all processes, and batches never deadlock.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from itertools import chain, groupby

import psycopg
from psycopg.rows import TupleRow

from fairlead.model.errors import FairleadError, Refused, Unavailable
from fairlead.store.changes import (
    NumberedBatch,
    Prepared,
    Waiter,
    WriteStatement,
    duplicate_conflict,
    number_rows,
    resolve_futures,
    version_conflict,
)
from fairlead.store.collections import AUDIT, EVENTS
from fairlead.store.sql import POSTGRES, parts, repeat_values, statements

_log = logging.getLogger(__name__)

AsyncConnection = psycopg.AsyncConnection[TupleRow]
#: Errors of the server or its disk rather than of the statement.
UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError, OSError)
#: Errors with which the database can refuse a row.
_REFUSALS = (psycopg.IntegrityError, psycopg.DataError, psycopg.ProgrammingError, OverflowError)
CHANNEL = "fairlead"

_MAX_BATCH = 512
_INSERT_EVENT = statements(EVENTS.name, POSTGRES.mark).insert
_INSERT_AUDIT = statements(AUDIT.name, POSTGRES.mark).insert
LOCK = "SELECT value FROM counters WHERE name = 'revision' FOR UPDATE"
_LOAD_NUMBER = "SELECT value FROM counters WHERE name = 'audit'"
_RECORD_COUNTER = "UPDATE counters SET value = %s WHERE name = %s"
_NOTIFY = "SELECT pg_notify(%s, %s)"
#: Operators may configure a stricter setting (remote_apply), but not a weaker one.
_SYNC = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"


class PostgresWriter:
    def __init__(
        self,
        connect: Callable[[], Awaitable[AsyncConnection]],
        notify: Callable[[NumberedBatch], None],
    ) -> None:
        self._connect = connect
        self._notify = notify
        self._queue: asyncio.Queue[Waiter | None] = asyncio.Queue()
        self._connection: AsyncConnection | None = None
        self._task: asyncio.Task[None] | None = None
        #: Whether a COMMIT was sent and not answered yet.
        self._committing = False
        #: The PostgreSQL backend of our connection, which sends our own notifications.
        self.pid = 0

    async def open(self) -> None:
        """Connect before the first change."""
        await self._open()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def submit(self, prepared: Prepared) -> "asyncio.Future[int]":
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((prepared, future))
        return future

    async def stop(self) -> None:
        """Return when all submitted changes are committed and their futures are resolved."""
        self._queue.put_nowait(None)
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        more = True
        while more:
            batch, more = await self._gather()
            if batch:
                numbered = await self._write([prepared for prepared, _ in batch])
                if resolve_futures(batch, numbered):
                    self._notify(numbered)
        await self._close_connection()

    async def _gather(self) -> tuple[list[Waiter], bool]:
        """Wait for a change and take those queued behind it. The second value is False at the end of the queue."""
        batch: list[Waiter] = []
        waiter = await self._queue.get()
        while waiter is not None:
            batch.append(waiter)
            if len(batch) == _MAX_BATCH or self._queue.empty():
                return batch, True
            waiter = self._queue.get_nowait()
        return batch, False

    async def _write(self, batch: list[Prepared]) -> NumberedBatch:
        """Commit the batch. A connection that fails before the commit was sent is replaced once."""
        while True:
            is_fresh = self._connection is None
            self._committing = False
            try:
                return await self._transact(self._connection or await self._open(), batch)
            except Exception as error:
                # Catch all errors: if the writer ended, its callers would wait forever.
                if not isinstance(error, UNREACHABLE):
                    _log.exception("Unexpected error in the store's writer")
                await self._close_connection()
                if is_fresh or self._committing or not isinstance(error, UNREACHABLE):
                    return NumberedBatch(outcomes=[self._unavailable(error) for _ in batch])

    def _unavailable(self, error: Exception) -> Unavailable:
        advice = (
            "It is unknown whether the change was made; check" if self._committing else "Nothing was changed; try again"
        )
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        return Unavailable(f"Cannot write to PostgreSQL: {first_line}. {advice} later.")

    async def _open(self) -> AsyncConnection:
        connection = self._connection = await self._connect()
        self.pid = connection.info.backend_pid
        await connection.execute(_SYNC)
        return connection

    async def _transact(self, connection: AsyncConnection, batch: list[Prepared]) -> NumberedBatch:
        try:
            numbered = await self._write_together(connection, batch)
        except _REFUSALS:
            numbered = None
        if numbered is None:
            await connection.rollback()
            numbered = await self._write_apart(connection, batch)
        self._committing = True
        await connection.execute("COMMIT")
        self._committing = False
        return numbered

    async def _write_together(self, connection: AsyncConnection, batch: list[Prepared]) -> NumberedBatch | None:
        """Send all statements at once, assuming that no change conflicts; None if one did."""
        revision, number = await _begin(connection)
        numbered = number_rows(batch, [None] * len(batch), revision, number)
        async with connection.pipeline():
            writes = chain.from_iterable(prepared.writes for prepared in batch)
            lost = [await _send(connection, list(group)) for _, group in groupby(writes, lambda write: write.text)]
            await _record(connection, numbered)
        return None if any(is_lost() for is_lost in lost) else numbered

    async def _write_apart(self, connection: AsyncConnection, batch: list[Prepared]) -> NumberedBatch:
        """Apply the changes one by one; those that conflict are rolled back alone."""
        revision, number = await _begin(connection)
        refusals = [await _apply(connection, prepared.writes) for prepared in batch]
        numbered = number_rows(batch, refusals, revision, number)
        await _record(connection, numbered)
        return numbered

    async def _close_connection(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None


async def _begin(connection: AsyncConnection) -> tuple[int, int]:
    """The newest revision and audit number; the lock keeps others from raising them until our commit."""
    async with connection.pipeline():
        await connection.execute("BEGIN")
        revision = await connection.execute(LOCK)
        number = await connection.execute(_LOAD_NUMBER)
    return await _value(revision), await _value(number)


async def _value(cursor: psycopg.AsyncCursor[TupleRow]) -> int:
    row = await cursor.fetchone()
    if row is None:
        raise psycopg.InternalError("the counters table has no rows")
    return int(row[0])


async def _send(connection: AsyncConnection, writes: list[WriteStatement]) -> Callable[[], bool]:
    """Send statements with the same text; the returned function tells afterwards whether one of them conflicted.

    Inserts are sent many at a time, which saves work on both sides. One that is refused raises.
    """
    if writes[0].version == 1:
        for part in parts(writes):
            values = tuple(chain.from_iterable(write.values for write in part))
            await connection.execute(repeat_values(part[0].text, len(part)), values)
        return lambda: False
    cursors = [await connection.execute(write.text, write.values) for write in writes]
    is_update = writes[0].version > 0
    return lambda: is_update and any(cursor.rowcount == 0 for cursor in cursors)


async def _record(connection: AsyncConnection, numbered: NumberedBatch) -> None:
    """Write the events, the audit lines, their counters, and the notification that is sent with the commit."""
    for text, rows, counter, value in (
        (_INSERT_EVENT, numbered.events, "revision", numbered.revision),
        (_INSERT_AUDIT, numbered.audit, "audit", numbered.number),
    ):
        for part in parts(rows):
            await connection.execute(repeat_values(text, len(part)), tuple(chain.from_iterable(part)))
        if rows:
            await connection.execute(_RECORD_COUNTER, (value, counter))
    await connection.execute(_NOTIFY, (CHANNEL, str(numbered.revision)))


async def _apply(connection: AsyncConnection, writes: tuple[WriteStatement, ...]) -> FairleadError | None:
    """Apply the writes of one change, all or none; returns why it was refused, if it was."""
    if not writes:
        return None
    await connection.execute("SAVEPOINT change")
    refusal = None
    for write in writes:
        refusal = await _apply_write(connection, write)
        if refusal is not None:
            await connection.execute("ROLLBACK TO SAVEPOINT change")
            break
    await connection.execute("RELEASE SAVEPOINT change")
    return refusal


async def _apply_write(connection: AsyncConnection, write: WriteStatement) -> FairleadError | None:
    try:
        changed = (await connection.execute(write.text, write.values)).rowcount
    except psycopg.errors.UniqueViolation as error:
        columns = re.search(r"\(([\w, ]+)\)=\(", error.diag.message_detail or "")
        return duplicate_conflict(write, tuple(columns[1].split(", ")) if columns else ())
    except _REFUSALS as error:
        return Refused(f"{write.collection} {write.id} cannot be stored: {error}.")
    return None if changed or not write.version else version_conflict(write)
