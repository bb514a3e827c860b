"""What every store finds, in which order: the same on all of them, to the last letter and the last null."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.model.records.assets import Scope
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import COLLECTIONS, EVENTS, PODS, WORKLOADS
from fairlead.store.migrations import MIGRATIONS, Table
from fairlead.store.sql import POSTGRES, SQLITE, render_find
from tests.contract.databases import BOTH, Database, SqliteDatabase, event, make_database, named, opened, put, scenario

RECORDS = (
    named("alpha", created_at=30, priority=50, completed_at=5, created_by="Ada@Example.com", allocated_gpu=0.5),
    named("Beta", created_at=10, priority=100, node_pools=("default", "a,b"), created_by="50%_off!"),
    named("gamma", created_at=20, priority=50, phase=Phase.RUNNING, created_by="50x%off", allocated_gpu=2.0),
    named("delta", created_at=20, priority=-7, completed_at=9, deleted_at=9, created_by="äöü"),
    named("alphabet", created_at=40, priority=2**40, created_by=r"back\slash'quote", running_time=61_500),
)


def by_age(workload: Workload) -> tuple[int, str]:
    return workload.created_at, workload.id


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return make_database(request.param, request)


IS = Comparison
CASES: dict[str, tuple[tuple[str, Comparison, Any], str]] = {
    "equal text": (("name", IS.EQUAL, "alpha"), "alpha"),
    "equal heeds case": (("name", IS.EQUAL, "ALPHA"), ""),
    "equal number": (("priority", IS.EQUAL, 50), "alpha gamma"),
    "equal number given as text": (("priority", IS.EQUAL, "50"), "alpha gamma"),
    "equal beyond 64 bits": (("priority", IS.EQUAL, 10**30), ""),
    "at most beyond 64 bits": (("priority", IS.AT_MOST, 10**30), "Beta alpha alphabet delta gamma"),
    "integer against a fraction": (("priority", IS.ABOVE, 50.5), "Beta alphabet"),
    "equal real": (("allocated_gpu", IS.EQUAL, 0.5), "alpha"),
    "equal none": (("completed_at", IS.EQUAL, None), "Beta alphabet gamma"),
    "equal with quotes": (("submitted_by", IS.EQUAL, r"back\slash'quote"), "alphabet"),
    "not equal finds nulls": (("completed_at", IS.NOT_EQUAL, 5), "Beta alphabet delta gamma"),
    "not equal none": (("completed_at", IS.NOT_EQUAL, None), "alpha delta"),
    "not equal text": (("phase", IS.NOT_EQUAL, "Creating"), "gamma"),
    "at most": (("created_at", IS.AT_MOST, 20), "Beta delta gamma"),
    "at least": (("created_at", IS.AT_LEAST, 20), "alpha alphabet delta gamma"),
    "below": (("created_at", IS.BELOW, 20), "Beta"),
    "above": (("created_at", IS.ABOVE, 20), "alpha alphabet"),
    "above leaves nulls out": (("completed_at", IS.ABOVE, 0), "alpha delta"),
    "below text by bytes": (("name", IS.BELOW, "a"), "Beta"),
    "contains": (("name", IS.CONTAINS, "lph"), "alpha alphabet"),
    "contains in any case": (("submitted_by", IS.CONTAINS, "aDa@eXAMPLE"), "alpha"),
    "contains a comma": (("nodepool", IS.CONTAINS, "a,b"), "Beta"),
    "contains percent": (("submitted_by", IS.CONTAINS, "%"), "Beta gamma"),
    "contains percent and underscore": (("submitted_by", IS.CONTAINS, "0%_o"), "Beta"),
    "contains underscore": (("submitted_by", IS.CONTAINS, "_"), "Beta"),
    "contains the escape": (("submitted_by", IS.CONTAINS, "off!"), "Beta"),
    "contains a backslash": (("submitted_by", IS.CONTAINS, "k\\s"), "alphabet"),
    "contains beyond ASCII": (("submitted_by", IS.CONTAINS, "ö"), "delta"),
    "contains beyond ASCII heeds case": (("submitted_by", IS.CONTAINS, "Ö"), ""),
    "contains in a number": (("priority", IS.CONTAINS, "0"), "Beta alpha alphabet gamma"),
    "contains NUL": (("name", IS.CONTAINS, "\0"), ""),
    "lacks": (("name", IS.LACKS, "ALPH"), "Beta delta gamma"),
    "lacks finds nulls": (("completed_at", IS.LACKS, "5"), "Beta alphabet delta gamma"),
    "starts": (("name", IS.STARTS, "alp"), "alpha alphabet"),
    "starts in any case": (("name", IS.STARTS, "b"), "Beta"),
    "starts with percent": (("submitted_by", IS.STARTS, "%"), ""),
    "starts with underscore": (("submitted_by", IS.STARTS, "50_"), ""),
    "ends": (("name", IS.ENDS, "a"), "Beta alpha delta gamma"),
    "ends in the escape": (("submitted_by", IS.ENDS, "!"), "Beta"),
    "one of": (("name", IS.ONE_OF, ["Beta", "gamma", "none"]), "Beta gamma"),
    "one of with a comma": (("nodepool", IS.ONE_OF, ("default,a,b",)), "Beta"),
    "one of numbers": (("priority", IS.ONE_OF, (50, -7, 2**40)), "alpha alphabet delta gamma"),
    "one of reals": (("allocated_gpu", IS.ONE_OF, (0.5, 2)), "alpha gamma"),
    "one of none": (("name", IS.ONE_OF, ()), ""),
    "is null": (("deleted_at", IS.IS_NULL, True), "Beta alpha alphabet gamma"),
    "is not null": (("deleted_at", IS.IS_NULL, False), "delta"),
    "by id": (("id", IS.ONE_OF, ["id-alpha", "id-delta"]), "alpha delta"),
    "name of the living": (("live_name", IS.EQUAL, "delta"), ""),
    "active": (("is_active", IS.EQUAL, 1), "Beta alpha alphabet delta gamma"),
    "seconds": (("total_running_time_seconds", IS.EQUAL, 61), "alphabet"),
}


@scenario
async def test_comparisons(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(*RECORDS))
        found = {}
        for name, (where, _) in CASES.items():
            query = Query(collection=WORKLOADS, where=(Where(*where),))
            records = await store.find(query)
            assert await store.count(query) == len(records), name
            found[name] = " ".join(sorted(record.name for record in records))
    assert found == {name: want for name, (_, want) in CASES.items()}


ORDERS: dict[str, tuple[tuple[tuple[str, bool], ...], str]] = {
    "by id when nothing is said": ((), "Beta alpha alphabet delta gamma"),
    "upward, ties by id": ((("created_at", False),), "Beta delta gamma alpha alphabet"),
    "downward, ties too": ((("created_at", True),), "alphabet alpha gamma delta Beta"),
    "null below every value": ((("completed_at", False),), "Beta alphabet gamma alpha delta"),
    "null last downward": ((("completed_at", True),), "delta alpha gamma alphabet Beta"),
    "two columns": ((("priority", True), ("name", True)), "alphabet Beta gamma alpha delta"),
    "text by bytes": ((("submitted_by", False),), "Beta gamma alpha alphabet delta"),
    "id downward": ((("id", True),), "gamma delta alphabet alpha Beta"),
}


@scenario
async def test_orders(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(*RECORDS))
        found = {}
        for name, (order, _) in ORDERS.items():
            records = await store.find(Query(collection=WORKLOADS, order=order))
            found[name] = " ".join(record.name for record in records)
    assert found == {name: want for name, (_, want) in ORDERS.items()}


@scenario
async def test_pages_of_a_list(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(*RECORDS))

        async def names(**members: Any) -> list[str]:
            query = Query(collection=WORKLOADS, order=(("created_at", False),), **members)
            return [record.name for record in await store.find(query)]

        assert await names(limit=2) == ["Beta", "delta"]
        assert await names(limit=2, offset=2) == ["gamma", "alpha"]
        assert await names(offset=4) == ["alphabet"]
        assert await names(limit=0) == []
        assert await names(limit=10**30, offset=10**30) == []
        assert await store.count(Query(collection=WORKLOADS, limit=1, offset=3)) == 5


def in_projects(*projects: str | None, where: tuple[Where, ...] = (), **members: Any) -> Query:
    """A page of the list of a user who sees only these projects."""
    listed = Where("is_listed", IS.EQUAL, 1)
    members = {"order": (("created_at", False),), "limit": 50, **members}
    return Query(collection=WORKLOADS, where=(listed, Where("project_id", IS.ONE_OF, projects), *where), **members)


#: Two of each age, in five projects, in an order that is neither that of ids nor that of ages.
OF_PROJECTS = tuple(
    named(f"w{n:02}", project_id=f"p{n % 5}", created_at=(n * 7 % 20) // 2, priority=n % 3, created_by=f"user{n % 4}")
    for n in range(20)
)
PAGES_OF_PROJECTS: dict[str, tuple[Query, Callable[[Workload], bool], Callable[[Workload], Any], slice]] = {
    "several": (in_projects("p1", "p3", "p4"), lambda one: one.project_id in "p1p3p4", by_age, slice(50)),
    "one": (in_projects("p1"), lambda one: one.project_id == "p1", by_age, slice(50)),
    "none": (in_projects(), lambda one: False, by_age, slice(50)),
    "named twice, and null": (in_projects("p1", "p1", None), lambda one: one.project_id == "p1", by_age, slice(50)),
    "downward, ties too": (
        in_projects("p1", "p3", order=(("created_at", True),)),
        lambda one: one.project_id in "p1p3",
        lambda one: (-one.created_at, -int(one.name[1:])),
        slice(50),
    ),
    "the second page": (
        in_projects("p1", "p3", "p4", offset=4, limit=4),
        lambda one: one.project_id in "p1p3p4",
        by_age,
        slice(4, 8),
    ),
    "by what no index has": (
        in_projects("p1", "p3", order=(("priority", True),), limit=3),
        lambda one: one.project_id in "p1p3",
        lambda one: (-one.priority, -int(one.name[1:])),
        slice(3),
    ),
    "by age, then by another column": (
        in_projects("p1", "p2", "p3", order=(("created_at", False), ("priority", True)), limit=9),
        lambda one: one.project_id in "p1p2p3",
        lambda one: (one.created_at, -one.priority, -int(one.name[1:])),
        slice(9),
    ),
    "with a second short list": (
        in_projects("p1", "p3", where=(Where("submitted_by", IS.ONE_OF, ("user1", "user3")),)),
        lambda one: one.project_id in "p1p3" and one.created_by in ("user1", "user3"),
        by_age,
        slice(50),
    ),
    "with a filter and a search": (
        in_projects(
            "p1", "p3", "p4", where=(Where("priority", IS.ABOVE, 0),), search="USER1", search_in=("submitted_by",)
        ),
        lambda one: one.project_id in "p1p3p4" and one.priority > 0 and one.created_by == "user1",
        by_age,
        slice(50),
    ),
}


@scenario
async def test_pages_of_a_few_projects(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(*OF_PROJECTS))
        found, want = {}, {}
        for name, (query, is_wanted, order, page) in PAGES_OF_PROJECTS.items():
            found[name] = [one.id for one in await store.find(query)]
            want[name] = [one.id for one in sorted(filter(is_wanted, OF_PROJECTS), key=order)[page]]
    assert found == want


@scenario
async def test_a_page_of_a_few_projects_reads_no_more_than_it_shows(database: Database) -> None:
    """The projects' workloads are merged in the order of an index, however many they have; nothing is sorted."""
    async with opened(database) as store:
        await store.commit(put(*(named(f"w{n}", project_id=f"p{n % 20}", created_at=n) for n in range(2000))))
    dialect = SQLITE if isinstance(database, SqliteDatabase) else POSTGRES
    for descending in (False, True):
        query = in_projects("p1", "p3", "p4", order=(("created_at", descending),))
        plan = database.explain(*render_find(query, dialect))
        assert plan.count("workloads_by_is_listed_project_id_created_at_id") == 3
        assert ("MERGE (UNION ALL)" if dialect is SQLITE else "Merge Append") in plan
        assert "TEMP B-TREE" not in plan
        assert "Incremental Sort" not in plan
        assert "->  Sort" not in plan


@scenario
async def test_search_and_conditions_together(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(*RECORDS))

        async def names(search: str, *where: Where, search_in: tuple[str, ...] = ("name", "submitted_by")) -> str:
            query = Query(collection=WORKLOADS, search=search, search_in=search_in, where=where)
            records = await store.find(query)
            assert await store.count(query) == len(records)
            return " ".join(record.name for record in records)

        assert await names("OFF") == "Beta gamma"
        assert await names("%_") == "Beta"
        assert await names("e") == "Beta alpha alphabet delta"
        assert await names("e", Where("priority", IS.EQUAL, 50), Where("created_at", IS.EQUAL, 30)) == "alpha"
        assert await names("e", search_in=()) == ""
        assert await names("") == "Beta alpha alphabet delta gamma"


@scenario
async def test_events_after_a_revision(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(Change(events=tuple(event(f"w{n % 2}", project_id=str(n)) for n in range(10))))
        where = (Where("revision", IS.ABOVE, 4), Where("subject_id", IS.EQUAL, "w1"))
        records = await store.find(Query(collection=EVENTS, where=where, order=(("revision", True),), limit=2))
        assert [each.revision for each in records] == [10, 8]


PLANS: dict[str, tuple[Query, str]] = {
    "active workloads": (
        Query(collection=WORKLOADS, where=(Where("is_active", IS.EQUAL, 1),)),
        "workloads_by_is_active",
    ),
    "workloads due for deletion": (
        Query(collection=WORKLOADS, where=(Where("delete_at", IS.AT_MOST, 5),)),
        "workloads_by_delete_at",
    ),
    "the next to be due": (
        Query(
            collection=WORKLOADS,
            where=(Where("delete_at", IS.IS_NULL, False),),
            order=(("delete_at", False),),
            limit=1,
        ),
        "workloads_by_delete_at",
    ),
    "long deleted": (
        Query(collection=WORKLOADS, where=(Where("deleted_at", IS.BELOW, 5),)),
        "workloads_by_deleted_at",
    ),
    "the newest": (
        Query(collection=WORKLOADS, order=(("created_at", True),), limit=50),
        "workloads_by_created_at",
    ),
    "pods of a workload": (
        Query(collection=PODS, where=(Where("workload_id", IS.ONE_OF, ["a"]),)),
        "pods_by_workload_id",
    ),
    "pods of a workload that have not ended, of which there may be thousands in all": (
        Query(collection=PODS, where=(Where("is_active", IS.EQUAL, 1), Where("workload_id", IS.ONE_OF, ["a"]))),
        "pods_by_workload_id",
    ),
    "events of a workload": (
        Query(collection=EVENTS, where=(Where("subject_id", IS.EQUAL, "a"),), order=(("revision", True),)),
        "events_by_subject_id",
    ),
    "events after a revision": (
        Query(collection=EVENTS, where=(Where("revision", IS.ABOVE, 7),), limit=5),
        "INTEGER PRIMARY KEY (rowid>",
    ),
}


@pytest.mark.parametrize("name", PLANS)
@scenario
async def test_what_is_asked_often_walks_no_whole_table(name: str, tmp_path: Path) -> None:
    query, want_index = PLANS[name]
    database = SqliteDatabase(tmp_path)
    await (await database.open()).close()
    assert want_index in database.explain(*render_find(query, SQLITE))


@scenario
async def test_an_unknown_column_never_reaches_the_database(database: Database) -> None:
    async with opened(database) as store:
        with pytest.raises(KeyError, match="no column"):
            await store.find(Query(collection=WORKLOADS, where=(Where("name = name --", IS.EQUAL, 1),)))
        with pytest.raises(KeyError, match="no column"):
            await store.find(Query(collection=WORKLOADS, order=(("data; --", True),)))


@scenario
async def test_every_collection_keeps_its_records(database: Database) -> None:
    """Every column of every table takes what its record gives."""
    async with opened(database) as store:
        stored: list[Any] = [collection for collection in COLLECTIONS if not collection.numbered]
        for collection in stored:
            samples: dict[Any, object] = {Scope: {"type": "tenant"}, int: 1, bytes: "AA==", tuple[str, ...]: ["a"]}
            required = {
                field.encode_name: samples.get(field.type, f"{collection.name} {field.name}")
                for field in msgspec.structs.fields(collection.record)
                if field.required
            }
            record: Any = msgspec.json.decode(msgspec.json.encode({**required, "version": 1}), type=collection.record)
            await store.commit(Change(writes=(Put(collection, record),)))
            assert await store.get(collection, record.id) == record
            for column in collection.columns:
                assert await store.count(Query(collection=collection, order=((column.name, False),))) == 1


def test_the_layout_adds_up_to_the_collections() -> None:
    """A column in code without a migration, or the other way round, is found here and not at a user's start."""
    columns: dict[str, list[tuple[str, str]]] = {}
    indexes: dict[str, set[str]] = {}
    unique: dict[str, set[str]] = {}
    for step in (step for migration in MIGRATIONS for step in migration.steps):
        name = step.name if isinstance(step, Table) else step.table
        columns.setdefault(name, []).extend((word.split(":")[0], word.split(":")[1]) for word in step.columns.split())
        indexes.setdefault(name, set()).update(step.indexed, step.sparse)
        indexes[name].difference_update(() if isinstance(step, Table) else step.dropped)
        unique.setdefault(name, set()).update(step.unique if isinstance(step, Table) else ())
    for collection in COLLECTIONS:
        assert columns[collection.name] == [(column.name, column.type) for column in collection.columns]
        single = {column.name for column in collection.columns if column.indexed}
        assert indexes[collection.name] == single | {" ".join(group) for group in collection.indexes}
        assert unique[collection.name] == {" ".join(group) for group in collection.unique}
    assert [migration.number for migration in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))
