"""Recorded scheduling cycles on both databases: rebuilt after servers were killed, decided again, and forgotten."""

from typing import Any, cast

import msgspec
import pytest

from fairlead.control.context import Context, ControlSettings
from fairlead.control.cycles.load import load_cycle, load_cycles, load_time_of
from fairlead.control.cycles.recorder import CycleRecorder
from fairlead.control.cycles.retention import drop_old_cycles
from fairlead.control.cycles.segments import RecordedCycle, digest_decisions
from fairlead.control.explain.past import (
    explain_past_pending,
    explain_who_went_first,
    load_past_snapshot,
    load_timeline,
)
from fairlead.control.explain.replay import replay_cycles
from fairlead.model.clock import DAY, SECOND
from fairlead.model.errors import Dropped, Forbidden, NotFound, Unavailable
from fairlead.model.records.cycle import CyclePiece
from fairlead.model.records.people import Caller
from fairlead.scheduling import Snapshot, decide
from fairlead.store.base import Change, Delete, Put, Query, Store
from fairlead.store.collections import CYCLES, WORKLOADS
from tests.contract.databases import BOTH, Database, make_database, scenario
from tests.contract.test_usage_ledger import ADMIN, START, Pods, World, submit
from tests.unit.foresight.test_why import cluster, job

#: Sees project 1, where all workloads are, and nothing else.
MEMBER = Caller("ada@example.com", "2", rights={"project/1": frozenset({"workloads:read"})})


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return make_database(request.param, request)


async def pieces_of(context: Context) -> list[CyclePiece]:
    return await context.store.find(Query(collection=CYCLES, order=(("id", False),)))


async def cycles_of(context: Context) -> list[RecordedCycle]:
    return [cycle async for portion in load_cycles(context, START, START + 10 * DAY) for cycle in portion]


async def live_and_wait(world: World) -> None:
    """`first` takes both GPUs at 0, `second` waits from 10 on, `first` ends while no server lives, `second` starts."""
    await world.live(0, submit("first", gpuDevicesRequest=2))
    await world.live(1)
    await world.live(10, submit("second", gpuDevicesRequest=1))
    await world.live(11)
    for pod in list(world.engine.reports):  # type: ignore[union-attr]  # an engine of pods
        world.engine.end(pod, at=30)  # type: ignore[union-attr]  # as above
    await world.live(60)


@scenario
async def test_every_cycle_is_rebuilt_after_servers_were_killed(database: Database) -> None:
    world = World(database, Pods())
    await live_and_wait(world)

    async def check(context: Context) -> None:
        cycles = await cycles_of(context)
        assert [digest_decisions(decide(cycle.snapshot)) for cycle in cycles] == [
            cycle.entry.digest for cycle in cycles
        ]
        names = {job.name for job in (await load_cycle(context, START + 11 * SECOND)).snapshot.jobs}
        assert names == {"first", "second"}
        placed = {bind.job.split("/")[0]: cycle.at for cycle in cycles for bind in cycle.entry.binds}
        assert placed == {"id-first": START + 1 * SECOND, "id-second": START + 60 * SECOND}
        answer = await replay_cycles(context, ADMIN, START, START + DAY)
        assert (answer.cycles, answer.same, answer.binds, answer.differences) == (len(cycles), len(cycles), 2, ())

    await world.live(70, check)


@scenario
async def test_the_past_is_shown_to_those_who_may_read_the_workload(database: Database) -> None:
    world = World(database, Pods())
    await live_and_wait(world)

    async def check(context: Context) -> None:
        first, second = [await context.store.get(WORKLOADS, f"id-{name}") for name in ("first", "second")]
        assert first is not None
        assert second is not None
        then = await explain_past_pending(context, MEMBER, second, START + 20 * SECOND)
        assert (then.status, then.reason and then.reason.code, then.now) == ("waits", "NoNodeFits", START / 1000 + 11)
        before = await explain_past_pending(context, MEMBER, second, START + 5 * SECOND)
        assert before.status == "notWaiting"
        assert "submitted later" in before.message
        timeline = await load_timeline(context, MEMBER, second)
        assert [(wait.blocker, wait.seconds) for wait in timeline.waited] == [
            ("no room", 49.0),
            ("the first scheduling decision", 1.0),
        ]
        precedence = await explain_who_went_first(context, MEMBER, second, first)
        assert precedence.cause == "notCompared"
        with pytest.raises(Forbidden):
            await load_past_snapshot(context, MEMBER, START + DAY)
        with pytest.raises(Forbidden):
            await replay_cycles(context, MEMBER, START, START + DAY)
        stranger = Caller("eve@example.com", "3", rights={"project/2": frozenset({"workloads:read"})})
        for ask in (load_timeline(context, stranger, second), explain_past_pending(context, stranger, second, START)):
            with pytest.raises(NotFound):
                await ask

    await world.live(70, check)


@scenario
async def test_differences_of_another_version_are_listed(database: Database) -> None:
    world = World(database, Pods())

    async def check(context: Context) -> None:
        recorder = CycleRecorder(context, "0.0.1")
        await recorder.open()
        snapshot = msgspec.structs.replace(cluster(job("x")), now=(START + DAY) / 1000)
        decisions = decide(snapshot)
        [bind] = decisions.binds
        other = msgspec.structs.replace(decisions, binds=(msgspec.structs.replace(bind, node="n9"),))
        for piece in recorder.encode(snapshot, other):
            recorder.submit(piece)
        await recorder.close()
        answer = await replay_cycles(context, ADMIN, START + DAY, START + 2 * DAY)
        assert (answer.cycles, answer.same, answer.recorded_by) == (1, 0, ("0.0.1",))
        [difference] = answer.differences
        assert difference.lines == ("x-0-0: starts on n9 (GPU 0), now starts on n1 (GPU 0)",)

    await world.live(0, check)


async def write(context: Context, count: int, seconds: int = 1) -> None:
    """Cycles of a cluster that gets one more job in each."""
    recorder = CycleRecorder(context, "1")
    await recorder.open()
    for number in range(count):
        jobs = tuple(job(f"{START}-{number}-{index}") for index in range(30))
        snapshot = msgspec.structs.replace(cluster(*jobs), now=START / 1000 + number * seconds)
        for piece in recorder.encode(snapshot, decide(snapshot)):
            recorder.submit(piece)
    await recorder.close()


@scenario
async def test_a_broken_last_piece_is_dropped_and_the_next_server_continues(database: Database) -> None:
    async def check(context: Context) -> None:
        await write(context, 5)
        *_, last = await pieces_of(context)
        torn = msgspec.structs.replace(last, version=2, data=last.data[:20])
        await context.store.commit(Change(writes=(Put(CYCLES, torn),)))
        assert len(await cycles_of(context)) == 4
        recorder = CycleRecorder(context, "1")
        await recorder.open()
        later = msgspec.structs.replace(cluster(job("later")), now=START / 1000 + 100)
        for piece in recorder.encode(later, decide(later)):
            recorder.submit(piece)
        await recorder.close()
        assert [cycle.snapshot for cycle in await cycles_of(context)][4:] == [later]

    await World(database, Pods()).live(-DAY // 1000, check)


class Full:
    """A store that cannot write for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, change: Change) -> int:
        if self.is_full:
            raise Unavailable("The disk is full")
        return await self._store.commit(change)


@scenario
async def test_cycles_that_could_not_be_stored_leave_a_gap_and_no_more(database: Database) -> None:
    async def check(context: Context) -> None:
        store = Full(context.store)
        context.store = cast(Store, store)
        recorder = CycleRecorder(context, "1")
        await recorder.open()
        for number in range(4):
            store.is_full = number == 1
            snapshot = msgspec.structs.replace(cluster(job(f"j{number}")), now=START / 1000 + number)
            for piece in recorder.encode(snapshot, decide(snapshot)):
                recorder.submit(piece)
            await recorder.close()
        assert [cycle.at - START for cycle in await cycles_of(context)] == [0, 2000, 3000]

    await World(database, Pods()).live(-DAY // 1000, check)


@scenario
async def test_old_cycles_are_forgotten_by_age(database: Database) -> None:
    async def check(context: Context) -> None:
        await context.store.commit(Change(writes=tuple(Delete(CYCLES, piece.id) for piece in await pieces_of(context))))
        await write(context, 10, seconds=DAY // 1000 + 1)
        assert len({piece.segment for piece in await pieces_of(context)}) == 10
        context.settings = ControlSettings(keep_cycles=3 * DAY)
        now = START + 9 * (DAY + SECOND)
        assert await drop_old_cycles(context, now) == 6
        kept = await load_cycle(context, now - 3 * DAY)
        assert kept.at == START + 6 * (DAY + SECOND)
        with pytest.raises(Dropped, match="were dropped"):
            await load_cycle(context, START + DAY)
        with pytest.raises(Dropped):
            await replay_cycles(context, ADMIN, START + DAY, now)

    await World(database, Pods()).live(-20 * DAY // 1000, check)


@scenario
async def test_old_cycles_are_forgotten_by_size(database: Database) -> None:
    async def check(context: Context) -> None:
        await write(context, 10, seconds=DAY // 1000 + 1)
        pieces = await pieces_of(context)
        stored = sum(piece.size for piece in pieces)
        assert pieces[-1].total == stored
        context.settings = ControlSettings(keep_cycles=1000 * DAY, keep_cycles_bytes=stored // 2)
        assert await drop_old_cycles(context, START + 10 * DAY) > 0
        left = await pieces_of(context)
        assert stored // 3 <= sum(piece.size for piece in left) <= stored // 2 + left[0].size
        assert await drop_old_cycles(context, START + 10 * DAY) == 0

    await World(database, Pods()).live(-20 * DAY // 1000, check)


@scenario
async def test_revisions_name_times_and_unknown_ones_are_reported(database: Database) -> None:
    world = World(database, Pods())
    await live_and_wait(world)

    async def check(context: Context) -> None:
        cycle = await load_cycle(context, START + 60 * SECOND)
        assert START <= await load_time_of(context, cycle.entry.revision) <= START + 60 * SECOND
        with pytest.raises(NotFound, match="no revision 99999 yet"):
            await load_time_of(context, 99_999)

    await world.live(70, check)


@scenario
async def test_nothing_is_recorded_if_no_bytes_are_kept(database: Database) -> None:
    async def check(context: Context) -> None:
        context.settings = ControlSettings(keep_cycles_bytes=0)
        await write(context, 3)
        with pytest.raises(NotFound, match="is off"):
            await load_cycle(context, START + DAY)

    world = World(database, Pods())

    async def clear(context: Context) -> None:
        await context.store.commit(Change(writes=tuple(Delete(CYCLES, piece.id) for piece in await pieces_of(context))))

    await world.live(0, clear, check)


@scenario
async def test_quiet_cycles_are_stored_with_the_next_one(database: Database) -> None:
    async def check(context: Context) -> None:
        recorder = CycleRecorder(context, "1")
        await recorder.open()
        waiting = cluster(job("large", gpu=9))

        def encode(snapshot: Snapshot, seconds: int) -> int:
            later = msgspec.structs.replace(snapshot, now=START / 1000 + DAY // 1000 + seconds)
            pieces = recorder.encode(later, decide(later))
            for piece in pieces:
                recorder.submit(piece)
            return len(pieces)

        assert [encode(waiting, second) for second in range(5)] == [1, 0, 0, 0, 0]
        assert encode(cluster(job("large", gpu=9), job("x")), 5) == 1
        await recorder.close()
        cycles: list[Any] = [each async for part in load_cycles(context, START + DAY, START + 2 * DAY) for each in part]
        assert [(cycle.at - START - DAY) // 1000 for cycle in cycles] == [0, 1, 2, 3, 4, 5]

    await World(database, Pods()).live(0, check)
