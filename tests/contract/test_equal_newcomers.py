"""Submissions equal to one that waits: Pending at once, not decided on again, and started when there is room."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlead.control.context import Context
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.loop.pod_driver import PodDriver
from fairlead.control.loop.reconcile import Reconciler
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import CapacityChanged, PodOrder, PodReport, Start
from fairlead.kinds import KINDS
from fairlead.model.clock import Millis
from fairlead.model.records.organization import Node
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload
from fairlead.model.spec.compute import Compute
from fairlead.model.submission import Submission
from fairlead.store.collections import WORKLOADS
from tests.contract.databases import eventually
from tests.contract.quiet_engines import QuietPods
from tests.contract.test_control_over_time import in_store

ADMIN = Caller("admin@fairlead.local", "1", is_administrator=True)


class Growing(QuietPods):
    """One node, too small until it grows; knows which workloads were started."""

    def __init__(self) -> None:
        self.cores = 1
        self.started: set[str] = set()
        self.has_news = False

    async def start(self, notify: Callable[[], None]) -> None:
        self.notify = notify

    async def capacity(self) -> Sequence[Node]:
        return (Node(id="node", name="node", cpu_milli=1000 * self.cores, memory_bytes=2**33),)

    async def observe(self) -> Sequence[PodReport | CapacityChanged]:
        reports = (CapacityChanged(),) if self.has_news else ()
        self.has_news = False
        return reports

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        self.started |= {order.pod.workload_id for order in orders if isinstance(order, Start)}

    def grow(self, cores: int) -> None:
        self.cores, self.has_news = cores, True
        self.notify()


class Counting(PodDriver):
    """Knows on which workloads it has decided."""

    def __init__(self, context: Context, engine: Growing) -> None:
        super().__init__(context, engine)
        self.decided: list[str] = []

    def decide(self, entry: WorkloadEntry, now: Millis) -> Draft:
        self.decided.append(entry.workload.name)
        return super().decide(entry, now)


async def submit_job(context: Context, name: str, cores: float) -> Workload:
    kind = next(iter(KINDS.values()))
    spec = kind.spec(image="x", command="true", compute=Compute(cpu_core_request=cores))
    cluster = context.directory.cluster.id
    submission = Submission(kind=kind.key, name=name, project_id="1", cluster_id=cluster, spec=spec)
    return await submit(context, ADMIN, submission)


def test_an_equal_newcomer_is_not_decided_on_until_something_changes(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        engine = Growing()
        driver = Counting(context, engine)
        loop = Reconciler(context, driver, lambda at: None, lambda: 0.0)
        ready = asyncio.Event()
        running = asyncio.create_task(loop.run(ready))
        await ready.wait()
        first = await submit_job(context, "first", cores=2)
        await eventually(lambda: bool(context.pending_equivalents))
        second = await submit_job(context, "second", cores=2)
        other = await submit_job(context, "other", cores=3)
        await eventually(lambda: "other" in driver.decided)

        assert second.phase is Phase.PENDING
        assert second.phase_message == "Can never start: it asks for 2 CPU cores, the largest node (node) has 1."
        assert second.blocked_by is not None
        assert second.blocked_by["task"] == "second"
        assert "second" not in driver.decided
        stored = await context.store.get(WORKLOADS, second.id)
        assert stored is not None
        assert stored.version == 1

        engine.grow(cores=8)
        await eventually(lambda: engine.started == {first.id, second.id, other.id})
        loop.stop()
        await running

    in_store(tmp_path, test)
