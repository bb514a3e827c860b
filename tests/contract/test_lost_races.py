"""What an engine reports once is not lost when the loop's own record is, or when the store does not answer."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from fairlead.control.assets.pod_supplies import leave_claims
from fairlead.control.context import Context
from fairlead.control.organization.removal import remove_emptied
from fairlead.control.workloads.submit import submit
from fairlead.engines.base import (
    CapacityChanged,
    ClusterPod,
    DropEphemeralClaims,
    Forget,
    PodOrder,
    PodReport,
    PodState,
    Start,
    WorkloadReport,
)
from fairlead.kinds import KINDS
from fairlead.model.errors import Conflict, Unavailable
from fairlead.model.records.organization import Node
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.spec.claims import ClaimInfo, Pvc
from fairlead.model.spec.storage import BasicStorage
from fairlead.model.submission import Submission
from fairlead.store.base import Change, Put, Query, Store
from fairlead.store.collections import CLAIMS, CYCLES, NODES, PODS, PROJECTS, WORKLOADS
from tests import builders
from tests.contract.quiet_engines import QuietCluster, QuietPods, cluster_loop, pod_loop
from tests.contract.test_control_over_time import CALLER, in_store

NODE = Node(id="node", name="node", cpu_milli=1000, memory_bytes=2**30)


class Engine(QuietPods):
    """Reports one end, once, and writes to the workload before anybody can record it."""

    def __init__(self, context: Context, pod: Pod) -> None:
        self._context = context
        self._pod = pod
        self._has_reported = False

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


class Cluster(QuietCluster):
    """Says once that a node is new and that a workload, which is over, has had a pod."""

    def __init__(self, report: WorkloadReport) -> None:
        self._said: list[WorkloadReport | CapacityChanged] = [CapacityChanged(), report]

    async def capacity(self) -> Sequence[Node]:
        return (NODE,)

    def say(self, report: WorkloadReport) -> None:
        self._said.append(report)

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        said, self._said = self._said, []
        return said


class Away:
    """A store of which one method does not answer the first time."""

    def __init__(self, store: Store, failing: str) -> None:
        self._store = store
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        if name != self._failing:
            return getattr(self._store, name)
        self._failing = ""

        async def fail(*_: object) -> None:
            raise Unavailable("The database is away")

        return fail


def test_an_end_that_was_reported_during_a_lost_race_is_recorded_in_the_next_turn(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        workload = builders.workload(phase=Phase.RUNNING)
        pod = builders.pod(role="worker")
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload), Put(PODS, pod))))
        loop = pod_loop(context, Engine(context, pod))
        loop.board.put(workload, [pod])
        await loop.cycle()
        assert loop.metrics.conflicts == 1
        await loop.cycle()
        ended: Pod | None = await context.store.get(PODS, pod.id)
        finished: Workload | None = await context.store.get(WORKLOADS, workload.id)
        assert ended is not None
        assert finished is not None
        assert (ended.phase, finished.phase) == (PodPhase.SUCCEEDED, Phase.COMPLETED)

    in_store(tmp_path, test)


@pytest.mark.parametrize("failing", ["commit", "get"])
def test_reports_during_an_outage_of_the_store_are_recorded_afterwards(tmp_path: Path, failing: str) -> None:
    """The first commit is that of the nodes; the first reading that of the workload, which had left the board."""

    async def test(context: Context) -> None:
        workload = builders.workload(phase=Phase.COMPLETED)
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
        late = ClusterPod(
            id="late", name="late", role="worker", phase=PodPhase.SUCCEEDED, node="node", cluster_phase="Succeeded"
        )
        report = WorkloadReport(workload_id=workload.id, run=workload.run, pods=(late,), ended=Phase.COMPLETED)
        context.store = cast(Store, Away(context.store, failing))
        loop = cluster_loop(context, Cluster(report))
        with pytest.raises(Unavailable):
            await loop.cycle()
        await loop.cycle()
        found: Pod | None = await context.store.get(PODS, "late")
        assert found is not None
        assert found.phase is PodPhase.SUCCEEDED
        assert await context.store.get(NODES, NODE.id) is not None

    in_store(tmp_path, test)


class Meanwhile:
    """A store in which another change is made just before the first one."""

    def __init__(self, store: Store, sooner: Change) -> None:
        self._store = store
        self._sooner = [sooner]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, change: Change) -> int:
        while self._sooner:
            await self._store.commit(self._sooner.pop())
        return await self._store.commit(change)


def mounting(context: Context, name: str) -> Submission:
    kind = KINDS["training"]
    claim = Pvc(path="/data", claim_name="shared", claim_info=ClaimInfo(size="1G"))
    spec = kind.spec(image="x", command="true", storage=BasicStorage(pvc=(claim,)))
    return Submission(kind=kind.key, name=name, project_id="1", cluster_id=context.directory.cluster.id, spec=spec)


async def leave(context: Context, name: str) -> tuple[Workload, Change]:
    """A workload that created a claim and is being deleted, and the change of its end."""
    workload = await submit(context, CALLER, mounting(context, name))
    leaving = msgspec.structs.replace(workload, version=workload.version + 1, desired_phase=DesiredPhase.DELETED)
    await context.store.commit(Change(writes=(Put(WORKLOADS, leaving),)))
    writes, events = await leave_claims(context, leaving)
    return leaving, Change(writes=tuple(writes), events=tuple(events))


def test_a_claim_stays_for_whoever_mounts_it_before_it_is_deleted(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        leaving, end = await leave(context, "first")
        await submit(context, CALLER, mounting(context, "second"))
        with pytest.raises(Conflict):
            await context.store.commit(end)
        writes, _ = await leave_claims(context, leaving)
        await context.store.commit(Change(writes=tuple(writes)))
        assert [claim.workload_id for claim in await context.store.find(Query(collection=CLAIMS))] == [""]

    in_store(tmp_path, test)


def test_a_claim_is_made_again_for_whoever_mounts_it_after_it_was_deleted(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        _, end = await leave(context, "first")
        context.store = cast(Store, Meanwhile(context.store, end))
        second = await submit(context, CALLER, mounting(context, "second"))
        assert [claim.workload_id for claim in await context.store.find(Query(collection=CLAIMS))] == [second.id]

    in_store(tmp_path, test)


class Unsure:
    """A store that makes one change, other than a recorded cycle, and cannot say so."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, change: Change) -> Any:
        done = await self._store.commit(change)
        if self.is_cut and all(write.collection is not CYCLES for write in change.writes):
            self.is_cut = False
            raise Unavailable("Whether the change was made is unknown")
        return done


def test_a_record_that_another_writer_made_does_not_block_the_loop(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        workload = builders.workload(phase=Phase.PENDING)
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
        unsure = Unsure(context.store)
        context.store = cast(Store, unsure)
        pod = ClusterPod(id="u", name="p", role="worker", phase=PodPhase.STARTING, node="node")
        starts = WorkloadReport(workload_id=workload.id, run=1, pods=(pod,))
        ended = msgspec.structs.replace(pod, phase=PodPhase.SUCCEEDED)
        ends = WorkloadReport(
            workload_id=workload.id, run=1, pods=(ended,), succeeded={"worker": 1}, ended=Phase.COMPLETED
        )
        engine = Cluster(starts)
        loop = cluster_loop(context, engine)
        loop.board.put(workload, ())
        await loop.cycle()
        engine.say(msgspec.structs.replace(starts, pods=(msgspec.structs.replace(pod, phase=PodPhase.RUNNING),)))
        unsure.is_cut = True
        with pytest.raises(Unavailable):
            await loop.cycle()
        loop._dirty.update(loop.board.entries)
        engine.say(ends)
        await loop.cycle()
        found: Workload | None = await context.store.get(WORKLOADS, workload.id)
        assert found is not None
        assert (found.phase, loop.metrics.conflicts, loop._dirty) == (Phase.COMPLETED, 0, set())

    in_store(tmp_path, test)


class Listening(QuietPods):
    """An engine with one node that keeps what it is told to do, and has said something once."""

    def __init__(self, *said: PodReport) -> None:
        self.orders: list[PodOrder] = []
        self._said: Sequence[PodReport] = said

    async def capacity(self) -> Sequence[Node]:
        return (NODE,)

    async def observe(self) -> Sequence[PodReport]:
        said, self._said = self._said, ()
        return said

    async def apply(self, orders: Sequence[PodOrder]) -> None:
        self.orders += orders


def test_nodes_that_were_recorded_unknown_to_the_loop_do_not_stop_it(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        workload = builders.workload(phase=Phase.COMPLETED)
        unsure = Unsure(context.store)
        context.store = cast(Store, unsure)
        engine = Cluster(WorkloadReport(workload_id=workload.id))
        loop = cluster_loop(context, engine)
        unsure.is_cut = True
        with pytest.raises(Unavailable):
            await loop.cycle()
        with pytest.raises(Conflict):
            await loop.cycle()
        await loop.cycle()
        assert list(context.directory.nodes) == [NODE.id]

    in_store(tmp_path, test)


def test_what_an_end_leaves_is_removed_also_when_its_record_was_made_unknown_to_the_loop(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        claim = {"path": "/scratch", "ephemeral": True, "claimInfo": {"size": "1M"}}
        spec = {"image": "fairlead.local/host", "command": "true", "storage": {"pvc": [claim]}}
        workload = builders.workload(phase=Phase.RUNNING, spec=msgspec.Raw(msgspec.json.encode(spec)))
        pod = builders.pod(role="worker")
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload), Put(PODS, pod))))
        unsure = Unsure(context.store)
        context.store = cast(Store, unsure)
        engine = Listening(
            PodReport(pod_id=pod.id, workload_id=workload.id, attempt=1, state=PodState.EXITED, exit_code=0, ended_at=1)
        )
        loop = pod_loop(context, engine)
        loop.board.put(workload, [pod])
        unsure.is_cut = True
        with pytest.raises(Unavailable):
            await loop.cycle()
        loop._dirty.update(loop.board.entries)
        await loop.cycle()
        assert engine.orders == [Forget(pod.id), DropEphemeralClaims(workload.id)]

    in_store(tmp_path, test)


def test_a_pod_whose_record_was_made_unknown_to_the_loop_is_started_and_not_made_twice(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        await context.store.commit(Change(writes=(Put(NODES, NODE),)))
        await context.directory.load()
        workload = builders.workload(phase=Phase.PENDING)
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
        unsure = Unsure(context.store)
        context.store = cast(Store, unsure)
        engine = Listening()
        loop = pod_loop(context, engine)
        loop.board.put(workload, ())
        loop._dirty.add(workload.id)
        unsure.is_cut = True
        with pytest.raises(Unavailable):
            await loop.cycle()
        assert engine.orders == []
        loop._dirty.update(loop.board.entries)
        await loop.cycle()
        [pod] = await context.store.find(Query(collection=PODS))
        assert [order.pod.pod_id for order in engine.orders if isinstance(order, Start)] == [pod.id]

    in_store(tmp_path, test)


def test_two_that_find_a_deleted_project_empty_both_succeed(tmp_path: Path) -> None:
    async def test(context: Context) -> None:
        [project] = context.directory.projects.values()
        going = msgspec.structs.replace(project, version=project.version + 1, deleted_at=1)
        await context.store.commit(Change(writes=(Put(PROJECTS, going),)))
        await context.directory.load()
        await asyncio.gather(remove_emptied(context), remove_emptied(context))
        assert not context.directory.projects
        assert await context.store.get(PROJECTS, project.id) is None

    in_store(tmp_path, test)
