"""The loop of a cluster compares KAI's decisions with ours: on the same state, once KAI is done, at a bounded cost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fairlead.control.context import Context
from fairlead.control.loop.reconcile import Reconciler
from fairlead.engines.base import CapacityChanged, ClusterPod, SchedulingBlocker, WorkloadOrder, WorkloadReport
from fairlead.foresight.kai.agreement import Agreement
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import PodPhase
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS
from tests import builders
from tests.contract.quiet_engines import QuietCluster, cluster_loop
from tests.contract.test_control_over_time import NOW, in_store

NODE = Node(
    id="n1",
    name="n1",
    cpu_milli=64_000,
    memory_bytes=1 << 38,
    gpus=tuple(GpuDevice(index, "", "A100", 40_000) for index in range(4)),
)
QUIET = 5000
WAITS = SchedulingBlocker(code="Unschedulable", message="no node has room")


class Kai(QuietCluster):
    """Says of each workload what the test wants KAI to have done."""

    def __init__(self) -> None:
        self._said: list[WorkloadReport | CapacityChanged] = [CapacityChanged()]

    async def capacity(self) -> Sequence[Node]:
        return (NODE,)

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        said, self._said = self._said, []
        return said

    def says(self, name: str, *pods: ClusterPod, waits: bool = False) -> None:
        self._said.append(WorkloadReport(workload_id=f"id-{name}", run=1, pods=pods, waits=(WAITS,) if waits else ()))

    def places(self, name: str, number: int = 0, phase: PodPhase = PodPhase.RUNNING, **more: Any) -> None:
        id = f"{name}-{number}"
        self.says(
            name,
            ClusterPod(id=id, name=id, role="worker", phase=phase, node="n1", cluster_phase="Running", **more),
        )


class Turns:
    """A loop whose turns the test makes, on a clock that it moves."""

    def __init__(self, context: Context) -> None:
        self.now = NOW
        context.clock = lambda: self.now
        self.context = context
        self.kai = Kai()
        self.loop: Reconciler[WorkloadOrder] = cluster_loop(context, self.kai)

    async def submit(self, name: str, gpus: int, **members: Any) -> None:
        spec = msgspec.Raw(
            msgspec.json.encode({"image": "x", "compute": {"gpuDevicesRequest": gpus, "cpuCoreRequest": 1}})
        )
        cluster_id = self.context.directory.cluster_id
        workload = builders.workload(name, spec=spec, created_at=self.now, cluster_id=cluster_id, **members)
        await self.context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
        self.loop.board.put(workload, ())
        self.loop._asked_for.add(workload.id)
        await self.turn()

    async def turn(self, later: int = 0) -> None:
        """One turn of the loop, and the comparison that it begins."""
        self.now += later
        await self.loop.cycle()
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() == "comparison with KAI"))

    @property
    def found(self) -> tuple[int, int, int, int]:
        found = self.context.agreement
        return found.equal_placements, found.placements, found.equal_victims, found.victims


def run(tmp_path: Path, act: Callable[[Turns], Awaitable[None]]) -> None:
    async def test(context: Context) -> None:
        turns = Turns(context)
        await turns.turn()
        await turns.turn(QUIET)
        assert context.agreement == Agreement()
        turns.now += 60_000
        await act(turns)

    in_store(tmp_path, test)


def test_a_start_is_compared_when_nothing_has_changed_for_a_while(tmp_path: Path) -> None:
    async def act(turns: Turns) -> None:
        await turns.submit("fits", 1)
        turns.kai.places("fits")
        await turns.turn(1000)
        await turns.turn(QUIET - 1)
        assert turns.found == (0, 0, 0, 0)
        assert turns.loop.driver.next_change_at == turns.now + 1
        await turns.turn(1)
        assert turns.found == (1, 1, 0, 0)
        assert turns.loop.driver.next_change_at is None

    run(tmp_path, act)


def test_kai_starts_what_ours_would_not(tmp_path: Path) -> None:
    async def act(turns: Turns) -> None:
        await turns.submit("large", 8)
        turns.kai.places("large")
        await turns.turn(1000)
        await turns.turn(QUIET)
        assert turns.found == (0, 1, 0, 0)

    run(tmp_path, act)


def test_who_waits_is_counted_once_and_only_if_kai_says_why(tmp_path: Path) -> None:
    async def act(turns: Turns) -> None:
        await turns.submit("large", 8)
        await turns.turn(QUIET)
        assert turns.found == (0, 0, 0, 0)
        turns.kai.says("large", waits=True)
        await turns.turn(60_000)
        for number in range(2):
            await turns.submit(f"fits-{number}", 1)
            turns.kai.places(f"fits-{number}")
            await turns.turn(1000)
            await turns.turn(QUIET)
            assert turns.found == (2 + number, 2 + number, 0, 0)
            turns.now += 60_000

    run(tmp_path, act)


def test_evictions_are_compared_when_the_victim_is_gone(tmp_path: Path) -> None:
    async def act(turns: Turns) -> None:
        await turns.submit("low", 4, priority=50)
        turns.kai.places("low")
        await turns.turn(1000)
        await turns.turn(QUIET)
        assert turns.found == (1, 1, 0, 0)
        turns.now += 60_000
        await turns.submit("high", 4, priority=75)
        turns.kai.places("low", phase=PodPhase.STOPPING, eviction="Preempted by high")
        turns.kai.says("high", waits=True)
        await turns.turn(1000)
        await turns.turn(QUIET)
        assert turns.found == (1, 1, 0, 0), "its pod is still stopping"
        turns.kai.says("low", waits=True)
        turns.kai.places("high")
        await turns.turn(20_000)
        await turns.turn(QUIET)
        assert turns.found == (2, 2, 1, 1)

    run(tmp_path, act)


def test_other_work_begins_it_again_but_not_soon_after_the_last_one(tmp_path: Path) -> None:
    async def act(turns: Turns) -> None:
        await turns.submit("first", 4)
        turns.kai.places("first")
        await turns.turn(1000)
        # On this state ours would not start it. It would have, before the first came.
        await turns.submit("second", 4)
        turns.kai.says("second", waits=True)
        await turns.turn(1000)
        await turns.turn(QUIET)
        assert turns.found == (1, 1, 0, 0)
        await turns.submit("third", 4)
        turns.kai.says("third", waits=True)
        await turns.turn(1000)
        await turns.turn(QUIET)
        assert turns.found == (1, 1, 0, 0)

    run(tmp_path, act)
