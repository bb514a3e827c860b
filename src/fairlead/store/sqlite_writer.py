"""The one thread that writes to SQLite: what gathers while a commit syncs to disk goes into the next commit together.

`sqlite.py` hands it prepared changes and awaits their futures. A change that lost a race is undone alone; a disk that
is full or broken fails everybody who waits, and the next commit tries again.
"""

import asyncio
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from itertools import chain, groupby
from queue import Empty, SimpleQueue
from typing import Any

from fairlead.model.errors import FairleadError, Refused, Unavailable
from fairlead.store.changes import Numbered, Prepared, Waiter, Write, lost_race, number_rows, settle, taken
from fairlead.store.collections import AUDIT, EVENTS
from fairlead.store.sql import SQLITE, parts, repeat_values, statements

_log = logging.getLogger(__name__)

#: More changes than this wait for the next commit: it bounds what one waits for the others.
_BATCH_MOST = 512

_INSERT_EVENT = statements(EVENTS.name, SQLITE.mark).insert
_INSERT_AUDIT = statements(AUDIT.name, SQLITE.mark).insert
_LOAD_COUNTERS = "SELECT (SELECT value FROM counters WHERE name = 'revision'), value FROM counters WHERE name = 'audit'"
_RECORD_COUNTER = "UPDATE counters SET value = ? WHERE name = ?"

#: What a row of our own making can be refused for; everything else is the database's trouble.
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
        tell: Callable[[int, Sequence[tuple[str, str]]], None],
    ) -> None:
        self._connect = connect
        self._loop = loop
        self._tell = tell
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
        """Returns when everything submitted before is committed and its waiters are told."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        more = True
        while more:
            batch, more = self._gather()
            if batch:
                made = self._write(batch)
                try:
                    self._loop.call_soon_threadsafe(self._settle, batch, made)
                except RuntimeError:
                    # The loop was closed without closing the store: nobody is left to be told.
                    break
        self._let_go()

    def _gather(self) -> tuple[list[Waiter], bool]:
        """Waits for one change and takes those that are there with it; and whether more may come."""
        batch: list[Waiter] = []
        try:
            waiter = self._queue.get()
            while waiter is not None:
                batch.append(waiter)
                if len(batch) == _BATCH_MOST:
                    return batch, True
                waiter = self._queue.get_nowait()
        except Empty:
            return batch, True
        return batch, False

    def _settle(self, batch: list[Waiter], made: Numbered) -> None:
        """On the event loop: answer those who still wait, then tell the listeners."""
        if settle(batch, made):
            self._tell(made.revision, made.subjects)

    def _write(self, batch: list[Waiter]) -> Numbered:
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._transact(self._connection, [prepared for prepared, _ in batch])
        except Exception as error:
            # Not only the database's own errors: a writer that ended would leave everybody waiting for ever.
            if not isinstance(error, sqlite3.Error):
                _log.exception("the store's writer met an error of our own")
            self._let_go()
            message = f"The database cannot be written now: {error}. Nothing was changed; try again later."
            return Numbered(outcomes=[Unavailable(message) for _ in batch])

    def _transact(self, connection: sqlite3.Connection, batch: list[Prepared]) -> Numbered:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        revision, number = execute(_LOAD_COUNTERS).fetchone()
        made = number_rows(batch, _apply_batch(connection, batch), revision, number)
        if made.events:
            _insert_rows(connection, _INSERT_EVENT, made.events)
            execute(_RECORD_COUNTER, (made.revision, "revision"))
        if made.audit:
            _insert_rows(connection, _INSERT_AUDIT, made.audit)
            execute(_RECORD_COUNTER, (made.number, "audit"))
        execute("COMMIT")
        return made

    def _let_go(self) -> None:
        """Closing undoes what is not committed; after an error a fresh connection is sure to have no leftovers."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _apply_batch(connection: sqlite3.Connection, batch: list[Prepared]) -> list[FairleadError | None]:
    """Make the changes in order; for each None, or why it was not made.

    The plain way is one statement after another. But every statement hands Python's lock to the event loop's thread
    and has to wait until it gets it back; so neighbours that only insert into the same table, as under many
    submissions, go in as one statement, and one by one only if some row of them was refused.
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
    """The text of the insert that is all of this change's writes, or nothing."""
    writes = prepared.writes
    return writes[0].text if len(writes) == 1 and writes[0].version == 1 else ""


def _insert_rows(connection: sqlite3.Connection, text: str, rows: list[tuple[Any, ...]]) -> None:
    for part in parts(rows):
        connection.execute(repeat_values(text, len(part)), tuple(chain.from_iterable(part)))


def _apply(connection: sqlite3.Connection, writes: tuple[Write, ...]) -> FairleadError | None:
    """Make the writes of one change, all or none of them; or say why not.

    A single write needs no savepoint: SQLite undoes a failed statement by itself.
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


def _apply_write(connection: sqlite3.Connection, write: Write) -> FairleadError | None:
    try:
        changed = connection.execute(write.text, write.values).rowcount
    except sqlite3.IntegrityError as error:
        return taken(write, tuple(re.findall(r"\w+\.(\w+)", str(error))))
    except _REFUSALS as error:
        return Refused(f"{write.collection} {write.id} cannot be stored: {error}.")
    return None if changed or not write.version else lost_race(write)
