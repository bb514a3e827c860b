"""What follows for a workload whose pods a cluster makes: a situation, a report, and what is wanted of it."""

from typing import Any, NamedTuple

import msgspec
import pytest

from fairlead.control.decide.cluster.orders import workload_orders
from fairlead.control.decide.cluster.reports import ClusterState
from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.engines.base import (
    SCALE_UP,
    ApplyWorkload,
    ClusterPod,
    DeleteWorkload,
    DesiredWorkload,
    SchedulingBlocker,
    WorkloadOrder,
    WorkloadReport,
)
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import Request, RestartPolicy
from fairlead.model.records.organization import GpuDevice, Node
from fairlead.model.records.phase import DesiredPhase, Phase, PodPhase
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.spec.fields import build
from tests import builders

NOW = 1_000_000
RULES = builders.rules()


def render_run(workload: Workload, entry: WorkloadEntry) -> DesiredWorkload:
    return DesiredWorkload(
        workload_id=workload.id,
        name=workload.name,
        project="default",
        namespace="runai-default",
        run=workload.run,
        podsets=entry.podsets,
        priority_class="low",
        is_preemptible=True,
    )


def turn(workload: Workload, report: WorkloadReport, *pods: Pod, ended: tuple[str, ...] = (), **entry: Any) -> Draft:
    held = WorkloadEntry(workload=workload, pods=pods, podsets=(builders.podset(),), lifetime_after_end=60_000, **entry)
    return builders.decide_cluster(held, ClusterState(report=report, ended=ended), NOW, RULES)


def orders(draft: Draft, report: WorkloadReport) -> list[WorkloadOrder]:
    return workload_orders(draft, report, render_run)


def said(**members: Any) -> WorkloadReport:
    return WorkloadReport(**{"workload_id": "id-train", "run": 1, **members})


def seen(phase: PodPhase, **members: Any) -> ClusterPod:
    given = {"id": "u", "name": "train-x", "role": "main", "node": "n1", "phase": phase}
    return ClusterPod(**(given | members))


class Step(NamedTuple):
    before: Phase
    report: WorkloadReport
    want: Phase
    words: str = ""
    members: dict[str, Any] = {}  # noqa: RUF012 - a table's default, never changed


RUNNING = seen(PodPhase.RUNNING, ready=True, started_at=NOW - 5)
STEPS = {
    "nothing there yet": Step(Phase.CREATING, said(run=0), Phase.CREATING),
    "the cluster does not answer": Step(
        Phase.CREATING, said(run=0, retrying_because="Waits: no"), Phase.CREATING, "Waits: no"
    ),
    "its objects are there": Step(Phase.CREATING, said(), Phase.PENDING, "Waiting to be scheduled"),
    "refused": Step(Phase.CREATING, said(run=0, refused="no such field"), Phase.FAILED, "no such field"),
    "unplaced": Step(Phase.PENDING, said(pods=(seen(PodPhase.STARTING, node=""),)), Phase.PENDING),
    "placed": Step(Phase.PENDING, said(pods=(seen(PodPhase.STARTING),)), Phase.INITIALIZING),
    "image error": Step(
        Phase.PENDING,
        said(pods=(seen(PodPhase.STARTING, reason="ErrImagePull", message="no such image"),)),
        Phase.INITIALIZING,
        "no such image",
    ),
    "runs": Step(Phase.PENDING, said(pods=(RUNNING,)), Phase.RUNNING),
    "not ready": Step(Phase.PENDING, said(pods=(seen(PodPhase.RUNNING),)), Phase.INITIALIZING),
    "pods done, the job not yet": Step(
        Phase.RUNNING, said(succeeded={"main": 1}, pods=(seen(PodPhase.SUCCEEDED),)), Phase.RUNNING
    ),
    "a pod done, not counted yet": Step(Phase.RUNNING, said(pods=(seen(PodPhase.SUCCEEDED),)), Phase.RUNNING),
    "complete": Step(
        Phase.RUNNING, said(succeeded={"main": 1}, ended=Phase.COMPLETED), Phase.COMPLETED, "1 pod succeeded"
    ),
    "complete, never seen to run": Step(
        Phase.PENDING, said(succeeded={"main": 1}, ended=Phase.COMPLETED), Phase.COMPLETED
    ),
    "failed": Step(
        Phase.RUNNING,
        said(failed={"main": 7}, ended=Phase.FAILED, pods=(seen(PodPhase.FAILED, exit_code=3),)),
        Phase.FAILED,
        "Exit code 3. 7 pods failed",
    ),
    "failed for another reason": Step(
        Phase.RUNNING, said(ended=Phase.FAILED, message="DeadlineExceeded: long"), Phase.FAILED, "DeadlineExceeded"
    ),
    "one failed, the next is not made yet": Step(
        Phase.RUNNING,
        said(failed={"main": 1}, pods=(seen(PodPhase.FAILED, exit_code=3),)),
        Phase.DEGRADED,
        "exit code 3; retrying after a backoff",
    ),
    "one failed, the next waits": Step(
        Phase.RUNNING,
        said(failed={"main": 1}, pods=(seen(PodPhase.FAILED), seen(PodPhase.STARTING, id="v", node=""))),
        Phase.DEGRADED,
        "No pod running; waiting to be scheduled",
    ),
    "limit": Step(
        Phase.PENDING,
        said(
            pods=(seen(PodPhase.STARTING, node=""),), waits=(SchedulingBlocker(code="OverLimit", message="too much"),)
        ),
        Phase.PENDING,
        "too much",
    ),
    "no pod can be made": Step(
        Phase.PENDING,
        said(waits=(SchedulingBlocker(code="FailedCreate", message="exceeded quota", can_create_pods=False),)),
        Phase.PENDING,
        "exceeded quota",
    ),
    "no pod will ever be made": Step(Phase.PENDING, said(refused="no such volume"), Phase.FAILED, "no such volume"),
    "suspended, still there": Step(
        Phase.RUNNING, said(pods=(RUNNING,)), Phase.STOPPING, members={"desired_phase": DesiredPhase.STOPPED}
    ),
    "suspended": Step(
        Phase.STOPPING, said(run=0, has_no_pods=True), Phase.STOPPED, members={"desired_phase": DesiredPhase.STOPPED}
    ),
    "suspended while it completed": Step(
        Phase.RUNNING,
        said(succeeded={"main": 1}, ended=Phase.COMPLETED),
        Phase.COMPLETED,
        members={"desired_phase": DesiredPhase.STOPPED},
    ),
    "deleted, still there": Step(
        Phase.RUNNING, said(pods=(RUNNING,)), Phase.DELETING, members={"desired_phase": DesiredPhase.DELETED}
    ),
    "older run": Step(Phase.RESUMING, said(run=1), Phase.RESUMING, members={"run": 2}),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_phases(step: Step) -> None:
    workload = builders.workload(phase=step.before, **step.members)
    draft = turn(workload, step.report)
    assert draft.workload.phase is step.want, draft.workload.phase_message
    assert step.words in draft.workload.phase_message


def test_a_report_that_comes_twice_changes_nothing() -> None:
    report = said(pods=(RUNNING,))
    first = turn(builders.workload(phase=Phase.PENDING), report)
    again = turn(first.workload, report, *first.pods.values())
    assert not again.is_changed
    assert [type(order) for order in orders(again, report)] == [ApplyWorkload]


def test_a_desired_state_is_applied_until_it_is_reached() -> None:
    for report in (said(run=0), said(run=0, retrying_because="no")):
        assert [type(order) for order in orders(turn(builders.workload(), report), report)] == [ApplyWorkload]


def test_resuming_is_another_run() -> None:
    workload = builders.workload(phase=Phase.STOPPED)
    report = said(run=0, has_no_pods=True)
    draft = turn(workload, report)
    [order] = orders(draft, report)
    assert isinstance(order, ApplyWorkload)
    assert (order.workload.run, draft.workload.phase) == (2, Phase.RESUMING)


@pytest.mark.parametrize(
    ("report", "want_orders", "want_gone"),
    [
        (said(run=0), [DeleteWorkload("id-train", "runai-default", False)], False),
        (said(run=0, has_no_pods=True), [DeleteWorkload("id-train", "runai-default", False)], False),
        (said(run=0, has_no_pods=True, is_removed=True), [], True),
    ],
    ids=["unconfirmed", "claims are left", "confirmed"],
)
def test_gone_is_what_the_cluster_confirmed(report: WorkloadReport, want_orders: list[Any], want_gone: bool) -> None:
    workload = builders.workload(phase=Phase.DELETING, desired_phase=DesiredPhase.DELETED, deleted_at=NOW)
    draft = turn(workload, report)
    assert (orders(draft, report), draft.workload.gone) == (want_orders, want_gone)


def evicted(phase: PodPhase) -> WorkloadReport:
    return said(pods=(seen(phase, eviction="for others", message="for others"),))


def test_preemption_is_not_a_failure() -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    pods = tuple(first.pods.values())
    leaving = turn(first.workload, evicted(PodPhase.STOPPING), *pods)
    assert leaving.workload.phase is Phase.TERMINATING
    assert (leaving.workload.preemptions, leaving.workload.failed) == (1, 0)
    back = turn(leaving.workload, said(), *leaving.pods.values())
    assert back.workload.phase is Phase.PENDING
    assert [pod.phase for pod in back.pods.values()] == [PodPhase.STOPPED]
    assert back.workload.preemptions == 1


def test_a_preemption_that_was_over_at_once_counts_too() -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    back = turn(first.workload, evicted(PodPhase.FAILED), *first.pods.values())
    assert (back.workload.phase, back.workload.preemptions) == (Phase.PENDING, 1)


@pytest.mark.parametrize("left", [(), (seen(PodPhase.STARTING, id="next", node=""),)], ids=["no pod", "a new one"])
def test_a_preemption_counts_although_nobody_saw_the_pods_leave(left: tuple[ClusterPod, ...]) -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    gone = said(pods=left, evicted=(seen(PodPhase.STOPPED, eviction="for others", message="for others"),))
    back = turn(first.workload, gone, *first.pods.values())
    assert (back.workload.phase, back.workload.preemptions) == (Phase.PENDING, 1)
    assert back.workload.last_eviction is not None
    assert back.workload.last_eviction.message == "for others"
    again = turn(back.workload, gone, *back.active_pods())
    assert (again.workload.phase, again.workload.preemptions) == (Phase.PENDING, 1)


def test_one_preemption_too_many_is_the_end() -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    back = turn(first.workload, evicted(PodPhase.FAILED), *first.pods.values(), max_preemptions=0)
    assert back.workload.phase is Phase.FAILED
    assert "preempted once" in back.workload.phase_message
    removal = DeleteWorkload("id-train", "runai-default", True)
    assert orders(back, evicted(PodPhase.FAILED)) == [removal]
    assert orders(turn(back.workload, said()), said()) == [removal]


def test_objects_of_which_no_pod_can_come_are_removed() -> None:
    report = said(refused="no such volume")
    draft = turn(builders.workload(phase=Phase.PENDING), report)
    assert orders(draft, report) == [DeleteWorkload("id-train", "runai-default", True)]


def test_of_what_was_refused_something_may_be_there_that_is_not_seen_yet() -> None:
    refused = said(run=0, refused="no such field")
    assert orders(turn(builders.workload(phase=Phase.CREATING), refused), refused) == [
        DeleteWorkload("id-train", "runai-default", True)
    ]
    bare = said(run=0, refused="no such field", has_no_pods=True)
    assert orders(turn(builders.workload(phase=Phase.CREATING), bare), bare) == []


def test_what_is_refused_while_it_runs_fails_at_once() -> None:
    draft = turn(builders.workload(phase=Phase.RUNNING), said(refused="no such volume"))
    assert [event.phase for event in draft.events if event.phase] == ["Failed"]


def test_objects_that_cannot_be_recreated_are_reported() -> None:
    """Somebody removed the namespace, say."""
    trouble = said(run=0, retrying_because="Waits for the cluster: no such namespace")
    draft = turn(builders.workload(phase=Phase.RUNNING), trouble, builders.pod())
    assert (draft.workload.phase, draft.workload.phase_message) == (Phase.DEGRADED, trouble.retrying_because)


def test_pods_that_were_taken_away_together_are_one_preemption_however_the_news_comes() -> None:
    names = ("a", "b", "c")

    def left(gone: int, leaving: int) -> WorkloadReport:
        phases = [PodPhase.STOPPING] * leaving + [PodPhase.RUNNING] * (3 - gone - leaving)
        pods = [
            seen(phase, id=name, ready=True, created_at=NOW - 9000, eviction="" if phase is PodPhase.RUNNING else "out")
            for name, phase in zip(names[gone:], phases, strict=True)
        ]
        return said(pods=tuple(pods))

    asks = (builders.podset(count=3, completions=3),)
    workload = builders.workload(phase=Phase.RUNNING)
    pods: tuple[Pod, ...] = ()
    for report in (left(0, 0), left(0, 1), left(1, 0), left(1, 1), left(2, 1)):
        held = WorkloadEntry(workload=workload, pods=pods, podsets=asks)
        draft = builders.decide_cluster(held, ClusterState(report=report), NOW, RULES)
        workload, pods = draft.workload, tuple(draft.active_pods())
    assert (workload.phase, workload.preemptions) == (Phase.TERMINATING, 1)
    held = WorkloadEntry(workload=workload, pods=pods, podsets=asks)
    later = builders.decide_cluster(held, ClusterState(report=said(pods=(RUNNING,))), NOW + 60_000, RULES)
    assert later.workload.preemptions == 1
    again = said(pods=(seen(PodPhase.STOPPING, eviction="out"),))
    held = WorkloadEntry(workload=later.workload, pods=tuple(later.active_pods()), podsets=asks)
    assert builders.decide_cluster(held, ClusterState(report=again), NOW + 60_000, RULES).workload.preemptions == 2


@pytest.mark.parametrize(
    "news",
    [((PodPhase.STOPPING, PodPhase.RUNNING), ()), ((PodPhase.STOPPING, PodPhase.RUNNING), (PodPhase.RUNNING,), ())],
    ids=["both gone at once", "one after the other"],
)
def test_a_gang_of_which_only_one_pod_was_seen_to_be_taken_away_waits_again(news: Any) -> None:
    asks = (builders.podset(count=2, completions=2),)
    workload = builders.workload(phase=Phase.RUNNING)
    pods: tuple[Pod, ...] = ()
    for phases in ((PodPhase.RUNNING, PodPhase.RUNNING), *news):
        left = [
            seen(phase, id=name, ready=True, created_at=NOW - 9000, eviction="" if phase is PodPhase.RUNNING else "out")
            for name, phase in zip("ab"[2 - len(phases) :], phases, strict=True)
        ]
        held = WorkloadEntry(workload=workload, pods=pods, podsets=asks)
        draft = builders.decide_cluster(held, ClusterState(report=said(pods=tuple(left))), NOW, RULES)
        workload, pods = draft.workload, tuple(draft.active_pods())
    assert (workload.phase, workload.preemptions) == (Phase.PENDING, 1)


@pytest.mark.parametrize("borne", [None, 0], ids=["may go on", "is to end"])
def test_a_pod_that_ends_well_while_it_is_taken_away_has_ended_well(borne: int | None) -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    leaving = turn(first.workload, evicted(PodPhase.STOPPING), *first.pods.values(), max_preemptions=borne)
    ended = turn(leaving.workload, evicted(PodPhase.SUCCEEDED), *leaving.pods.values(), max_preemptions=borne)
    assert ended.workload.phase is Phase.TERMINATING
    over = msgspec.structs.replace(evicted(PodPhase.SUCCEEDED), succeeded={"main": 1}, ended=Phase.COMPLETED)
    assert turn(ended.workload, over, ended=("u",), max_preemptions=borne).workload.phase is Phase.COMPLETED


def test_uncounted_failures_are_not_waited_for_after_an_eviction() -> None:
    asks = (builders.podset(restart=RestartPolicy.ALWAYS),)
    workload = builders.workload(phase=Phase.TERMINATING, preemptions=1)
    held = WorkloadEntry(workload=workload, podsets=asks)
    draft = builders.decide_cluster(held, ClusterState(report=evicted(PodPhase.SUCCEEDED), ended=("u",)), NOW, RULES)
    assert draft.workload.phase is Phase.PENDING


def test_a_pod_that_ended_and_is_not_counted_yet_is_not_missing() -> None:
    kind = KINDS["distributed-training"]
    podsets = kind.podsets(build(kind.spec, {"image": "i", "distributedFramework": "PyTorch", "numWorkers": 1}))
    rules = builders.rules(outcome=kind.outcome)
    [master, worker] = [seen(PodPhase.RUNNING, id=podset.role, role=podset.role, ready=True) for podset in podsets]
    workload = builders.workload(kind=kind.key, phase=Phase.PENDING)
    first = builders.decide_cluster(
        WorkloadEntry(workload=workload, podsets=podsets),
        ClusterState(report=said(pods=(master, worker))),
        NOW,
        rules,
    )
    assert first.workload.phase is Phase.RUNNING
    held = WorkloadEntry(workload=first.workload, pods=tuple(first.active_pods()), podsets=podsets)
    ended = said(pods=(msgspec.structs.replace(master, phase=PodPhase.SUCCEEDED), worker))
    assert builders.decide_cluster(held, ClusterState(report=ended), NOW, rules).workload.phase is Phase.RUNNING


def test_a_pod_that_failed_is_waited_for_only_where_somebody_counts_it() -> None:
    """A Deployment leaves a pod there that its node refused, and counts none."""
    report = said(pods=(seen(PodPhase.FAILED), seen(PodPhase.STARTING, id="v", node="")))
    found = [
        builders.decide_cluster(
            WorkloadEntry(workload=builders.workload(phase=Phase.RUNNING), podsets=(builders.podset(restart=restart),)),
            ClusterState(report=report),
            NOW,
            RULES,
        ).workload.phase
        for restart in (RestartPolicy.NEVER, RestartPolicy.ALWAYS)
    ]
    assert found == [Phase.RUNNING, Phase.DEGRADED]


def test_pods_whose_end_is_on_record_are_not_recorded_again() -> None:
    report = said(pods=(seen(PodPhase.SUCCEEDED),), succeeded={"main": 1})
    assert not turn(builders.workload(phase=Phase.RUNNING), report, ended=("u",)).pods


def test_pods_count_up_where_the_cluster_does_not() -> None:
    pods = (seen(PodPhase.RUNNING, id="a"), seen(PodPhase.RUNNING, id="b"), seen(PodPhase.RUNNING, id="c", index=7))
    draft = turn(builders.workload(phase=Phase.PENDING), said(pods=pods))
    assert [pod.index for pod in draft.pods.values()] == [0, 1, 7]


@pytest.mark.parametrize(
    ("device", "want"), [(16384, 240), (0, 1000)], ids=["a part of the GPU of its node", "its size is not known"]
)
def test_gpu_memory_is_a_part_of_the_gpu(device: int, want: int) -> None:
    node = Node(id="n1", name="n1", cpu_milli=0, memory_bytes=0, gpus=(GpuDevice(index=0, memory_mib=device),))
    asks = builders.podset(request=Request(gpu_devices=1, gpu_memory_bytes=4_000_000_000))
    held = WorkloadEntry(workload=builders.workload(phase=Phase.PENDING), podsets=(asks,))
    draft = builders.decide_cluster(held, ClusterState(report=said(pods=(RUNNING,)), nodes={"n1": node}), NOW, RULES)
    assert [(pod.gpu_devices, pod.gpu_thousandths) for pod in draft.pods.values()] == [((0,), want)]


def test_a_node_and_a_pool_that_are_known_later_than_the_pod_are_recorded_then() -> None:
    node = Node(id="n1", name="n1", cpu_milli=0, memory_bytes=0, gpus=(GpuDevice(index=0, memory_mib=16384),))
    asks = (builders.podset(request=Request(gpu_devices=1, gpu_memory_bytes=4_000_000_000)),)
    held = WorkloadEntry(workload=builders.workload(phase=Phase.PENDING), podsets=asks)
    first = builders.decide_cluster(held, ClusterState(report=said(pods=(RUNNING,))), NOW, RULES)
    held = WorkloadEntry(workload=first.workload, pods=tuple(first.active_pods()), podsets=asks)
    moved = said(pods=(msgspec.structs.replace(RUNNING, node_pool="a100"),))
    draft = builders.decide_cluster(held, ClusterState(report=moved, nodes={"n1": node}), NOW, RULES)
    assert [(pod.gpu_thousandths, pod.node_pool) for pod in draft.pods.values()] == [(240, "a100")]


def test_what_is_gone_has_ended() -> None:
    draft = turn(builders.workload(phase=Phase.RUNNING), said(), builders.pod())
    assert [pod.phase for pod in draft.pods.values()] == [PodPhase.STOPPED]


def test_an_end_that_is_seen_before_what_made_the_pod_is_an_end_and_no_loss() -> None:
    """A watch on jobs may be behind one on pods; pods of another run that are still there are none of ours."""
    other = seen(PodPhase.SUCCEEDED, id="other")
    draft = turn(
        builders.workload(phase=Phase.RUNNING),
        said(run=0, pods=(other, seen(PodPhase.SUCCEEDED, id="pod", exit_code=0))),
        builders.pod(id="pod"),
    )
    assert {pod.id: (pod.phase, pod.reason) for pod in draft.pods.values()} == {"pod": (PodPhase.SUCCEEDED, "")}
    gone = turn(builders.workload(phase=Phase.RUNNING), said(run=0, pods=(other,)), builders.pod(id="pod"))
    assert {pod.id: (pod.phase, pod.reason) for pod in gone.pods.values()} == {"pod": (PodPhase.STOPPED, "Gone")}


def test_restarts_in_place_are_counted() -> None:
    first = turn(builders.workload(phase=Phase.RUNNING), said(pods=(RUNNING,)))
    again = msgspec.structs.replace(
        RUNNING, restarts=2, exit_code=4, last_end="exit code 4", cluster_phase="Running", container="main"
    )
    draft = turn(first.workload, said(pods=(again,)), *first.pods.values())
    assert draft.workload.restarts == 2
    assert [(pod.attempt, pod.exit_code, pod.cluster_phase, pod.container) for pod in draft.pods.values()] == [
        (3, 4, "Running", "main")
    ]
    assert [event.message for event in draft.events] == [
        "Restarted the container of pod train-x after exit code 4 (restart 2)"
    ]


def test_what_waits_for_its_next_start_says_how_it_ended() -> None:
    waits = seen(PodPhase.STARTING, reason="CrashLoopBackOff", message="back-off", restarts=3, last_end="exit code 4")
    draft = turn(builders.workload(phase=Phase.PENDING), said(pods=(waits,)))
    words = "Pod train-x: back-off; it ended before with exit code 4 (restart 3)"
    assert (draft.workload.phase, draft.workload.phase_message) == (Phase.INITIALIZING, words)


def test_why_it_waits_is_marked_as_the_clusters_word() -> None:
    waits = (SchedulingBlocker(code="PodSchedulingErrors", message="16 GPUs are too many"),)
    draft = turn(builders.workload(phase=Phase.PENDING), said(waits=waits))
    want = {"code": "PodSchedulingErrors", "detail": "16 GPUs are too many", "source": "cluster"}
    assert draft.workload.blocked_by == want


def test_a_scale_up_is_an_event_of_its_own() -> None:
    full = SchedulingBlocker(code="PodSchedulingErrors", message="no node has 8 GPUs")
    first = turn(builders.workload(phase=Phase.PENDING), said(waits=(full,)))
    adding = SchedulingBlocker(code=SCALE_UP, message="Waiting for a new node: Karpenter is adding nodeclaim/x")
    draft = turn(first.workload, said(waits=(adding, full)))
    assert draft.workload.phase_message == adding.message
    [event] = draft.events
    assert (event.reason, event.message, event.type) == (SCALE_UP, adding.message, "Normal")
    assert turn(draft.workload, said(waits=(adding, full))).events == []


def test_a_lost_node_is_named_and_counts_as_a_preemption() -> None:
    first = turn(builders.workload(phase=Phase.PENDING), said(pods=(seen(PodPhase.RUNNING),)))
    gone = "Node n1 no longer exists"
    lost = seen(PodPhase.FAILED, eviction=gone, message=gone, has_lost_node=True)
    draft = turn(first.workload, said(pods=(lost,)), *first.pods.values())
    assert [(event.message, event.source) for event in draft.events if event.reason == "NodeLost"] == [(gone, "engine")]
    assert (draft.workload.preemptions, draft.workload.restarts) == (1, 0)
    assert draft.pods["u"].phase is PodPhase.STOPPED
    assert draft.workload.last_eviction is not None
    assert (draft.workload.last_eviction.node, draft.workload.last_eviction.message) == ("n1", gone)


def test_the_schedulers_message_is_recorded_without_the_names_of_other_projects() -> None:
    first = turn(builders.workload(phase=Phase.PENDING), said(pods=(seen(PodPhase.RUNNING),)))
    told = "Pod runai-a/x was preempted by workload runai-b/secret.\nb uses <GPU: 2>"
    draft = turn(first.workload, said(pods=(seen(PodPhase.FAILED, eviction=told, message=told),)), *first.pods.values())
    assert "secret" not in draft.pods["u"].message
    assert "secret" not in draft.workload.phase_message
    assert [event.message for event in draft.events if "secret" in event.message] == []
    [evicted] = [event for event in draft.events if event.reason == "Evict"]
    assert (evicted.message_for(frozenset("1")), evicted.message_for(None)) == (
        "Pod runai-a/x was preempted by a workload of another project.",
        told,
    )


def test_the_shared_gpu_of_a_pod_is_recorded_even_if_it_is_reported_later() -> None:
    first = turn(builders.workload(phase=Phase.PENDING, run=1), said(pods=(seen(PodPhase.STARTING),)))
    assert first.pods["u"].gpu_groups == ()
    then = turn(first.workload, said(pods=(seen(PodPhase.RUNNING, gpu_groups=("g",)),)), first.pods["u"])
    assert then.pods["u"].gpu_groups == ("g",)
    assert turn(then.workload, said(pods=(RUNNING,)), then.pods["u"]).pods["u"].gpu_groups == ("g",)


def test_failures_that_are_not_known_for_a_while_are_not_counted_again() -> None:
    """As after each start of the server, before the engine is told what the workload consists of."""
    workload = builders.workload(phase=Phase.RUNNING)
    known, unknown = said(pods=(RUNNING,), failed={"main": 2}), said(pods=(RUNNING,), are_counts_known=False)
    for report in (known, unknown, known, said(run=0, are_counts_known=False), known):
        draft = turn(workload, report, builders.pod(id="u", workload_id=workload.id))
        workload = draft.workload
        assert (workload.restarts, workload.tally("main").failed) == (2, 2)


def test_what_waits_for_another_workload_is_not_sent_to_the_cluster() -> None:
    report = said(run=0)
    waiting = turn(builders.workload(phase=Phase.CREATING, waits_for=("after 1 prep",)), report)
    assert (waiting.workload.phase, waiting.workload.phase_message) == (Phase.PENDING, "Waiting for prep to complete")
    assert orders(waiting, report) == []
    again = turn(msgspec.structs.replace(waiting.workload, waits_for=()), report)
    assert [type(order) for order in orders(again, report)] == [ApplyWorkload]
