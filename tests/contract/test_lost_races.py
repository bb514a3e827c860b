"""What an engine reports while somebody else changes the workload is not lost with the loop's own record."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from fairlead.control.context import Context
from fairlead.control.reconcile import Reconciler
from fairlead.engines.base import Order, PodReport, PodState, Review
from fairlead.model.org import Node
from fairlead.model.phase import Phase, PodPhase
from fairlead.model.workload import Pod, Workload
from fairlead.store.base import Change, Put
from fairlead.store.collections import PODS, WORKLOADS
from tests import builders
from tests.contract.test_control_over_time import in_store


class Engine:
    """Reports one end, once, and writes to the workload before anybody can record it."""

    def __init__(self, context: Context, pod: Pod) -> None:
        self._context = context
        self._pod = pod
        self._has_reported = False

    async def start(self, notify: object) -> None: ...

    async def capacity(self) -> Sequence[Node]:
        return ()

    async def observe(self) -> Sequence[PodReport]:
        if self._has_reported:
            return ()
        self._has_reported = True
        workload: Workload | None = await self._context.store.get(WORKLOADS, self._pod.workload_id)
        assert workload is not None
        newer = msgspec.structs.replace(workload, version=workload.version + 1)
        await self._context.store.commit(Change(writes=(Put(WORKLOADS, newer),)))
        report = PodReport(
            pod_id=self._pod.id, workload_id=workload.id, attempt=1, state=PodState.EXITED, exit_code=0, ended_at=1
        )
        return (report,)

    async def apply(self, orders: Sequence[Order]) -> None: ...

    async def close(self) -> None: ...


def test_an_end_that_was_reported_during_a_lost_race_is_recorded_in_the_next_turn(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        workload = builders.workload(phase=Phase.RUNNING)
        pod = builders.pod(role="worker")
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload), Put(PODS, pod))))
        loop = Reconciler(context, Engine(context, pod), lambda podset: Review(), lambda at: None, lambda: 0.0)
        loop.board.put(workload, [pod])
        await loop.cycle()
        assert loop.figures.conflicts == 1
        await loop.cycle()
        ended: Pod | None = await context.store.get(PODS, pod.id)
        finished: Workload | None = await context.store.get(WORKLOADS, workload.id)
        assert ended is not None
        assert finished is not None
        assert (ended.phase, finished.phase) == (PodPhase.SUCCEEDED, Phase.COMPLETED)

    in_store(tmp_path, test)
