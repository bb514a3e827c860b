"""What every store does when things go wrong or change: upgrades, lost servers, full disks, kills, backups."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psycopg
import pytest

from fairlead.model.errors import Refused, Unavailable
from fairlead.store.backup import backup, restore, verify
from fairlead.store.base import Change, Comparison, Delete, Query, Store, Where
from fairlead.store.collections import EVENTS, WORKLOADS
from fairlead.store.migrations import MIGRATIONS, AddColumns, Migration, Table
from fairlead.store.postgres import open_postgres
from fairlead.store.sqlite import SqliteSettings, open_sqlite
from tests.contract.databases import (
    BOTH,
    Database,
    PostgresDatabase,
    SqliteDatabase,
    event,
    eventually,
    make_database,
    named,
    opened,
    put,
    scenario,
)
from tests.postgres import PostgresServer

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return make_database(request.param, request)


def without_category(migration: Migration) -> Migration:
    """The first layout as it might have been: one column fewer."""

    def older(table: Table) -> Table:
        return msgspec.structs.replace(table, columns=table.columns.replace(" category:text", ""))

    return Migration(1, tuple(older(step) if isinstance(step, Table) else step for step in migration.steps))


OLDER = (without_category(MIGRATIONS[0]),)
SINCE = tuple(step for migration in MIGRATIONS[1:] for step in migration.steps)
NEWER = (*OLDER, Migration(2, (AddColumns(table="workloads", columns="category:text", indexed=("category",)), *SINCE)))
OF_CATEGORY = Query(collection=WORKLOADS, where=(Where("category", Comparison.EQUAL, "Train"),))
#: As NEWER, but servers of the older version cannot go on with it.
APART = (*OLDER, msgspec.structs.replace(NEWER[1], admits_previous=False))
BROKEN = (*OLDER, Migration(2, (AddColumns(table="workloads", columns="category:text no_such:text"),)))


def insert_as_older(database: Database) -> None:
    data = msgspec.json.encode(named("a", category="Train")).hex()
    literal = f"X'{data}'" if isinstance(database, SqliteDatabase) else f"'\\x{data}'::bytea"
    database.execute(f"INSERT INTO workloads (id, version, name, data) VALUES ('id-a', 1, 'a', {literal})")


def load_copy(database: Database) -> list[tuple[str, str]]:
    """Ids and names in the copy made before the upgrade."""
    if isinstance(database, PostgresDatabase):
        return database.execute("SELECT id, name FROM fairlead_backup_1.workloads")
    connection = sqlite3.connect(f"{database.path}.layout-1.backup")
    try:
        return connection.execute("SELECT id, name FROM workloads").fetchall()
    finally:
        connection.close()


@scenario
async def test_an_older_layout_is_upgraded_after_a_copy(database: Database) -> None:
    await (await database.open(OLDER)).close()
    insert_as_older(database)
    store = await database.open(NEWER)
    try:
        assert await store.find(OF_CATEGORY) == [named("a", category="Train")]
        await store.commit(put(named("b", category="Build")))
    finally:
        await store.close()
    assert load_copy(database) == [("id-a", "a")]
    again = await database.open(NEWER)
    assert await again.count(Query(collection=WORKLOADS)) == 2
    await again.close()


@scenario
async def test_an_upgrade_that_fails_leaves_all_as_it_was(database: Database) -> None:
    await (await database.open(OLDER)).close()
    insert_as_older(database)
    with pytest.raises(KeyError, match="no_such"):
        await database.open(BROKEN)
    assert database.execute("SELECT value FROM counters WHERE name = 'layout'") == [(1,)]
    await (await database.open(NEWER)).close()


@scenario
async def test_a_newer_layout_is_refused_untouched(database: Database) -> None:
    await (await database.open(APART)).close()
    with pytest.raises(Refused, match="layout 2, this version knows layouts up to 1"):
        await database.open(OLDER)
    await (await database.open(APART)).close()


@scenario
async def test_the_previous_version_can_come_back_and_what_it_wrote_is_filled_in(database: Database) -> None:
    """A rollback: the older version starts on the newer layout, writes, and the newer one comes again."""
    await (await database.open(OLDER)).close()
    await (await database.open(NEWER)).close()
    older = await database.open(OLDER)
    insert_as_older(database)
    await older.close()
    assert database.execute("SELECT value FROM counters WHERE name = 'layout'") == [(2,)]
    newer = await database.open(NEWER)
    try:
        await eventually(lambda: _is_found(newer))
        await eventually(lambda: database.execute("SELECT value FROM counters WHERE name = 'oldest_writer'") == [(2,)])
    finally:
        await newer.close()


async def _is_found(store: Store) -> bool:
    return await store.find(OF_CATEGORY) == [named("a", category="Train")]


@pytest.fixture
def shared_database(postgres_server: PostgresServer) -> PostgresDatabase:
    return PostgresDatabase(postgres_server)


@pytest.mark.xdist_group("postgres")
@scenario
async def test_what_the_previous_version_writes_meanwhile_is_filled_in_when_it_has_gone(
    shared_database: PostgresDatabase,
) -> None:
    """A rolling upgrade: servers of both versions run on the newer layout."""
    older = await shared_database.open(OLDER)
    newer = await shared_database.open(NEWER)
    try:
        insert_as_older(shared_database)
        assert await newer.count(Query(collection=WORKLOADS)) == await older.count(Query(collection=WORKLOADS)) == 1
        # It is not filled as long as the older version may write it again.
        assert await newer.find(OF_CATEGORY) == []
        await older.close()
        await eventually(lambda: _is_found(newer))
    finally:
        await older.close()
        await newer.close()


@pytest.mark.xdist_group("postgres")
@scenario
async def test_a_layout_that_the_previous_version_cannot_use_waits_for_its_end(
    shared_database: PostgresDatabase,
) -> None:
    older = await shared_database.open(OLDER)
    try:
        with pytest.raises(Refused, match="stop all servers of that version first"):
            await shared_database.open(APART)
        await older.commit(Change(events=(event("a"),)))
    finally:
        await older.close()
    await (await shared_database.open(APART)).close()


@scenario
async def test_two_servers_may_start_on_an_empty_database_at_once(database: Database) -> None:
    stores = await asyncio.gather(*(database.open() for _ in range(4)))
    await asyncio.gather(*(store.commit(put(named(f"w{n}"))) for n, store in enumerate(stores)))
    assert await stores[0].count(Query(collection=WORKLOADS)) == 4
    for store in stores:
        await store.close()


@contextmanager
def writing(database: Database) -> Iterator["subprocess.Popen[str]"]:
    kind = "sqlite" if isinstance(database, SqliteDatabase) else "postgres"
    command = [sys.executable, "-m", "tests.contract.store_killed", kind, database.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("acknowledged", [1, 100, 700])
def test_what_was_acknowledged_survives_a_kill(database: Database, acknowledged: int) -> None:
    with writing(database) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(acknowledged)]
        process.kill()
        lines += [line for line in process.stdout if line.endswith("\n")]

    async def check() -> None:
        async with opened(database) as store:
            known = {record.name for record in await store.find(Query(collection=WORKLOADS))}
            events = {each.revision: each.subject_id for each in await store.find(Query(collection=EVENTS))}
            for name, revision in (line.split() for line in lines):
                assert {name, f"{name}-twin"} <= known
                assert events[int(revision)] == name
            # Nothing is there by half, and no revision is missing.
            assert len(known) == 2 * len(events)
            assert sorted(events) == list(range(1, len(events) + 1))

    assert all(lines)
    asyncio.run(check())


async def is_written(store: Store, name: str) -> bool:
    try:
        await store.commit(put(named(name), events=(event(name),)))
    except Unavailable:
        return False
    return True


@pytest.mark.xdist_group("postgres")
@scenario
async def test_postgres_may_be_restarted_at_any_time(postgres_server: PostgresServer) -> None:
    database = PostgresDatabase(postgres_server)
    here, there = await database.open(), await database.open()
    heard: list[str] = []
    here.subscribe(lambda revision, subjects: heard.extend(id for _, id in subjects))
    try:
        assert await is_written(here, "before")
        postgres_server.stop()
        try:
            for _ in range(2):
                with pytest.raises(Unavailable, match="Nothing was changed"):
                    await here.commit(put(named("meanwhile")))
                with pytest.raises(Unavailable):
                    await here.get(WORKLOADS, "id-before")
                with pytest.raises(Unavailable):
                    await here.count(Query(collection=WORKLOADS))
            with pytest.raises(Unavailable):
                await open_postgres(database.address)
        finally:
            postgres_server.start()
        # At once, without a failure: what was connected before is not trusted.
        assert await is_written(there, "after-by-other")
        assert await is_written(here, "after")
        assert [record.name for record in await here.find(Query(collection=WORKLOADS))] == [
            "after",
            "after-by-other",
            "before",
        ]
        await eventually(lambda: heard == ["before", "after-by-other", "after"])
        # The listening connection is back as well: what only the other commits is heard again.
        assert await is_written(there, "last")
        await eventually(lambda: heard[-1] == "last")
    finally:
        await here.close()
        await there.close()


@pytest.mark.xdist_group("postgres")
@scenario
async def test_postgres_connections_may_be_cut_under_load(postgres_server: PostgresServer) -> None:
    """Everything acknowledged is there; what failed said so."""
    database = PostgresDatabase(postgres_server)
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fairlead'"
    acknowledged: set[str] = set()

    async def work(store: Store, writer: int) -> None:
        for number in range(30):
            if await is_written(store, f"w{writer}-{number}"):
                acknowledged.add(f"w{writer}-{number}")

    async with opened(database) as store:
        working = asyncio.gather(*(work(store, writer) for writer in range(16)))
        for _ in range(5):
            await asyncio.to_thread(database.execute, cut)
        await working
        known = {record.name for record in await store.find(Query(collection=WORKLOADS))}
        assert acknowledged <= known
        assert await is_written(store, "after")
        revisions = [each.revision for each in await store.find(Query(collection=EVENTS))]
        assert revisions == list(range(1, len(known) + 2))


@scenario
async def test_a_full_disk_refuses_writes_and_is_recovered_from(tmp_path: Path) -> None:
    store = await open_sqlite(tmp_path / "fairlead.db", SqliteSettings(max_pages=120))
    try:
        names: list[str] = []
        while await is_written(store, name := f"w{len(names)}"):
            names.append(name)
        assert len(names) > 10
        with pytest.raises(Unavailable, match="full"):
            await store.commit(put(named("big", spec=msgspec.Raw(b'"' + b"x" * 100_000 + b'"'))))
        assert await store.get(WORKLOADS, f"id-{names[-1]}") == named(names[-1])
        assert await store.count(Query(collection=WORKLOADS)) == len(names)
        half = names[: len(names) // 2]
        await store.commit(Change(writes=tuple(Delete(WORKLOADS, f"id-{name}") for name in half)))
        assert await is_written(store, "again")
    finally:
        await store.close()


@scenario
async def test_a_file_that_another_process_holds_is_waited_for_and_then_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "fairlead.db"
    store = await open_sqlite(path, SqliteSettings(timeout=0.2))
    try:
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="locked"):
                await store.commit(put(named("a")))
            assert await store.count(Query(collection=WORKLOADS)) == 0
            other.execute("ROLLBACK")
        finally:
            other.close()
        assert await is_written(store, "a")
    finally:
        await store.close()


@scenario
async def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Cannot open"):
        await open_sqlite(tmp_path / "missing" / "fairlead.db")
    (tmp_path / "text").write_text("this is no database, however long it is, and never was " * 20)
    with pytest.raises(Unavailable, match="not a database"):
        await open_sqlite(tmp_path / "text")
    with pytest.raises(Unavailable, match="Cannot open"):
        await open_postgres(f"postgresql://postgres@/none?host={tmp_path}")


@scenario
async def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    async with opened(SqliteDatabase(tmp_path)) as store:
        await store.commit(put(named("a")))
        modes = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)}
        assert modes == {f"fairlead.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}


@scenario
async def test_a_backup_restores_what_was(database: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    odd = named("odd", created_by="tab\tline\nback\\.\\", spec=msgspec.Raw(b'"\xc3\xa4"'))
    async with opened(database) as store:
        await store.commit(put(named("a"), odd, events=(event("a"),)))
        # Beside a running server.
        await asyncio.to_thread(backup, database.address, copy)
        await store.commit(put(named("b"), events=(event("b"),)))
        with pytest.raises(Refused, match="stop it first"):
            await asyncio.to_thread(restore, database.address, copy)
    with pytest.raises(Refused, match="already exists"):
        backup(database.address, copy)
    assert copy.stat().st_mode & 0o777 == 0o600
    restore(database.address, copy)
    async with opened(database) as store:
        assert [record.name for record in await store.find(Query(collection=WORKLOADS))] == ["a", "odd"]
        assert await store.get(WORKLOADS, odd.id) == odd
        assert await store.commit(put(named("c"), events=(event("c"),))) == 2


@pytest.mark.xdist_group("postgres")
@scenario
async def test_a_restore_waits_for_connections_that_are_closing(
    shared_database: PostgresDatabase, tmp_path: Path
) -> None:
    database, copy = shared_database, tmp_path / "copy"
    async with opened(database) as store:
        await store.commit(put(named("a")))
        await asyncio.to_thread(backup, database.address, copy)
        restored = asyncio.create_task(asyncio.to_thread(restore, database.address, copy))
        waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep%'"
        await eventually(lambda: database.execute(f"{waits} AND pid <> pg_backend_pid()"))
    await restored
    async with opened(database) as store:
        assert [record.name for record in await store.find(Query(collection=WORKLOADS))] == ["a"]


@scenario
async def test_a_damaged_backup_changes_nothing(database: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    async with opened(database) as store:
        await store.commit(put(*(named(f"w{n}") for n in range(50))))
    backup(database.address, copy)
    whole = copy.read_bytes()
    for name, damaged in {"cut": whole[: len(whole) * 2 // 3], "none": b"something else", "empty": b""}.items():
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises((Refused, Unavailable)):
            restore(database.address, tmp_path / name)
    with pytest.raises(Refused, match=r"backup .* does not exist"):
        restore(database.address, tmp_path / "missing")
    async with opened(database) as store:
        assert await store.count(Query(collection=WORKLOADS)) == 50


@scenario
async def test_a_backup_is_verified_without_a_change_of_the_database(database: Database, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    async with opened(database) as store:
        await store.commit(put(*(named(f"w{n}") for n in range(5)), events=(event("w0"),)))
        backup(database.address, copy)
        await store.commit(put(named("later")))
        # Beside a running server, too.
        assert await asyncio.to_thread(verify, database.address, copy) == 6
        assert await store.count(Query(collection=WORKLOADS)) == 6
    assert [name for name in os.listdir(tmp_path) if name.startswith(("copy", "tmp"))] == ["copy"]


@scenario
async def test_a_backup_with_an_unreadable_record_is_found_out(database: Database, tmp_path: Path) -> None:
    async with opened(database) as store:
        await store.commit(put(named("a")))
    literal = "X'00'" if isinstance(database, SqliteDatabase) else "'\\x00'::bytea"
    database.execute(f"UPDATE workloads SET data = {literal}")
    backup(database.address, tmp_path / "copy")
    with pytest.raises(Refused, match="Record id-a of workloads in the backup cannot be read"):
        verify(database.address, tmp_path / "copy")


@scenario
async def test_a_backup_replaces_a_damaged_database(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path)
    async with opened(database) as store:
        await store.commit(put(named("a")))
    backup(database.address, tmp_path / "copy")
    await asyncio.to_thread(Path(database.address).write_bytes, b"not a database " * 1000)
    restore(database.address, tmp_path / "copy")
    async with opened(database) as store:
        assert await store.count(Query(collection=WORKLOADS)) == 1


def test_a_backup_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"database .* does not exist"):
        backup(str(tmp_path / "missing.db"), tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.xdist_group("postgres")
def test_a_backup_of_a_strange_postgres_is_refused(postgres_server: PostgresServer, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no Fairlead tables"):
        backup(postgres_server.new_database(), tmp_path / "copy")
    with pytest.raises(Unavailable):
        backup(f"postgresql://postgres@/none?host={tmp_path}", tmp_path / "copy")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.xdist_group("postgres")
@scenario
async def test_a_postgres_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    with psycopg.connect(postgres_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(Refused, match="UTF8"):
        await open_postgres(postgres_server.url("latin"))
