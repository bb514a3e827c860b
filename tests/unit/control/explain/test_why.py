"""What `why` counts where a cluster gave out the GPUs: what its pods hold now, and not what a decision would change."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from fairlead.control.bootstrap import ensure_defaults
from fairlead.control.context import Context, ControlSettings, EngineView
from fairlead.control.directory import Directory
from fairlead.control.explain.cluster_snapshot import load_snapshot
from fairlead.control.explain.feasibility import find_lasting_blocker
from fairlead.control.explain.foresight import explain_pending
from fairlead.control.explain.why import WaitingReport, explain_waiting
from fairlead.model.records.organization import GpuDevice, Node, PoolQuota, Project, Quota
from fairlead.model.records.people import Caller
from fairlead.model.records.phase import Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.scheduling.model.snapshot import Snapshot
from fairlead.scheduling.model.validate import contradictions
from fairlead.store.base import Change, Put
from fairlead.store.collections import NODES, PODS, PROJECTS, WORKLOADS
from fairlead.store.sqlite import open_sqlite
from tests import builders

NOW = 1_000_000
CALLER = Caller("admin@fairlead.local", "1", is_administrator=True)
DEVICES = tuple(GpuDevice(index=index, memory_mib=16_000) for index in range(8))
Held = tuple[Workload, tuple[Pod, ...]]
Answer = TypeVar("Answer")
Question = Callable[[Context, Workload], Awaitable[Answer]]


def workload(name: str, compute: dict[str, Any], phase: Phase, project: str = "1", **members: Any) -> Workload:
    spec = msgspec.Raw(msgspec.json.encode({"image": "x", "compute": compute}))
    named = "default" if project == "1" else "other"
    return builders.workload(name, spec=spec, phase=phase, project_id=project, project_name=named, **members)


def holds(name: str, gpu: float, project: str = "1", phase: PodPhase = PodPhase.RUNNING, **members: Any) -> Held:
    """A workload with one pod, recorded as pods of a cluster are: its devices are counted from 0."""
    portion = {"gpuRequestType": "portion", "gpuPortionRequest": gpu}
    owner = workload(name, portion if gpu < 1 else {"gpuDevicesRequest": int(gpu)}, Phase.RUNNING, project)
    pod = builders.pod(
        f"{name}-x",
        workload_id=owner.id,
        project_id=project,
        role="worker",
        node="worker-1",
        node_pool="default",
        phase=phase,
        cluster_phase="Running",
        gpu_devices=tuple(range(max(1, int(gpu)))),
        gpu_thousandths=1000 if gpu >= 1 else int(gpu * 1000),
        **members,
    )
    return owner, (pod,)


def waits(name: str, gpus: int, **members: Any) -> Held:
    return workload(name, {"gpuDevicesRequest": gpus}, Phase.PENDING, **members), ()


def ask(folder: Path, name: str, *held: Held, others: tuple[Node, ...] = ()) -> tuple[WaitingReport, Snapshot]:
    """Why it waits on a node of 8 GPUs that two projects with a quota of 4 share, and what was decided on."""

    async def explain(context: Context, waiting: Workload) -> tuple[WaitingReport, Snapshot]:
        report = await explain_waiting(context, CALLER, waiting)
        assert report is not None
        return report, await load_snapshot(context, CALLER)

    return in_context(folder, name, explain, *held, others=others)


def in_context(folder: Path, name: str, question: Question[Answer], *held: Held, others: tuple[Node, ...]) -> Answer:
    async def run() -> Answer:
        store = await open_sqlite(folder / "fairlead.db")
        context = Context(
            store=store,
            clock=lambda: NOW,
            directory=Directory(store),
            sessions=None,
            settings=ControlSettings(),
            new_id=lambda: "id",
            new_suffix=lambda: "suffix",
        )
        try:
            await ensure_defaults(context)
            own = context.directory.projects["1"]
            node = Node(
                id="worker-1", name="worker-1", cpu_milli=64_000, memory_bytes=1 << 36, gpus=DEVICES, created_at=0
            )
            writes = [
                *(Put(NODES, each) for each in (node, *others)),
                *(Put(PROJECTS, each) for each in _projects(own)),
            ]
            for owner, pods in held:
                writes += [Put(WORKLOADS, owner), *(Put(PODS, pod) for pod in pods)]
            await store.commit(Change(writes=tuple(writes)))
            await context.directory.load()
            waiting = next(owner for owner, _ in held if owner.name == name)
            return await question(context, waiting)
        finally:
            await store.close()

    return asyncio.run(run())


def _projects(own: Project) -> list[Project]:
    four = (PoolQuota(node_pool_id="1", node_pool_name="default", gpu=Quota(deserved=4, over_quota_weight=1)),)
    first = msgspec.structs.replace(own, resources=four, version=own.version + 1)
    return [first, msgspec.structs.replace(own, id="2", version=1, name="other", resources=four)]


def gpus_used(report: WaitingReport) -> dict[str, tuple[float, float]]:
    return {owner.type: (owner.allocated[0], owner.allocated_non_preemptible[0]) for owner in report.owners}


SEVEN = [holds(f"a{number}", 1) for number in range(3)] + [holds(f"b{number}", 1, "2") for number in range(4)]
#: Of one GPU; recorded without its name, as all were once.
HALVES = [holds("h1", 0.5), holds("h2", 0.5)]
NAMED_HALVES = [holds("h1", 0.5, gpu_groups=("g",)), holds("h2", 0.5, gpu_groups=("g",))]


@pytest.mark.parametrize("halves", [HALVES, NAMED_HALVES], ids=["the GPU has no name", "the GPU has a name"])
def test_seven_whole_gpus_and_two_halves_use_all_of_eight(halves: list[Held], tmp_path: Path) -> None:
    report, snapshot = ask(tmp_path, "big", *SEVEN, *halves, waits("big", 2))
    assert report.message == "Waiting for 2 GPUs: all 8 GPUs of worker-1 are in use."
    assert gpus_used(report) == {"PROJECT": (4, 0), "DEPARTMENT": (8, 0)}
    assert contradictions(snapshot) == []
    devices = sorted(task.devices for job in snapshot.jobs for task in job.tasks if task.node)
    assert devices == [(0,), (0,), (1,), (2,), (3,), (4,), (5,), (6,), (7,)]


def test_after_a_preemption_what_was_preempted_is_not_counted(tmp_path: Path) -> None:
    """One of its own took the place of `a2`, which waits again; nobody is over quota."""
    high = holds("high", 1)
    held = [*SEVEN[:2], *SEVEN[3:], *HALVES, high, waits("a2", 1), waits("big", 2, created_at=1)]
    report, _ = ask(tmp_path, "big", *held)
    assert "all 8 GPUs of worker-1 are in use" in report.message
    assert gpus_used(report) == {"PROJECT": (4, 0), "DEPARTMENT": (8, 0)}
    assert not any(holder.is_over_quota for holder in report.holders)
    assert not any("quota" in remedy for remedy in report.remedies)


def test_pods_that_end_during_a_preemption_count_as_used_but_not_over_quota(tmp_path: Path) -> None:
    ending = holds("leaves", 1, "2", PodPhase.STOPPING, stopping_for="evict")
    held = [*SEVEN[:2], *SEVEN[3:], *HALVES, ending, waits("next", 1), waits("big", 2, created_at=1)]
    report, _ = ask(tmp_path, "big", *held)
    # The place of `leaves` is promised to `next`, which does not use it yet.
    assert gpus_used(report) == {"PROJECT": (3, 0), "DEPARTMENT": (8, 0)}
    assert not any(holder.is_over_quota for holder in report.holders)


def test_what_its_own_project_has_over_quota_is_not_to_be_reclaimed_from_others(tmp_path: Path) -> None:
    held = [*(holds(f"a{number}", 1) for number in range(5)), *SEVEN[4:], waits("big", 2)]
    report, _ = ask(tmp_path, "big", *held)
    assert {holder.project for holder in report.holders if holder.is_over_quota} == {"default"}
    assert not any("reclaim" in remedy for remedy in report.remedies)


def test_where_the_quota_blocks_no_node_is_asked_for(tmp_path: Path) -> None:
    """There is room on the node, and nobody else holds anything."""
    report, _ = ask(tmp_path, "big", waits("big", 6, preemptible=False, priority=100, priority_class="high"))
    assert report.reason.code == "NonPreemptibleOverQuota"
    assert report.remedies[0].startswith("Submit it as preemptible")
    assert not any("add a" in remedy for remedy in report.remedies)


def test_the_blocker_of_the_cluster_counts(tmp_path: Path) -> None:
    """KAI says that the limit blocks it, where our own figures would look for another node."""
    report, _ = ask(tmp_path, "huge", waits("huge", 9, phase_reason="OverLimit"))
    assert report.reason.code != "OverLimit"
    assert report.remedies[0] == "Raise the limit of its project or department."
    assert not any("add a" in remedy for remedy in report.remedies)


@pytest.mark.parametrize(
    ("state", "want"),
    [
        ({"ready": False}, "node worker-3 and 1 other are not ready"),
        ({"cordoned": True}, "worker-3 and 1 other are cordoned"),
    ],
)
def test_a_node_that_would_fit_is_named_with_its_state(state: dict[str, Any], want: str, tmp_path: Path) -> None:
    """The one that is large enough, not the first."""
    small = Node(id="worker-2", name="worker-2", cpu_milli=64_000, memory_bytes=1 << 36, created_at=0, **state)
    large = msgspec.structs.replace(small, id="worker-3", name="worker-3", gpus=DEVICES)
    report, _ = ask(tmp_path, "next", holds("whole", 8), waits("next", 8), others=(small, large))
    assert want in report.message


@pytest.mark.parametrize("grows", [False, True], ids=["fixed nodes", "an autoscaler"])
def test_what_fits_no_node_can_start_on_a_new_one(grows: bool, tmp_path: Path) -> None:
    async def question(context: Context, waiting: Workload) -> list[str]:
        context.engine = EngineView(may_nodes_be_added=lambda: grows)
        report, answer = (
            await explain_waiting(context, CALLER, waiting),
            await explain_pending(context, CALLER, waiting),
        )
        assert report is not None
        blocker = await find_lasting_blocker(context, waiting)
        return [report.message, report.headline, answer.status, answer.message, blocker.code if blocker else ""]

    found = in_context(tmp_path, "huge", question, waits("huge", 9), others=())
    begins = "Waiting for a new node" if grows else "Can never start"
    sentence = f"{begins}: it asks for 9 GPUs, the largest node (worker-1) has 8."
    assert found == [sentence, sentence, *(("waits", sentence, "") if grows else ("never", sentence, "NeverFits"))]


def test_what_a_quota_blocks_does_not_start_on_a_new_node(tmp_path: Path) -> None:
    async def question(context: Context, waiting: Workload) -> str:
        context.engine = EngineView(may_nodes_be_added=lambda: True)
        blocker = await find_lasting_blocker(context, waiting)
        return blocker.code if blocker else ""

    held = waits("big", 6, preemptible=False, priority=100, priority_class="high")
    assert in_context(tmp_path, "big", question, held, others=()) == "NonPreemptibleOverQuota"


def test_during_a_scale_up_there_is_nothing_to_do(tmp_path: Path) -> None:
    adding = "Waiting for a new node: Karpenter is adding nodeclaim/x"
    blocked = {"code": "TriggeredScaleUp", "detail": adding, "source": "cluster"}
    report, _ = ask(tmp_path, "huge", waits("huge", 9, blocked_by=blocked))
    assert (report.headline, report.counted) == (adding, "")
    assert report.remedies == ("Nothing to do: it starts when the new node is ready.",)


def test_a_node_that_is_not_ready_is_named_with_how_long(tmp_path: Path) -> None:
    away = Node(id="worker-3", name="worker-3", cpu_milli=64_000, memory_bytes=1 << 36, gpus=DEVICES, ready=False)
    since = msgspec.structs.replace(away, not_ready_since=NOW - 12 * 60_000)
    report, _ = ask(tmp_path, "next", holds("whole", 8), waits("next", 8), others=(since,))
    assert report.headline.endswith(" Node worker-3 has not been ready for 12 min.")
