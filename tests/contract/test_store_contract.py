"""What every store does with changes, seen through the seam alone."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from fairlead.model.errors import Conflict, Refused, Unavailable
from fairlead.model.records.lease import Lease
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Delete, Put, Query, Store, Where
from fairlead.store.collections import AUDIT, EVENTS, LEASES, PODS, WORKLOADS
from fairlead.store.compaction import compact
from tests.builders import pod
from tests.contract.databases import (
    BOTH,
    Database,
    PostgresDatabase,
    event,
    eventually,
    line,
    make_database,
    named,
    opened,
    put,
    scenario,
)
from tests.postgres import PostgresServer

Told = list[tuple[int, Sequence[tuple[str, str]]]]


async def newest_revision(store: Store) -> int:
    newest = await store.find(Query(collection=EVENTS, order=((EVENTS.key, True),), limit=1))
    return newest[0].revision if newest else 0


async def oldest_revision(store: Store) -> int:
    oldest = await store.find(Query(collection=EVENTS, limit=1))
    return oldest[0].revision if oldest else 1


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return make_database(request.param, request)


def next_of(record: Workload, **members: object) -> Workload:
    return msgspec.structs.replace(record, version=record.version + 1, **members)


async def revisions(store: Store) -> list[int]:
    return [found.revision for found in await store.find(Query(collection=EVENTS))]


@scenario
async def test_a_record_comes_back_as_it_was(database: Database) -> None:
    record = named("a", spec=msgspec.Raw(b'{"image": "x", "none":null}'), created_by='Zoë "\\\u0000', allocated_gpu=0.5)
    async with opened(database) as store:
        await store.commit(put(record))
        assert await store.get(WORKLOADS, record.id) == record
        assert await store.get(WORKLOADS, "no such id") is None
        assert await store.get(WORKLOADS, "nul\u0000") is None


@scenario
async def test_what_was_committed_is_there_after_reopening(database: Database) -> None:
    record = named("a")
    async with opened(database) as store:
        revision = await store.commit(put(record, events=(event("a"), event("a", "Again"))))
    async with opened(database) as store:
        assert await store.get(WORKLOADS, record.id) == record
        assert await revisions(store) == [1, 2]
        assert revision == 2
        assert await store.commit(put(named("b"), events=(event("b"),))) == 3


@scenario
async def test_a_record_that_exists_is_not_made_again(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(named("a")))
        with pytest.raises(Conflict, match="already exists") as caught:
            await store.commit(put(named("another name", id="id-a")))
        assert caught.value.columns == ()
        assert await store.get(WORKLOADS, "id-a") == named("a")


@scenario
async def test_only_the_next_version_is_taken(database: Database) -> None:
    first = named("a")
    second = next_of(first, priority=2)
    async with opened(database) as store:
        await store.commit(put(first))
        await store.commit(put(second))
        for late in (
            next_of(first, priority=3),
            next_of(next_of(second)),
            msgspec.structs.replace(first, id="id-z", version=2),
        ):
            with pytest.raises(Conflict, match="changed by another request"):
                await store.commit(put(late))
        assert await store.get(WORKLOADS, first.id) == second


@scenario
async def test_a_version_below_one_is_a_mistake(database: Database) -> None:
    async with opened(database) as store:
        with pytest.raises(ValueError, match="version 0"):
            await store.commit(put(named("a", version=0)))


@scenario
async def test_a_name_is_free_again_once_its_workload_is_deleted(database: Database) -> None:
    first = named("a")
    async with opened(database) as store:
        await store.commit(put(first))
        with pytest.raises(Conflict, match="project_id and live_name") as caught:
            await store.commit(put(named("a", id="other")))
        assert caught.value.columns == ("project_id", "live_name")
        await store.commit(put(named("a", id="elsewhere", project_id="2")))
        deleted = next_of(first, deleted_at=5)
        await store.commit(put(deleted))
        await store.commit(put(named("a", id="other")))
        with pytest.raises(Conflict) as caught:
            await store.commit(put(next_of(deleted, deleted_at=None)))
        assert caught.value.columns == ("project_id", "live_name")
        assert await store.get(WORKLOADS, first.id) == deleted


@scenario
async def test_a_change_is_made_whole_or_not_at_all(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(named("a")))
        change = Change(
            writes=(
                Put(WORKLOADS, named("b")),
                Put(PODS, pod("b-0")),
                Delete(WORKLOADS, "id-a"),
                Put(WORKLOADS, named("c", version=7)),
            ),
            events=(event("b"),),
            audit=(line("b"),),
        )
        with pytest.raises(Conflict):
            await store.commit(change)
        assert [record.id for record in await store.find(Query(collection=WORKLOADS))] == ["id-a"]
        assert await store.count(Query(collection=PODS)) == 0
        assert await revisions(store) == []
        assert await store.count(Query(collection=AUDIT)) == 0
        assert await store.commit(msgspec.structs.replace(change, writes=change.writes[:3])) == 1
        assert [record.id for record in await store.find(Query(collection=WORKLOADS))] == ["id-b"]
        assert await store.get(PODS, pod("b-0").id) == pod("b-0")


@scenario
async def test_within_a_change_later_writes_see_earlier_ones(database: Database) -> None:
    first = named("a")
    async with opened(database) as store:
        await store.commit(put(first, next_of(first, priority=4)))
        assert await store.get(WORKLOADS, first.id) == next_of(first, priority=4)
        await store.commit(Change(writes=(Delete(WORKLOADS, first.id), Put(WORKLOADS, first))))
        assert await store.get(WORKLOADS, first.id) == first


@scenario
async def test_deleting_what_does_not_exist_is_not_an_error(database: Database) -> None:
    async with opened(database) as store:
        await store.commit(put(named("a"), events=(event("a"),)))
        await store.commit(Change(writes=(Delete(WORKLOADS, "none"),)))
        await store.commit(Change(writes=(Delete(EVENTS, "no number"), Delete(EVENTS, "9" * 40))))
        assert [await store.count(Query(collection=kept)) for kept in (WORKLOADS, EVENTS)] == [1, 1]


@scenario
async def test_what_no_database_can_hold_is_refused_alone(database: Database) -> None:
    async with opened(database) as store:
        outcomes = await asyncio.gather(
            store.commit(put(named("a"))),
            store.commit(put(named("b", priority=2**70))),
            store.commit(put(named("c"))),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [int, Refused, int]
        assert await store.count(Query(collection=WORKLOADS)) == 2


@scenario
async def test_events_and_audit_lines_are_numbered_in_order(database: Database) -> None:
    async with opened(database) as store:
        assert await newest_revision(store) == 0
        first = Change(events=(event("a", "One"), event("a", "Two")), audit=(line("a", details="first"),))
        assert await store.commit(first) == 2
        assert await store.commit(Change(audit=(line("b"),))) == 2
        assert await store.commit(Change(events=(event("b", "Three", phase="Running"),))) == 3
        records = await store.find(Query(collection=EVENTS))
        assert [(each.revision, each.reason) for each in records] == [(1, "One"), (2, "Two"), (3, "Three")]
        assert await store.get(EVENTS, "3") == event("b", "Three", phase="Running", revision=3)
        assert [each.number for each in await store.find(Query(collection=AUDIT))] == [1, 2]
        assert await newest_revision(store) == 3


@scenario
async def test_a_thousand_writers_at_once_lose_nothing(database: Database) -> None:
    async with opened(database) as store:
        given = await asyncio.gather(
            *(store.commit(put(named(f"w{n}"), events=(event(f"w{n}"), event(f"w{n}")))) for n in range(1000))
        )
        assert sorted(given) == list(range(2, 2001, 2))
        assert await store.count(Query(collection=WORKLOADS)) == 1000
        records = await store.find(Query(collection=EVENTS))
        assert [each.revision for each in records] == list(range(1, 2001))
        # The two events of a change are neighbours, and its revision is the second's.
        assert [records[revision - 1].subject_id for revision in given] == [f"w{n}" for n in range(1000)]


@scenario
async def test_of_those_who_race_for_a_version_one_wins(database: Database) -> None:
    first = named("a")
    async with opened(database) as store:
        await store.commit(put(first))
        outcomes = await asyncio.gather(
            *(store.commit(put(next_of(first, priority=n), named(f"by-{n}"))) for n in range(50)),
            return_exceptions=True,
        )
        winners = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, Conflict)]
        assert len(winners) == 1
        assert await store.get(WORKLOADS, first.id) == next_of(first, priority=winners[0])
        assert [record.name for record in await store.find(Query(collection=WORKLOADS))] == ["a", f"by-{winners[0]}"]


@scenario
async def test_of_those_who_race_for_a_name_one_wins(database: Database) -> None:
    """Many of a batch are refused, each alone, whatever stands before and behind it."""
    async with opened(database) as store:
        outcomes = await asyncio.gather(
            *(store.commit(put(named(f"name-{n % 100}", id=str(n)), events=(event(str(n)),))) for n in range(400)),
            return_exceptions=True,
        )
        refused = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
        assert {refusal.columns for refusal in refused} == {("project_id", "live_name")}
        assert [outcome for outcome in outcomes if isinstance(outcome, int)] == list(range(1, 101))
        assert len(refused) == 300
        assert await revisions(store) == list(range(1, 101))


@scenario
async def test_a_lease_goes_to_one(database: Database) -> None:
    first, second = await database.open(), await database.open()
    try:
        lease = Lease(id="machine", version=1, holder="one", expires_at=10, address="http://a")
        await first.commit(Change(writes=(Put(LEASES, lease),)))
        assert await second.get(LEASES, "machine") == lease
        assert lease.is_held_by_other("two", now=9)
        assert not lease.is_held_by_other("two", now=10)
        taken = msgspec.structs.replace(lease, holder="two", version=2)
        kept = msgspec.structs.replace(lease, expires_at=20, version=2)
        outcomes = await asyncio.gather(
            first.commit(Change(writes=(Put(LEASES, kept),))),
            second.commit(Change(writes=(Put(LEASES, taken),))),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "int"]
    finally:
        await first.close()
        await second.close()


@scenario
async def test_listeners_hear_of_commits_until_they_stop(database: Database) -> None:
    told: Told = []
    async with opened(database) as store:
        unsubscribe = store.subscribe(lambda revision, subjects: told.append((revision, list(subjects))))
        await store.commit(put(named("a"), events=(event("a"), event("b"), event("a"))))
        await eventually(lambda: told == [(3, [("workloads", "a"), ("workloads", "b")])])
        with pytest.raises(Conflict):
            await store.commit(put(named("a"), events=(event("never"),)))
        await store.commit(put(named("c")))
        await eventually(lambda: told[1:] == [(3, [])])
        unsubscribe()
        unsubscribe()
        await store.commit(put(named("d"), events=(event("d"),)))
        assert len(told) == 2


@scenario
async def test_a_failing_listener_does_not_stop_the_others(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(revision: int, subjects: Sequence[tuple[str, str]]) -> None:
        raise RuntimeError("listener is broken")

    told: list[int] = []
    async with opened(database) as store:
        store.subscribe(fail)
        store.subscribe(lambda revision, subjects: told.append(revision))
        await store.commit(put(named("a"), events=(event("a"),)))
        await eventually(lambda: told == [1])
    assert "listener is broken" in caplog.text


@pytest.mark.xdist_group("postgres")
@scenario
async def test_commits_of_another_process_are_heard_in_order(postgres_server: PostgresServer) -> None:
    database = PostgresDatabase(postgres_server)
    here, there = await database.open(), await database.open()
    heard: dict[str, list[str]] = {"here": [], "there": []}
    newest: dict[str, list[int]] = {"here": [], "there": []}

    def listen(place: str, store: Store) -> None:
        def hear(revision: int, subjects: Sequence[tuple[str, str]]) -> None:
            newest[place].append(revision)
            heard[place] += [id for _, id in subjects]

        store.subscribe(hear)

    try:
        listen("here", here)
        listen("there", there)
        stores = [here, there]
        await asyncio.gather(*(stores[n % 2].commit(put(named(f"w{n}"), events=(event(f"w{n}"),))) for n in range(200)))
        await eventually(lambda: len(heard["here"]) >= 200 and len(heard["there"]) >= 200)
        committed = [each.subject_id for each in await here.find(Query(collection=EVENTS))]
        assert heard["here"] == committed
        assert heard["there"] == committed
        assert all(numbers == sorted(numbers) and numbers[-1] == 200 for numbers in newest.values())
        calls = len(newest["there"])
        await here.commit(put(named("without-event")))
        await eventually(lambda: len(newest["there"]) > calls)
    finally:
        await here.close()
        await there.close()


@scenario
async def test_closing_finishes_what_was_accepted(database: Database) -> None:
    store = await database.open()
    commits = [asyncio.create_task(store.commit(put(named(f"w{n}")))) for n in range(200)]
    await asyncio.sleep(0)
    await store.close()
    await store.close()
    assert len(await asyncio.gather(*commits)) == 200
    with pytest.raises(Unavailable):
        await store.commit(put(named("late")))
    with pytest.raises(Unavailable):
        await store.find(Query(collection=WORKLOADS))
    with pytest.raises(Unavailable):
        await store.get(WORKLOADS, "id-w1")
    async with opened(database) as again:
        assert await again.count(Query(collection=WORKLOADS)) == 200


@scenario
async def test_who_stops_waiting_does_not_undo_the_change(database: Database) -> None:
    async with opened(database) as store:
        waiting = asyncio.create_task(store.commit(put(named("a"))))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await store.commit(put(named("b")))
        assert await store.count(Query(collection=WORKLOADS)) == 2


@scenario
async def test_old_events_go_and_the_oldest_kept_is_known(database: Database) -> None:
    async with opened(database) as store:
        assert await oldest_revision(store) == 1
        assert await compact(store, now=1000, keep_events=10, keep_audit=10) == 0
        for n in range(0, 1000, 100):
            await store.commit(
                Change(
                    events=tuple(event("a", at=n + k) for k in range(100)),
                    audit=tuple(line("a", at=n + k) for k in range(100)),
                )
            )
        assert await compact(store, now=1000, keep_events=250, keep_audit=900) == 750 + 100
        assert await oldest_revision(store) == 751
        assert await store.count(Query(collection=AUDIT)) == 900
        # The newest stays, so that revisions go on from where they were.
        assert await compact(store, now=10_000, keep_events=1, keep_audit=1) == 249 + 899
        assert await oldest_revision(store) == 1000
    async with opened(database) as store:
        assert await store.commit(Change(events=(event("a"),))) == 1001
        where = (Where("revision", Comparison.ABOVE, 1000),)
        assert len(await store.find(Query(collection=EVENTS, where=where))) == 1
