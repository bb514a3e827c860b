"""Which steps follow from a workload's state and from what the cluster has of it."""

from typing import Any

import msgspec
import pytest

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import PYTORCH
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload
from fairlead.engines.kubernetes.plan.planner import (
    JUST_DELETED,
    AnnotateGroup,
    ApplyObjects,
    CreatePods,
    DeleteObjects,
    DeletePods,
    MoveToNextPool,
    RecreateJob,
    Step,
    WaitFor,
    plan,
)
from fairlead.engines.kubernetes.plan.state import State, WorkloadState, lose, order, refuse, succeed
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices
from fairlead.kinds import KINDS
from fairlead.model.pods.podset import PodSet, RestartScope
from fairlead.model.spec.fields import build
from tests import builders

NOW = 1000.0
LABELS = {"fairlead/workload-id": "w", "fairlead/run": "1"}
GANG = builders.podset(
    role="worker", count=2, gang=True, completions=2, backoff_limit=1, restart_scope=RestartScope.GROUP
)
TRAINING = KINDS["distributed-training"]
OPERATED = TRAINING.podsets(
    build(TRAINING.spec, {"image": "i", "distributedFramework": "PyTorch", "numWorkers": 1, "backoffLimit": 1})
)


def workload(*podsets: PodSet, **members: Any) -> DesiredWorkload:
    return DesiredWorkload(
        workload_id="w",
        name="train",
        project="team-a",
        namespace="runai-team-a",
        run=1,
        podsets=podsets or (builders.podset(),),
        priority_class="train",
        is_preemptible=True,
        **members,
    )


def pod(name: str, owner: str = "", phase: str = "Running", **labels: str) -> objects.Pod:
    metadata: dict[str, Any] = {"name": name, "uid": name, "labels": LABELS | labels}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "train", "uid": "gone", "controller": True}]
    return msgspec.convert({"metadata": metadata, "status": {"phase": phase}}, objects.Pod)


def member(index: int, phase: str, attempt: int = 0) -> objects.Pod:
    labels = {"fairlead/role": "worker", "fairlead/index": str(index), "fairlead/attempt": str(attempt)}
    return pod(f"train-worker-{index}", phase=phase, **labels)


def group(**annotations: str) -> objects.PodGroup:
    notes = {f"fairlead/{name}": value for name, value in annotations.items()}
    metadata = {"name": "train", "uid": "g", "labels": LABELS | {"fairlead/own-group": "true"}, "annotations": notes}
    return msgspec.convert({"metadata": metadata}, objects.PodGroup)


def applying(desired: DesiredWorkload) -> WorkloadState:
    return order(WorkloadState(), desired)


def applied(desired: DesiredWorkload) -> WorkloadState:
    return succeed(applying(desired))


def steps_of(state: WorkloadState, seen: ObservedWorkload, now: float = NOW) -> tuple[Step, ...]:
    return plan(state, seen, now)[1]


def test_a_deletion_forgets_how_the_workload_was_launched() -> None:
    deletion = DeleteWorkload("w", "runai-team-a")
    before = msgspec.structs.replace(applied(workload()), launch=LaunchChoices(attempt=3))
    state, steps = plan(order(before, deletion), ObservedWorkload(), NOW)
    assert steps == (DeleteObjects(deletion),)
    assert (state.launch, state.may_predate_server) == (NO_LAUNCH_CHOICES, False)


@pytest.mark.parametrize(
    "state",
    [
        WorkloadState(),
        applied(workload()),
        lose(applied(workload(GANG)), NOW),
        refuse(applied(workload(GANG)), "no"),
        succeed(order(applied(workload()), DeleteWorkload("w", "n"))),
    ],
    ids=["nothing ordered", "applied", "lost", "refused", "deleted"],
)
def test_nothing_to_do(state: WorkloadState) -> None:
    assert plan(state, ObservedWorkload(pods=(pod("p"),), groups=(group(),)), NOW) == (state, ())


def test_nothing_is_applied_beside_pods_whose_controller_was_deleted() -> None:
    desired = workload()
    seen = ObservedWorkload(pods=(pod("a", "Job"), pod("b")))
    assert steps_of(applying(desired), ObservedWorkload()) == (ApplyObjects(desired),)
    deletion, wait = steps_of(applying(desired), seen)
    assert deletion == DeletePods((pod("b"),))
    assert isinstance(wait, WaitFor)
    assert "controller of pod a was deleted" in wait.message


@pytest.mark.parametrize(("seconds", "want"), [(0.0, WaitFor), (JUST_DELETED, ApplyObjects)], ids=["fresh", "adopted"])
def test_a_deployment_adopts_pods_that_outlive_a_moment(seconds: float, want: type[Step]) -> None:
    lost = lose(applying(workload()), NOW)
    *_, last = steps_of(lost, ObservedWorkload(pods=(pod("a", "ReplicaSet"),)), NOW + seconds)
    assert isinstance(last, want)


@pytest.mark.parametrize(
    ("own", "pods", "want"),
    [
        (group(), (), (CreatePods(workload(GANG), (("worker", 0), ("worker", 1)), 0),)),
        (group(), (member(0, "Running"), member(1, "Running")), ()),
        (group(), (member(0, "Failed"), member(1, "Running")), (AnnotateGroup(group(), {"fairlead/failures": "1"}),)),
        (
            group(failures="1"),
            (member(0, "Failed"), member(1, "Running")),
            (DeletePods((member(0, "Failed"), member(1, "Running"))),),
        ),
        (
            group(),
            (member(0, "Succeeded"), member(1, "Succeeded")),
            (AnnotateGroup(group(), {"fairlead/completed": "true"}),),
        ),
        (group(completed="true"), (), ()),
    ],
    ids=["empty", "all there", "one failed", "restarts", "completed", "completed earlier"],
)
def test_pod_groups(own: objects.PodGroup, pods: tuple[objects.Pod, ...], want: tuple[Step, ...]) -> None:
    assert steps_of(applied(workload(GANG)), ObservedWorkload(groups=(own,), pods=pods)) == want


def test_a_group_that_completed_and_was_deleted_is_not_run_again() -> None:
    state, _ = plan(applied(workload(GANG)), ObservedWorkload(groups=(group(completed="true"),)), NOW)
    assert state.completed_run == 1
    # Created again by the next order, without its annotation.
    assert steps_of(state, ObservedWorkload(groups=(group(),))) == (
        AnnotateGroup(group(), {"fairlead/completed": "true"}),
    )


def failed_job(attempt: int) -> objects.Runner:
    labels = LABELS | {"fairlead/attempt": str(attempt), "fairlead/role": "master"}
    metadata = {"name": "train", "uid": "j", "labels": labels, "annotations": {"fairlead/failures": str(attempt)}}
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    return msgspec.convert({"metadata": metadata, "status": status}, objects.Runner)


@pytest.mark.parametrize(
    ("settled", "attempt", "want"),
    [(frozenset(), 0, 0), (frozenset({"j"}), 0, 1), (frozenset({"j"}), 1, 0)],
    ids=["its pods are not known yet", "restarts", "was the last attempt"],
)
def test_a_failed_job_of_an_operator(settled: frozenset[str], attempt: int, want: int) -> None:
    before = applied(workload(*OPERATED))
    before = msgspec.structs.replace(before, launch=LaunchChoices(kinds=frozenset({PYTORCH.kind})))
    seen = ObservedWorkload(runners=(failed_job(attempt),), kinds=frozenset({PYTORCH.kind}), settled=settled)
    state, steps = plan(before, seen, NOW)
    assert len(steps) == want
    for step in steps:
        assert isinstance(step, RecreateJob)
        assert (step.uid, step.resource, step.launch.attempt, step.launch.failures) == ("j", PYTORCH, 1, 1)
        assert (state.launch.attempt, state.launch.kinds) == (1, before.launch.kinds)


def test_a_worker_that_failed_for_good_ends_the_workload() -> None:
    sets = TRAINING.podsets(
        build(TRAINING.spec, {"image": "i", "distributedFramework": "MPI", "numWorkers": 1, "backoffLimit": 0})
    )
    labels = LABELS | {"fairlead/attempt": "0", "fairlead/role": "launcher"}
    job = msgspec.convert({"metadata": {"name": "train", "uid": "j", "labels": labels}}, objects.Runner)
    worker = pod("train-worker-0", phase="Failed", **{"fairlead/role": "worker", "fairlead/attempt": "0"})
    state, steps = plan(applied(workload(*sets)), ObservedWorkload(runners=(job,), pods=(worker,)), NOW)
    assert (state.state, steps) == (State.REFUSED, ())
    assert "more than the backoff limit of 0" in state.refused


def test_a_group_without_room_is_moved_to_the_next_pool() -> None:
    desired = workload(node_pools=("default", "h100"))
    refusal = {"type": "UnschedulableOnNodePool", "status": "True", "nodePool": "default", "transitionID": "1"}
    body = {"metadata": {"name": "pg", "labels": LABELS}, "status": {"schedulingConditions": [refusal]}}
    full = msgspec.convert(body, objects.PodGroup)
    assert steps_of(applied(desired), ObservedWorkload(groups=(full,))) == (MoveToNextPool(desired, full),)
    assert steps_of(applied(workload()), ObservedWorkload(groups=(full,))) == ()
