"""What the loop leaves out for short jobs, and that nobody waits because of it. Time stands still in these tests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.control.context import Context
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.loop.reconcile import Reconciler
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import CapacityChanged, PodOrder, PodReport, PodState, Start
from fairlead.kinds import KINDS
from fairlead.model.clock import SECOND, Millis
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.compute import Compute
from fairlead.model.submission import Submission
from fairlead.store.collections import WORKLOADS
from tests.contract.databases import eventually
from tests.contract.quiet_engines import QuietPods
from tests.contract.test_control_over_time import NOW, in_store

ADMIN = Caller("admin@fairlead.local", "1", is_administrator=True)
NODE = Node(id="node", name="node", cpu_milli=2000, memory_bytes=2**33, gpus=(GpuDevice(0),))


class Told(QuietPods):
    """Two cores and a GPU. It reports what the test says, once, and that a pod starts as soon as it is ordered."""

    def __init__(self) -> None:
        self.reports: list[PodReport] = []
        self.started: list[Start] = []

    async def start(self, notify: Callable[[], None]) -> None:
        self.notify = notify

    async def capacity(self) -> Sequence[Node]:
        return (NODE,)

    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        reports, self.reports = self.reports, []
        return reports

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        for order in orders:
            if isinstance(order, Start):
                self.started.append(order)
                self.report(order.pod.workload_name, PodState.STARTING)

    def report(self, name: str, state: PodState, **members: Any) -> None:
        """About the pod of that workload that was started first and has not been reported as ended."""
        pod = next(start.pod for start in self.started if start.pod.workload_name == name)
        self.reports.append(
            PodReport(pod_id=pod.pod_id, workload_id=pod.workload_id, attempt=1, state=state, **members)
        )
        self.notify()

    def end(self, name: str) -> None:
        self.report(name, PodState.EXITED, exit_code=0, ended_at=NOW)
        self.started.remove(next(start for start in self.started if start.pod.workload_name == name))

    def names(self) -> list[str]:
        return [start.pod.workload_name for start in self.started]


class Counting(PodDriver):
    """Knows on which workloads it has decided."""

    def __init__(self, context: Context, engine: Told) -> None:
        super().__init__(context, engine)
        self.decided: list[str] = []

    def decide(self, entry: WorkloadEntry, now: Millis) -> Draft:
        self.decided.append(entry.workload.name)
        return super().decide(entry, now)


class World:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.engine = Told()
        self.driver = Counting(context, self.engine)
        self.loop = Reconciler(context, self.driver, lambda at: None, lambda: 0.0)

    async def submit(self, name: str, **members: Any) -> str:
        kind = KINDS["training"]
        spec = kind.spec(**{"image": "x", "command": "true", "compute": Compute(cpu_core_request=1)} | members)
        cluster = self.context.directory.cluster.id
        submission = Submission(kind=kind.key, name=name, project_id="1", cluster_id=cluster, spec=spec)
        return (await submit(self.context, ADMIN, submission)).id

    async def load(self, id: str) -> Workload:
        workload = await self.context.store.get(WORKLOADS, id)
        assert workload is not None
        return workload

    async def until(self, id: str, phase: Phase) -> Workload:
        async def is_there() -> bool:
            return (await self.load(id)).phase is phase

        await eventually(is_there)
        return await self.load(id)

    async def settle(self) -> None:
        """Until the loop has taken every report, and has had its turns."""
        await eventually(lambda: not self.engine.reports)
        turns = self.loop.metrics.cycles
        self.engine.notify()
        await eventually(lambda: self.loop.metrics.cycles > turns)


def in_world(tmp_path: Path, test: Callable[[World], Awaitable[None]]) -> None:
    async def act(context: Context) -> None:
        world = World(context)
        ready = asyncio.Event()
        running = asyncio.create_task(world.loop.run(ready))
        await ready.wait()
        await test(world)
        world.loop.stop()
        await running

    in_store(tmp_path, act)


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_starting_pod_is_no_decision_of_its_own(tmp_path: Path, gpus: int) -> None:
    """The record of the placement says already what a decision about the starting pod would say."""

    async def test(world: World) -> None:
        compute = Compute(cpu_core_request=1, gpu_devices_request=gpus or None)
        id = await world.submit("job", compute=compute)
        await eventually(lambda: world.engine.names() == ["job"])
        await world.settle()
        starting = await world.load(id)
        assert (starting.phase, starting.phase_message) == (Phase.INITIALIZING, "1 pod starting")
        assert (starting.version, starting.allocated_gpu, world.driver.decided) == (2, gpus, ["job"])

        world.engine.report("job", PodState.STARTING, reason="ContainerCreating", message="fetching 3 of 9 MB")
        await world.settle()
        assert (await world.load(id)).phase_message == "Pod job-0-0: fetching 3 of 9 MB"
        world.engine.report("job", PodState.RUNNING)
        await world.until(id, Phase.RUNNING)
        world.engine.end("job")
        ended = await world.until(id, Phase.COMPLETED)
        assert (ended.version, world.driver.decided) == (5, ["job"] * 4)

    in_world(tmp_path, test)


def test_an_end_is_a_cycle_of_its_own_only_if_somebody_waits(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        scheduler = world.driver.scheduler
        for name in ("first", "second"):
            await world.until(await world.submit(name), Phase.INITIALIZING)
        cycles = world.loop.metrics.scheduling_cycles
        world.engine.end("first")
        await eventually(lambda: world.driver.decided.count("first") == 2)
        await world.settle()
        assert world.loop.metrics.scheduling_cycles == cycles
        # Whatever was overlooked gets the room after a second.
        assert scheduler.next_change_at == NOW + 1 * SECOND
        assert not scheduler.is_needed({}, NOW + 1 * SECOND - 1)
        assert scheduler.is_needed({}, NOW + 1 * SECOND)

        third, fourth = await world.submit("third"), await world.submit("fourth")
        await world.until(third, Phase.INITIALIZING)
        await world.until(fourth, Phase.PENDING)
        cycles = world.loop.metrics.scheduling_cycles
        world.engine.end("second")
        await world.until(fourth, Phase.INITIALIZING)
        assert world.loop.metrics.scheduling_cycles == cycles + 1

    in_world(tmp_path, test)


@pytest.mark.parametrize(
    ("waiting", "pods"),
    [
        pytest.param({"compute": Compute(cpu_core_request=2)}, 1, id="for the whole node"),
        pytest.param({"completions": 2, "parallelism": 2}, 2, id="for room for the second pod of a sweep that runs"),
    ],
)
def test_whoever_waits_gets_free_room_at_once(tmp_path: Path, waiting: dict[str, Any], pods: int) -> None:
    async def test(world: World) -> None:
        await world.until(await world.submit("first"), Phase.INITIALIZING)
        await world.submit("waiting", **waiting)
        await eventually(lambda: "waiting" in world.driver.decided)
        await world.settle()
        assert world.engine.names().count("waiting") == pods - 1
        world.engine.end("first")
        await eventually(lambda: world.engine.names().count("waiting") == pods)

    in_world(tmp_path, test)


def test_a_newcomer_that_was_not_decided_on_gets_free_room_at_once(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        for name in ("first", "second"):
            await world.until(await world.submit(name), Phase.INITIALIZING)
        await world.until(await world.submit("third"), Phase.PENDING)
        assert (await world.load(await world.submit("fourth"))).phase is Phase.PENDING
        for ended, begins in (("first", "third"), ("second", "fourth")):
            world.engine.end(ended)
            await eventually(lambda begins=begins: begins in world.engine.names())

    in_world(tmp_path, test)
