"""The one thread that writes to SQLite: changes that arrive while a commit syncs go into the next one together.

`sqlite.py` hands it prepared changes and awaits their futures. A change that conflicts is rolled back alone. If the
disk is full or broken, the whole batch fails, and the next commit tries again.
"""

import asyncio
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from queue import Empty, SimpleQueue

from fairlead.model.errors import FairleadError, Refused, Unavailable
from fairlead.store.changes import (
    NumberedBatch,
    Prepared,
    Row,
    Waiter,
    WriteStatement,
    duplicate_conflict,
    number_rows,
    resolve_futures,
    version_conflict,
)
from fairlead.store.collections import AUDIT, EVENTS
from fairlead.store.sql import SQLITE, parts, repeat_values, statements

_log = logging.getLogger(__name__)

#: The most changes in one commit; it bounds how long a change waits for the others.
_MAX_BATCH = 512

_INSERT_EVENT = statements(EVENTS.name, SQLITE.mark).insert
_INSERT_AUDIT = statements(AUDIT.name, SQLITE.mark).insert
_LOAD_COUNTERS = "SELECT (SELECT value FROM counters WHERE name = 'revision'), value FROM counters WHERE name = 'audit'"
_RECORD_COUNTER = "UPDATE counters SET value = ? WHERE name = ?"

#: Errors with which the database can refuse a row; all others are problems of the database itself.
_REFUSALS = (
    sqlite3.IntegrityError,
    sqlite3.ProgrammingError,
    sqlite3.InterfaceError,
    sqlite3.DataError,
    OverflowError,
)


class SqliteWriter:
    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        loop: asyncio.AbstractEventLoop,
        notify: Callable[[int, Sequence[tuple[str, str]]], None],
    ) -> None:
        self._connect = connect
        self._loop = loop
        self._notify = notify
        self._queue: SimpleQueue[Waiter | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, prepared: Prepared) -> "asyncio.Future[int]":
        future: asyncio.Future[int] = self._loop.create_future()
        self._queue.put((prepared, future))
        return future

    async def stop(self) -> None:
        """Return when all submitted changes are committed and their futures are resolved."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        more = True
        while more:
            batch, more = self._gather()
            if batch:
                numbered = self._write(batch)
                try:
                    self._loop.call_soon_threadsafe(self._finish_batch, batch, numbered)
                except RuntimeError:
                    # The event loop was closed before the store; no caller is left.
                    break
        self._close_connection()

    def _gather(self) -> tuple[list[Waiter], bool]:
        """Wait for a change and take those queued behind it. The second value is False at the end of the queue."""
        batch: list[Waiter] = []
        try:
            waiter = self._queue.get()
            while waiter is not None:
                batch.append(waiter)
                if len(batch) == _MAX_BATCH:
                    return batch, True
                waiter = self._queue.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _finish_batch(self, batch: list[Waiter], numbered: NumberedBatch) -> None:
        """Runs on the event loop: resolve the futures, then notify the listeners."""
        if resolve_futures(batch, numbered):
            self._notify(numbered.revision, numbered.subjects)

    def _write(self, batch: list[Waiter]) -> NumberedBatch:
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._transact(self._connection, [prepared for prepared, _ in batch])
        except Exception as error:
            # Catch all errors: if the writer ended, its callers would wait forever.
            if not isinstance(error, sqlite3.Error):
                _log.exception("Unexpected error in the store's writer")
            self._close_connection()
            message = f"Cannot write to the database: {error}. Nothing was changed; try again later."
            return NumberedBatch(outcomes=[Unavailable(message) for _ in batch])

    def _transact(self, connection: sqlite3.Connection, batch: list[Prepared]) -> NumberedBatch:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        revision, number = execute(_LOAD_COUNTERS).fetchone()
        numbered = number_rows(batch, _apply_batch(connection, batch), revision, number)
        if numbered.events:
            _insert_rows(connection, _INSERT_EVENT, numbered.events)
            execute(_RECORD_COUNTER, (numbered.revision, "revision"))
        if numbered.audit:
            _insert_rows(connection, _INSERT_AUDIT, numbered.audit)
            execute(_RECORD_COUNTER, (numbered.number, "audit"))
        execute("COMMIT")
        return numbered

    def _close_connection(self) -> None:
        """Close the connection, which rolls back an open transaction. The next batch opens a fresh one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _apply_batch(connection: sqlite3.Connection, batch: list[Prepared]) -> list[FairleadError | None]:
    """Apply the changes in order; for each, None or why it was refused.

    The plain algorithm runs one statement after another. But every statement hands Python's lock to the event loop's
    thread and has to wait to get it back. So consecutive changes that only insert into the same table, as with many
    submissions, are one statement; they are applied one by one only if a row was refused.
    """
    refusals: list[FairleadError | None] = []
    for is_insert, group in groupby(batch, _sole_insert):
        changes = list(group)
        if not is_insert:
            refusals += [_apply(connection, prepared.writes) for prepared in changes]
            continue
        for part in parts(changes):
            try:
                _insert_rows(connection, is_insert, [prepared.writes[0].values for prepared in part])
                refusals += [None] * len(part)
            except _REFUSALS:
                refusals += [_apply(connection, prepared.writes) for prepared in part]
    return refusals


def _sole_insert(prepared: Prepared) -> str:
    """The insert statement, if it is the change's only write; else empty."""
    writes = prepared.writes
    return writes[0].text if len(writes) == 1 and writes[0].version == 1 else ""


def _insert_rows(connection: sqlite3.Connection, text: str, rows: list[Row]) -> None:
    for part in parts(rows):
        connection.execute(repeat_values(text, len(part)), tuple(chain.from_iterable(part)))


def _apply(connection: sqlite3.Connection, writes: tuple[WriteStatement, ...]) -> FairleadError | None:
    """Apply the writes of one change, all or none; returns why it was refused, if it was.

    A single write needs no savepoint: SQLite rolls back a failed statement by itself.
    """
    if len(writes) == 1:
        return _apply_write(connection, writes[0])
    if not writes:
        return None
    connection.execute("SAVEPOINT change")
    for write in writes:
        refusal = _apply_write(connection, write)
        if refusal is not None:
            connection.execute("ROLLBACK TO change")
            connection.execute("RELEASE change")
            return refusal
    connection.execute("RELEASE change")
    return None


def _apply_write(connection: sqlite3.Connection, write: WriteStatement) -> FairleadError | None:
    try:
        changed = connection.execute(write.text, write.values).rowcount
    except sqlite3.IntegrityError as error:
        return duplicate_conflict(write, tuple(re.findall(r"\w+\.(\w+)", str(error))))
    except _REFUSALS as error:
        return Refused(f"{write.collection} {write.id} cannot be stored: {error}.")
    return None if changed or not write.version else version_conflict(write)
