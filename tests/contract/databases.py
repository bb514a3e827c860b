"""What the store's suites share: both databases behind one way to open them, and short ways to say a change."""

import asyncio
import functools
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairlead.model.records.event import AuditLine, Event
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put, Store
from fairlead.store.collections import WORKLOADS
from fairlead.store.migrations import MIGRATIONS, Migration
from fairlead.store.postgres import PostgresSettings, open_postgres
from fairlead.store.sqlite import SqliteSettings, open_sqlite
from tests.builders import workload
from tests.postgres import PostgresServer

DEADLINE = 60.0


def clock() -> int:
    return 1_000


class SqliteDatabase:
    """A file; opened again it is the same database."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "fairlead.db"
        self.address = str(self.path)

    async def open(self, migrations: tuple[Migration, ...] = MIGRATIONS) -> Store:
        return await open_sqlite(self.path, SqliteSettings(migrations=migrations))

    def execute(self, text: str) -> list[Any]:
        """Straight to the database, past the store."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()

    def explain(self, text: str, values: Sequence[Any]) -> str:
        """How it would run a statement."""
        connection = sqlite3.connect(self.path)
        try:
            return " / ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values))
        finally:
            connection.close()


class PostgresDatabase:
    def __init__(self, server: PostgresServer) -> None:
        self.address = server.new_database()

    async def open(self, migrations: tuple[Migration, ...] = MIGRATIONS) -> Store:
        return await open_postgres(self.address, PostgresSettings(migrations=migrations))

    def execute(self, text: str) -> list[Any]:
        with psycopg.connect(self.address, autocommit=True, options="-c search_path=fairlead") as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def explain(self, text: str, values: Sequence[Any]) -> str:
        """How it would run a statement, given the rows that it has now."""
        with psycopg.connect(self.address, autocommit=True, options="-c search_path=fairlead") as connection:
            connection.execute("ANALYZE")
            return " / ".join(row[0] for row in connection.execute(f"EXPLAIN {text}", values))


Database = SqliteDatabase | PostgresDatabase

#: PostgreSQL's tests stay in one process, which has the one server.
BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]


def make_database(kind: str, request: pytest.FixtureRequest) -> Database:
    if kind == "sqlite":
        return SqliteDatabase(request.getfixturevalue("tmp_path"))
    return PostgresDatabase(request.getfixturevalue("postgres_server"))


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Store]:
    store = await database.open()
    try:
        yield store
    finally:
        await store.close()


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on an event loop of its own, within a deadline."""

    @functools.wraps(test)
    def run(*arguments: Any, **members: Any) -> None:
        asyncio.run(_within(test(*arguments, **members)))

    async def _within(work: Awaitable[None]) -> None:
        async with asyncio.timeout(2 * DEADLINE):
            await work

    return run


async def eventually(condition: Callable[[], Awaitable[Any]] | Callable[[], Any]) -> None:
    """Until the condition holds; it is asked again whenever the loop has had a turn."""
    async with asyncio.timeout(DEADLINE):
        while True:
            answer = condition()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            await asyncio.sleep(0.01)


def event(subject_id: str, reason: str = "Made", **members: Any) -> Event:
    return Event(at=members.pop("at", 0), subject="workloads", subject_id=subject_id, reason=reason, **members)


def line(subject_id: str, **members: Any) -> AuditLine:
    at = members.pop("at", 0)
    return AuditLine(at=at, caller="ada", operation="submit", subject="workloads", subject_id=subject_id, **members)


def put(*records: Workload, events: tuple[Event, ...] = ()) -> Change:
    return Change(writes=tuple(Put(WORKLOADS, record) for record in records), events=events)


def named(name: str, **members: Any) -> Workload:
    return workload(name, **members)
