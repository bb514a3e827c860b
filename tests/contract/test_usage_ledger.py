"""The ledger of usage over several lives of a server, each of which is killed; on both databases and both engines."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings
from fairlead.control.directory import Directory
from fairlead.control.ledger.report import Dimension, UsageReport, UsageRow
from fairlead.control.loop.reconcile import Reconciler
from fairlead.control.loop.usage_retention import drop_old_usage
from fairlead.control.telemetry.usage_report import UsageQuestion, report_usage
from fairlead.engines.base import (
    CapacityChanged,
    ClusterPod,
    PodOrder,
    PodReport,
    PodState,
    Start,
    Stop,
    WorkloadReport,
)
from fairlead.model.clock import DAY, SECOND
from fairlead.model.errors import Invalid
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Put, Query
from fairlead.store.collections import PODS, SUPPLY, USAGE, WORKLOADS
from tests import builders
from tests.contract.databases import BOTH, Database, make_database, scenario
from tests.contract.quiet_engines import QuietCluster, QuietPods, cluster_loop, pod_loop

START = 1_000 * DAY
ADMIN = Caller("admin@fairlead.local", "1", is_administrator=True)
NODE = Node(id="node", name="node", cpu_milli=8000, memory_bytes=2**33, gpus=(GpuDevice(0), GpuDevice(1)))


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest) -> Database:
    return make_database(request.param, request)


class Pods(QuietPods):
    """Runs every pod until the test says when it ended; goes on while no server lives."""

    def __init__(self) -> None:
        self.nodes: tuple[Node, ...] = (NODE,)
        self.reports: dict[str, PodReport] = {}

    async def capacity(self) -> Sequence[Node]:
        return self.nodes

    async def observe(self) -> Sequence[PodReport]:
        return tuple(self.reports.values())

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self.reports[order.pod.pod_id] = PodReport(
                    pod_id=order.pod.pod_id, workload_id=order.pod.workload_id, attempt=1, state=PodState.RUNNING
                )
            elif isinstance(order, Stop):
                self.end(order.pod_id, at=0)

    def end(self, pod_id: str, at: int) -> None:
        report = self.reports[pod_id]
        self.reports[pod_id] = msgspec.structs.replace(
            report, state=PodState.EXITED, exit_code=0, ended_at=START + at * SECOND if at else None
        )


class Cluster(QuietCluster):
    def __init__(self) -> None:
        self.report: WorkloadReport | None = None

    async def capacity(self) -> Sequence[Node]:
        return (NODE,)

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        return (self.report,) if self.report else ()


class World:
    """A database and an engine that outlive the servers."""

    def __init__(self, database: Database, engine: Pods | Cluster) -> None:
        self.database = database
        self.engine = engine
        self.now = START

    async def live(self, at: float, *works: Any) -> Any:
        """Start a server at that second, let its loop catch up, do some work, and kill it; the last result."""
        self.now = START + round(at * SECOND)
        store = await self.database.open()
        try:
            context = Context(
                store=store,
                clock=lambda: self.now,
                directory=Directory(store),
                sessions=None,
                settings=ControlSettings(),
                new_id=lambda: str(uuid.uuid4()),
                new_suffix=lambda: "s",
            )
            await ensure_defaults(context)
            await context.directory.load()
            engine = self.engine
            loop: Reconciler[Any] = (
                pod_loop(context, engine) if isinstance(engine, Pods) else cluster_loop(context, engine)
            )
            ready = asyncio.Event()
            running = asyncio.create_task(loop.run(ready))
            waiting = asyncio.create_task(ready.wait())
            await asyncio.wait((waiting, running), return_when=asyncio.FIRST_COMPLETED)
            for task in (waiting, running):
                task.cancel()
            outcome = (await asyncio.gather(running, return_exceptions=True))[0]
            assert isinstance(outcome, asyncio.CancelledError), outcome
            result = None
            for work in works:
                result = await work(context)
            return result
        finally:
            await store.close()

    async def report(self, at: float, *by: Dimension, since: float = 0, until: float | None = None) -> UsageReport:
        question = UsageQuestion(
            since=START + round(since * SECOND),
            until=None if until is None else START + round(until * SECOND),
            by=by or ("project",),
        )
        answer: UsageReport = await self.live(at, lambda context: report_usage(context, ADMIN, question))
        return answer


def submit(name: str, **compute: Any) -> Any:
    async def work(context: Context) -> None:
        spec = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": compute}))
        workload = builders.workload(
            name, spec=spec, created_at=context.clock(), phase_updated_at=context.clock(), id=f"id-{name}"
        )
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))

    return work


async def pod_of(context: Context) -> str:
    pods = await context.store.find(Query(collection=PODS))
    return str(pods[-1].id)


def seconds(row: UsageRow, member: str) -> tuple[float, float]:
    """GPU- and core-seconds."""
    hours = getattr(row, member)
    return round(hours.gpu_hours * 3600, 2), round(hours.cpu_hours * 3600, 2)


@scenario
async def test_a_pod_that_ends_while_no_server_lives_is_counted_to_its_end(database: Database) -> None:
    """Half a GPU and two cores: waits from 0 to 10, runs from 10 to 25; servers live at 0, 10, 60 and 90."""
    engine = Pods()
    world = World(database, engine)
    half = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 0.5, "cpuCoreRequest": 2}
    await world.live(0, submit("train", **half))
    pod = await world.live(10, pod_of)
    (running,) = (await world.report(20)).rows
    assert (seconds(running, "used"), seconds(running, "waited")) == ((5, 20), (5, 20))
    engine.end(pod, at=25)
    for at in (60, 90):
        report = await world.report(at)
        (row,) = report.rows
        assert (row.project, seconds(row, "used"), seconds(row, "waited")) == ("default", (7.5, 30), (5, 20))
        assert round(row.waited_hours * 3600) == 10
        (pool,) = report.node_pools
        assert round(pool.capacity.gpu_hours * 3600) == 2 * at
        assert round(pool.used.gpu_hours * 3600, 1) == 7.5
        assert round(pool.idle.gpu_hours * 3600, 1) == 2 * at - 7.5
    assert [seconds(row, "used") for row in (await world.report(90, since=15, until=20)).rows] == [(2.5, 10)]


@scenario
async def test_an_eviction_closes_one_interval_and_begins_another(database: Database) -> None:
    """Its node is full with a pod of lower priority from 0 to 30; that pod then waits and runs again from 50."""
    engine = Pods()
    world = World(database, engine)
    await world.live(0, submit("low", gpuDevicesRequest=2, gpuRequestType="portion", gpuPortionRequest=1))
    first = await world.live(0, pod_of)

    async def submit_high(context: Context) -> None:
        await submit("high", gpuDevicesRequest=2, gpuRequestType="portion", gpuPortionRequest=1)(context)
        record: Workload | None = await context.store.get(WORKLOADS, "id-high")
        assert record is not None
        changed = msgspec.structs.replace(record, version=2, priority=100)
        await context.store.commit(Change(writes=(Put(WORKLOADS, changed),)))

    await world.live(30, submit_high)
    await world.live(30)
    assert engine.reports[first].state is PodState.EXITED
    await world.live(30)
    second = next(pod for pod in engine.reports if pod != first)
    assert engine.reports[second].workload_id == "id-high"
    engine.end(second, at=50)
    await world.live(50)
    await world.live(50)
    rows = {row.workload: row for row in (await world.report(60, "workload")).rows}
    assert (seconds(rows["low"], "used")[0], seconds(rows["low"], "waited")[0]) == (80, 40)
    assert (seconds(rows["high"], "used")[0], rows["high"].waited_hours) == (40, 0)


@pytest.mark.parametrize(("wait", "kept"), [(0.99, 0.0), (1.0, 1.0)])
@scenario
async def test_a_wait_of_less_than_a_second_is_left_out(database: Database, wait: float, kept: float) -> None:
    engine = Pods()
    world = World(database, engine)
    engine.nodes = ()
    await world.live(0, submit("short", cpuCoreRequest=1))
    engine.nodes = (NODE,)
    await world.live(wait)
    (row,) = (await world.report(10)).rows
    assert round(row.waited_hours * 3600, 2) == kept
    assert seconds(row, "used")[1] == 10 - wait


@scenario
async def test_a_node_that_is_not_ready_is_unavailable(database: Database) -> None:
    engine = Pods()
    world = World(database, engine)
    await world.live(0)
    engine.nodes = (msgspec.structs.replace(NODE, ready=False),)
    await world.live(10)
    engine.nodes = (NODE,)
    await world.live(30)
    engine.nodes = ()
    await world.live(40)
    (pool,) = (await world.report(100, "nodepool")).node_pools
    figures = [round(part.gpu_hours * 3600) for part in (pool.capacity, pool.used, pool.idle, pool.unavailable)]
    assert figures == [80, 0, 40, 40]


@scenario
async def test_pods_of_a_cluster_count_from_their_placement(database: Database) -> None:
    """Created at 0, placed at 20, ended at 50, seen at 30 and 70."""
    engine = Cluster()
    world = World(database, engine)
    whole = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 1}
    await world.live(0, submit("train", **whole))
    pod = ClusterPod(
        id="pod",
        name="pod",
        role="worker",
        phase=PodPhase.RUNNING,
        node="node",
        created_at=START,
        placed_at=START + 20 * SECOND,
        cluster_phase="Running",
    )
    engine.report = WorkloadReport(workload_id="id-train", run=1, pods=(pod,))
    (row,) = (await world.report(30)).rows
    assert seconds(row, "used")[0] == 10
    ended = msgspec.structs.replace(
        pod, phase=PodPhase.SUCCEEDED, cluster_phase="Succeeded", ended_at=START + 50 * SECOND, exit_code=0
    )
    engine.report = WorkloadReport(
        workload_id="id-train", run=1, pods=(ended,), ended=Phase.COMPLETED, succeeded={"worker": 1}
    )
    await world.live(70)
    (row,) = (await world.report(80)).rows
    assert seconds(row, "used")[0] == 30


@scenario
async def test_what_is_past_its_retention_is_gone_and_the_report_says_so(database: Database) -> None:
    engine = Pods()
    world = World(database, engine)
    await world.live(0, submit("train", gpuDevicesRequest=1, gpuRequestType="portion", gpuPortionRequest=1))
    engine.end(await world.live(0, pod_of), at=30)
    await world.live(60)

    async def drop(context: Context) -> tuple[int, int]:
        dropped = await drop_old_usage(context, START + 60 * SECOND + context.settings.keep_usage)
        return dropped, await context.store.count(Query(collection=USAGE))

    assert await world.live(61, drop) == (2, 0)
    report = await world.report(100)
    assert (report.rows, report.since, report.ledger_start) == ((), report.ledger_start, "1972-09-27T00:01:00.000Z")
    with pytest.raises(Invalid, match="Nothing is recorded before 1972-09-27T00:01:00"):
        await world.report(100, since=10, until=50)
    assert await world.live(200, lambda context: context.store.count(Query(collection=SUPPLY))) == 1
