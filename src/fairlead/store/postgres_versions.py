"""Servers of two versions on one PostgreSQL database, as during a rolling upgrade.

The connection on which a server writes holds a shared advisory lock for the newest layout that the server knows. So
another server sees exactly which versions can write, and the locks go when the server does, however it ends.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow

from fairlead.model.errors import Refused
from fairlead.store.migrations import Migration, breaks_previous, load_version, render_record_writer
from fairlead.store.postgres_writer import LOCK, AsyncConnection
from fairlead.store.refill import needs_refill, older_layouts, record_refilled, refill
from fairlead.store.sql import POSTGRES

#: The first key of the locks: an arbitrary number that no other program uses. The second one is the layout.
_WRITERS = 0x66616972


async def enter_as_writer(connection: AsyncConnection, layout: int) -> None:
    """Hold the lock of this layout as long as the connection lasts, and note it if the database has a newer one."""
    await connection.execute("SELECT pg_advisory_lock_shared(%s::int4, %s::int4)", (_WRITERS, layout))
    await connection.execute(render_record_writer(POSTGRES), (layout, layout))


def check_older_writers(connection: Connection[TupleRow], migrations: Sequence[Migration]) -> None:
    """Refuse an upgrade that running servers of older versions could not go on with."""
    version = load_version(connection, POSTGRES)
    if not breaks_previous(migrations, version):
        return
    for layout in range(version, migrations[-1].number):
        if not _try_lock(connection, "xact_lock", layout):
            raise Refused(
                f"A server of an older version is running on this database, which has layout {version}. It cannot go "
                f"on with layout {migrations[-1].number}: stop all servers of that version first."
            )


def refill_after_upgrade(connection: Connection[TupleRow], migrations: Sequence[Migration]) -> bool:
    """Fill new columns before this server serves. False if servers of older versions may still write without them."""
    if not needs_refill(connection, POSTGRES, migrations):
        return True
    refill(connection, POSTGRES, migrations, partial(_alone, connection))
    return False


def refill_if_alone(conninfo: str, migrations: Sequence[Migration]) -> bool:
    """Fill what servers of older versions left out, if none of them can write any more; False if one can.

    It does not wait for their locks: a server that waits would keep further servers of those versions from starting.
    """
    with psycopg.connect(conninfo, autocommit=True) as connection:
        if not all(_try_lock(connection, "lock", layout) for layout in older_layouts(connection, POSTGRES, migrations)):
            return False
        if not refill_after_upgrade(connection, migrations):
            record_refilled(connection, POSTGRES, migrations)
    return True


def _try_lock(connection: Connection[TupleRow], until: Literal["lock", "xact_lock"], layout: int) -> bool:
    """Lock out writers of that layout until the connection or the transaction ends; False if there are some."""
    text = f"SELECT pg_try_advisory_{until}(%s::int4, %s::int4)"
    row = connection.execute(text, (_WRITERS, layout)).fetchone()
    return row is not None and bool(row[0])


@contextmanager
def _alone(connection: Connection[TupleRow]) -> Iterator[None]:
    """A transaction in which no server writes: all of them lock this row first."""
    with connection.transaction():
        connection.execute(LOCK)
        yield
