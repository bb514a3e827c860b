"""How many bytes recorded scheduling cycles take, and what recording and rebuilding them costs.

    python -m bench.cycles [--quick]

A real loop on a real SQLite store; the engine only pretends to run pods, and the clock is set by the bench. 100 nodes x
8 GPUs, 20 projects, 800 workloads running and 200 waiting. In each cycle one workload ends and another is submitted.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings
from fairlead.control.cycles.load import load_cycle, load_cycles
from fairlead.control.cycles.segments import digest_decisions
from fairlead.control.directory import Directory
from fairlead.control.ids import GrowingIds, new_suffix
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.loop.reconcile import Reconciler
from fairlead.engines.base import CapacityChanged, PodOrder, PodReport, PodState, Start
from fairlead.model.records.cycle import CyclePiece
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import DesiredPhase, Phase
from fairlead.model.records.workload import Workload
from fairlead.scheduling import Decisions, Snapshot, decide
from fairlead.store.base import Change, Put
from fairlead.store.collections import PROJECTS, WORKLOADS
from fairlead.store.sqlite import open_sqlite
from tests.contract.quiet_engines import QuietPods

NODES, GPUS, PROJECT_COUNT, WAITING = 100, 8, 20, 200
START = 1_700_000_000_000
HOUR = 3_600_000


class PretendedPods(QuietPods):
    """Starts every pod at once and ends the oldest when it is told to."""

    def __init__(self) -> None:
        self.running: dict[str, PodReport] = {}
        self.news: list[PodReport] = []

    async def capacity(self) -> Sequence[Node]:
        devices = tuple(GpuDevice(index, model="H100", memory_mib=80_000) for index in range(GPUS))
        return [
            Node(id=f"n{n}", name=f"gpu-node-{n:03d}", cpu_milli=128_000, memory_bytes=1 << 40, gpus=devices)
            for n in range(NODES)
        ]

    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        news, self.news = self.news, []
        return news

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        for order in orders:
            if isinstance(order, Start):
                pod = order.pod
                report = PodReport(pod_id=pod.pod_id, workload_id=pod.workload_id, attempt=1, state=PodState.RUNNING)
                self.running[pod.pod_id] = report
                self.news.append(report)

    def end_oldest(self, now: int) -> None:
        report = self.running.pop(next(iter(self.running)))
        ended = {"state": PodState.EXITED, "exit_code": 0, "ended_at": now}
        self.news.append(msgspec.structs.replace(report, **ended))


class Flow:
    """A server's loop with as many workloads as the bench wants, and a clock that it sets."""

    def __init__(self, context: Context, engine: PretendedPods, times: list[int]) -> None:
        self.context = context
        self.engine = engine
        self.times = times
        self.driver = PodDriver(context, engine)
        self.loop = Reconciler(context, self.driver, lambda at: None, time.monotonic)
        self.submitted = 0

    async def submit(self, count: int) -> None:
        """Put records as a submission does, one commit for all."""
        writes = []
        for _ in range(count):
            number = self.submitted = self.submitted + 1
            project = f"{1 + number % PROJECT_COUNT}"
            spec = {
                "image": "nvcr.io/nvidia/pytorch:24.10-py3",
                "command": f"python train.py --seed {number} --epochs {10 + number % 7}",
                "compute": {"gpuDevicesRequest": 1, "cpuCoreRequest": 4, "cpuMemoryRequest": "32G"},
            }
            workload = Workload(
                id=self.context.new_id(),
                version=1,
                kind="training",
                name=f"experiment-{number}",
                requested_name=f"experiment-{number}",
                project_id=project,
                project_name=f"team-{project}",
                department_id="1",
                department_name="default",
                cluster_id=self.context.directory.cluster.id,
                created_by=f"user{number % 50}@example.com",
                created_at=self.times[0],
                spec=msgspec.Raw(msgspec.json.encode(spec)),
                desired_phase=DesiredPhase.RUNNING,
                phase=Phase.CREATING,
                priority=50,
                node_pools=("default",),
            )
            writes.append(Put(WORKLOADS, workload))
            self.loop._dirty.add(workload.id)  # as the store's notice of an event does
        await self.context.store.commit(Change(writes=tuple(writes)))

    async def settle(self, seconds: int = 1) -> None:
        """Turns until nothing is left to do, a second apart."""
        while True:
            self.times[0] += seconds * 1000
            await self.loop.cycle()
            if not self.loop._dirty and not self.engine.news:
                return


def stored(path: Path) -> tuple[int, int]:
    """Rows, and the bytes of their ids (in the table and in its index), data and counters."""
    with sqlite3.connect(path) as connection:
        text = "SELECT count(*), coalesce(sum(2 * length(id) + length(data) + 12), 0) FROM cycles"
        rows, size = connection.execute(text).fetchone()
    return int(rows), int(size)


async def make_flow(folder: Path) -> Flow:
    store = await open_sqlite(folder / "fairlead.db")
    times = [START]
    ids = GrowingIds(lambda: times[0])
    context = Context(
        store=store,
        clock=lambda: times[0],
        directory=Directory(store),
        sessions=None,
        settings=ControlSettings(),
        new_id=ids.next,
        new_suffix=new_suffix,
    )
    await ensure_defaults(context)
    default = next(iter(context.directory.projects.values()))
    projects = [
        msgspec.structs.replace(default, id=f"{n}", name=f"team-{n}", version=1) for n in range(2, PROJECT_COUNT + 1)
    ]
    await store.commit(Change(writes=tuple(Put(PROJECTS, project) for project in projects)))
    await context.directory.load()
    flow = Flow(context, PretendedPods(), times)
    await flow.loop._nodes.record()  # what a start does first
    return flow


async def measure(folder: Path, cycles: int) -> list[tuple[str, float, str, float | None]]:
    flow = await make_flow(folder)
    path = folder / "fairlead.db"
    await flow.submit(NODES * GPUS + WAITING)
    await flow.settle()
    await flow.settle()
    begun = flow.times[0]
    size_before = stored(path)[1]
    metrics = flow.loop.metrics
    seen = metrics.scheduling_cycles
    encoding, began = time_encoding(flow), time.process_time()
    for _ in range(cycles):
        flow.engine.end_oldest(flow.times[0])
        await flow.submit(1)
        await flow.settle()
    assert len(flow.engine.running) == NODES * GPUS, len(flow.engine.running)
    whole = time.process_time() - began
    made = metrics.scheduling_cycles - seen
    size = stored(path)[1]
    result: list[tuple[str, float, str, float | None]] = [
        ("cycles that changed something", made, "", None),
        ("bytes for each of them", (size - size_before) / made, "B", 2048),
        ("CPU time to record one", 1000 * encoding[0] / made, "ms", None),
        ("of the CPU time of the whole loop", 100 * encoding[0] / whole, "%", 10),
    ]
    before_calm = stored(path)[1]
    for _ in range(60 * 24):
        flow.times[0] += HOUR // 60
        flow.driver.scheduler.needed = True
        await flow.loop.cycle()
    calm = stored(path)[1] - before_calm
    result.append(("bytes an hour with 60 cycles that change nothing", calm / 24, "B", 200))
    result += await measure_reading(flow, begun)
    await flow.context.store.close()
    return result


async def measure_reading(flow: Flow, begun: int) -> list[tuple[str, float, str, float | None]]:
    """Rebuild one cycle, and decide all of them again."""
    began = time.process_time()
    cycle = await load_cycle(flow.context, (begun + flow.times[0]) // 2)
    loading = time.process_time() - began
    began = time.process_time()
    decide(cycle.snapshot)
    deciding = time.process_time() - began
    same = total = 0
    async for portion in load_cycles(flow.context, begun, flow.times[0]):
        for each in portion[::5]:
            total += 1
            same += digest_decisions(decide(each.snapshot)) == each.entry.digest
    return [
        ("rebuild the state of one cycle, CPU", loading * 1000, "ms", None),
        ("one decision on it, CPU", deciding * 1000, "ms", None),
        ("decisions equal to the byte, of every fifth cycle", 100 * same / max(total, 1), "%", None),
    ]


def time_encoding(flow: Flow) -> list[float]:
    """CPU seconds that recording takes in the decision's thread; grows with every cycle."""
    recorder = flow.driver._recorder
    plain, spent = recorder.encode, [0.0]

    def encode(snapshot: Snapshot, decisions: Decisions) -> tuple[CyclePiece, ...]:
        began = time.thread_time()
        pieces = plain(snapshot, decisions)
        spent[0] += time.thread_time() - began
        return pieces

    recorder.encode = encode  # type: ignore[method-assign]  # to measure it inside the loop
    return spent


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cycles")
    parser.add_argument("--quick", action="store_true")
    cycles = 60 if parser.parse_args(arguments).quick else 400
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(Path(folder), cycles))
    print(f"{'recorded cycles, 1,000 workloads':56} {'measured':>12}   goal")
    for what, value, unit, goal in rows:
        print(f"{what:56} {value:12,.1f} {unit:2} {'' if goal is None else f'<= {goal:,.0f}'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
