"""Each kind of object has a watch of its own, and each may be behind the others: the records end up the same.

A story is what a cluster does with one workload, kind by kind. Every order in which its watches can bring it is told to
the real loop on a real store.
"""

import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from fairlead.control.context import Context
from fairlead.engines.base import CapacityChanged, WorkloadReport
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.report import render_report
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.model.records.organization import Node
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Pod as PodRecord
from fairlead.model.records.workload import Workload
from fairlead.store.base import Change, Comparison, Put, Query, Where
from fairlead.store.collections import NODES, PODS, WORKLOADS
from tests import builders
from tests.contract.quiet_engines import QuietCluster, cluster_loop
from tests.contract.test_control_over_time import in_store

LABELS = {"fairlead/run": "1", "fairlead/role": "worker"}
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "made room"}

#: Objects by name after a step of a watch; None for one that went.
Step = dict[str, dict[str, Any] | None]


def job(*conditions: str, **counts: int) -> Step:
    said = [{"type": type, "status": "True"} for type in conditions]
    return {"job": {"metadata": {"name": "job", "labels": LABELS}, "status": {"conditions": said, **counts}}}


def pod(name: str, phase: str, code: int | None = None, *, node: str = "node", evicted: bool = False) -> Step:
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code, "reason": "Completed"}}
    metadata: dict[str, Any] = {"name": name, "labels": LABELS}
    if evicted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "phase": phase,
        "conditions": [EVICTED] if evicted else [],
        "containerStatuses": [] if phase == "Pending" else [{"name": "main", "state": state}],
    }
    return {name: {"metadata": metadata, "spec": {"nodeName": node}, "status": status}}


def life(name: str, *end: Step) -> list[Step]:
    return [pod(name, "Pending", node=""), pod(name, "Pending"), pod(name, "Running"), *end]


class Story(NamedTuple):
    jobs: Sequence[Step]
    pods: Sequence[Step]
    phase: Phase
    #: Phases and reasons of all pods that there were, in their order.
    ends: Sequence[tuple[str, str]]
    #: Pods that ended well and badly, and preemptions.
    counts: tuple[int, int, int]


STORIES = {
    "ends well": Story(
        [job(), job("Complete", succeeded=1)],
        life("a", pod("a", "Succeeded", 0)),
        Phase.COMPLETED,
        [("Succeeded", "Completed")],
        (1, 0, 0),
    ),
    "fails": Story(
        [job(), job("Failed", failed=1)],
        life("a", pod("a", "Failed", 3)),
        Phase.FAILED,
        [("Failed", "Completed")],
        (0, 1, 0),
    ),
    "fails, and its second pod ends well": Story(
        [job(), job(failed=1), job("Complete", failed=1, succeeded=1)],
        [*life("a", pod("a", "Failed", 3)), pod("b", "Running"), pod("b", "Succeeded", 0)],
        Phase.COMPLETED,
        [("Failed", "Completed"), ("Succeeded", "Completed")],
        (1, 1, 0),
    ),
    "is preempted, and its second pod ends well": Story(
        [job(), job("Complete", succeeded=1)],
        [*life("a", pod("a", "Running", evicted=True), {"a": None}), *life("b", pod("b", "Succeeded", 0))],
        Phase.COMPLETED,
        [("Stopped", "Gone"), ("Succeeded", "Completed")],
        (1, 0, 1),
    ),
}


class Cluster(QuietCluster):
    """Says what its watches have brought."""

    def __init__(self, workload_id: str) -> None:
        self._id = workload_id
        self._jobs: dict[str, Any] = {}
        self._pods: dict[str, Any] = {}
        self._is_changed = False

    def bring(self, kind: str, step: Step) -> None:
        shelf, type = (self._jobs, objects.Runner) if kind == "jobs" else (self._pods, objects.Pod)
        for name, item in step.items():
            shelf.pop(name, None)
            if item is not None:
                metadata = item["metadata"] | {"uid": f"{self._id}-{name}"}
                shelf[name] = msgspec.convert(item | {"metadata": metadata}, type)
        self._is_changed = True

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        if not self._is_changed:
            return ()
        self._is_changed = False
        held = ObservedWorkload(
            runners=tuple(self._jobs.values()), pods=tuple(self._pods.values()), kinds=frozenset({"Job"})
        )
        return (render_report(self._id, held),)


class Scaled(Cluster):
    """Its nodes come and go too."""

    def __init__(self, workload_id: str, *nodes: Node) -> None:
        super().__init__(workload_id)
        self.nodes = nodes
        self.have_nodes_changed = True

    async def capacity(self) -> Sequence[Node]:
        return self.nodes

    async def observe(self) -> Sequence[WorkloadReport | CapacityChanged]:
        changes = (CapacityChanged(),) if self.have_nodes_changed else ()
        self.have_nodes_changed = False
        return (*await super().observe(), *changes)


def orders(story: Story) -> Iterator[list[str]]:
    """Every order in which the watches can bring their steps, each in its own order."""
    number = len(story.jobs) + len(story.pods)
    for places in itertools.combinations(range(number), len(story.jobs)):
        yield ["jobs" if place in places else "pods" for place in range(number)]


async def tell(context: Context, story: Story, order: Sequence[str], looks: Sequence[bool]) -> Any:
    """What is on record after the story; the loop looks after a step, or only after a later one."""
    workload = builders.workload(f"train-{context.new_id()}", phase=Phase.CREATING)
    await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
    cluster = Cluster(workload.id)
    loop = cluster_loop(context, cluster)
    loop.board.put(workload, ())
    steps = {"jobs": iter(story.jobs), "pods": iter(story.pods)}
    for kind, is_looked_at in zip(order, looks, strict=True):
        cluster.bring(kind, next(steps[kind]))
        if is_looked_at:
            await loop.cycle()
    found: Workload | None = await context.store.get(WORKLOADS, workload.id)
    assert found is not None
    where = (Where("workload_id", Comparison.EQUAL, workload.id),)
    pods: Sequence[PodRecord] = await context.store.find(Query(collection=PODS, where=where))
    ends = [(one.phase.value, one.reason) for one in sorted(pods, key=lambda one: one.id)]
    tally = found.tally("worker")
    return found.phase, ends, (tally.succeeded, tally.failed, found.preemptions), list(loop.board.entries)


@pytest.mark.parametrize("name", STORIES)
def test_whichever_watch_is_behind_the_records_are_the_same(tmp_path: Path, name: str) -> None:
    story = STORIES[name]

    async def test(context: Context) -> None:
        for order in orders(story):
            found = await tell(context, story, order, [True] * len(order))
            assert found == (story.phase, story.ends, story.counts, []), order

    in_store(tmp_path, test)


@pytest.mark.parametrize("name", [name for name, story in STORIES.items() if {"a": None} not in story.pods])
def test_steps_that_were_missed_change_nothing(tmp_path: Path, name: str) -> None:
    """As when a watch has to list anew; only a pod that came and went meanwhile would never be known."""
    story = STORIES[name]
    chance = random.Random(name)

    async def test(context: Context) -> None:
        for order in orders(story):
            looks = [chance.random() < 0.5 for _ in order[1:]] + [True]
            found = await tell(context, story, order, looks)
            assert found == (story.phase, story.ends, story.counts, []), (order, looks)

    in_store(tmp_path, test)


def test_a_node_that_is_gone_stays_until_its_last_pod_is_gone(tmp_path: Path) -> None:
    """The watch on nodes is ahead, and brings nothing more when the pods of the node go."""

    async def test(context: Context) -> None:
        workload = builders.workload("train", phase=Phase.CREATING)
        await context.store.commit(Change(writes=(Put(WORKLOADS, workload),)))
        cluster = Scaled(workload.id, Node(id="n", name="node", cpu_milli=1000, memory_bytes=2**30))
        loop = cluster_loop(context, cluster)
        loop.board.put(workload, ())
        cluster.bring("jobs", job())
        cluster.bring("pods", pod("a", "Running"))
        await loop.cycle()
        cluster.nodes, cluster.have_nodes_changed = (), True
        await loop.cycle()
        assert [(one.name, one.ready) for one in await context.store.find(Query(collection=NODES))] == [("node", False)]
        cluster.bring("pods", {"a": None})
        await loop.cycle()
        assert await context.store.find(Query(collection=NODES)) == []

    in_store(tmp_path, test)
