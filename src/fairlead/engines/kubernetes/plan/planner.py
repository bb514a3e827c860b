"""What to do next with a workload: from its state and its objects in the cluster to steps. Pure.

`apply/reconciler.py` asks, `apply/executor.py` carries the steps out in their order. A step that fails ends the
round; the next round plans again from what is there then.
"""

import msgspec

from fairlead.engines.base import DeleteWorkload, DesiredWorkload
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import Resource
from fairlead.engines.kubernetes.observe.operator_jobs import (
    final_failure_message,
    find_failed,
    has_operator,
)
from fairlead.engines.kubernetes.observe.pod_group import (
    count_failures,
    failures_of,
    find_fairlead_group,
    has_completed,
)
from fairlead.engines.kubernetes.observe.report import find_controller_ahead_of_pods
from fairlead.engines.kubernetes.observe.workload import ObservedWorkload, run_of
from fairlead.engines.kubernetes.plan.node_pools import decide_pool
from fairlead.engines.kubernetes.plan.pod_group import decide_group
from fairlead.engines.kubernetes.plan.recreate import decide_recreation, find_orphaned_pods
from fairlead.engines.kubernetes.plan.state import State, WorkloadState, refuse
from fairlead.engines.kubernetes.render.context import NO_LAUNCH_CHOICES, LaunchChoices
from fairlead.engines.kubernetes.render.kubeflow import operator_of
from fairlead.engines.kubernetes.render.labels import COMPLETED, FAILURES

#: Seconds for which the cluster may not have noticed yet that a controller is gone, and its pods with it.
JUST_DELETED = 5.0


class ApplyObjects(msgspec.Struct, frozen=True):
    workload: DesiredWorkload


class DeleteObjects(msgspec.Struct, frozen=True):
    """Delete everything of a workload, and wait until it is gone."""

    order: DeleteWorkload


class DeletePods(msgspec.Struct, frozen=True):
    pods: tuple[objects.Pod, ...]


class WaitFor(msgspec.Struct, frozen=True):
    """Something is in the way; the round ends here."""

    message: str


class AnnotateGroup(msgspec.Struct, frozen=True):
    group: objects.PodGroup
    annotations: dict[str, str]


class CreatePods(msgspec.Struct, frozen=True):
    """Create members of a pod group of our own, as (role, index)."""

    workload: DesiredWorkload
    members: tuple[tuple[str, int], ...]
    attempt: int


class RecreateJob(msgspec.Struct, frozen=True):
    """Delete an operator's job, and write down first with which choices it is created again."""

    workload: DesiredWorkload
    resource: Resource
    uid: str
    launch: LaunchChoices


class MoveToNextPool(msgspec.Struct, frozen=True):
    """Move a pod group to the next of its workload's node pools, unless its pods have a node by now."""

    workload: DesiredWorkload
    group: objects.PodGroup


Step = ApplyObjects | DeleteObjects | DeletePods | WaitFor | AnnotateGroup | CreatePods | RecreateJob | MoveToNextPool
Plan = tuple[WorkloadState, tuple[Step, ...]]


def plan(state: WorkloadState, seen: ObservedWorkload, now: float) -> Plan:
    """The steps that bring what is there closer to what is desired, and the state in which they are carried out."""
    match state.state:
        case State.DELETING if state.deletion is not None:
            return _plan_deletion(state, state.deletion)
        case State.APPLYING if state.workload is not None:
            return _plan_apply(state, state.workload, seen, now)
        case State.APPLIED if state.workload is not None and state.needs_upkeep:
            return _plan_upkeep(state, state.workload, seen)
        case _:
            return state, ()


def _plan_deletion(state: WorkloadState, deletion: DeleteWorkload) -> Plan:
    fresh = msgspec.structs.replace(state, launch=NO_LAUNCH_CHOICES, may_predate_server=False)
    return fresh, (DeleteObjects(deletion),)


def _plan_apply(state: WorkloadState, workload: DesiredWorkload, seen: ObservedWorkload, now: float) -> Plan:
    """Nothing is created beside pods whose controller somebody deleted."""
    is_fresh = now - state.lost_at < JUST_DELETED
    orphaned = find_orphaned_pods(seen, workload.run, is_fresh=is_fresh)
    first = next(iter((*orphaned.ending, *orphaned.orphans)), None)
    if first is None:
        return state, (ApplyObjects(workload),)
    wait = WaitFor(f"the controller of pod {first.metadata.name} was deleted, and the pod is still terminating")
    return state, (DeletePods(orphaned.orphans), wait)


def _plan_upkeep(state: WorkloadState, workload: DesiredWorkload, seen: ObservedWorkload) -> Plan:
    """What controllers do for other workloads: create pods, restart a failed job, try the next node pool."""
    groups = [group for group in seen.groups if run_of(group.metadata) in (0, workload.run)]
    pods = [pod for pod in seen.pods if run_of(pod.metadata) == workload.run]
    steps: list[Step] = []
    own = find_fairlead_group(groups)
    if own is not None:
        if has_completed(own, workload.podsets, pods):
            state = msgspec.structs.replace(state, completed_run=workload.run)
        steps += _plan_group(own, workload, pods, is_complete=state.completed_run == workload.run)
    state, recreation = _plan_recreation(state, workload, seen)
    moved = [group for group in groups if decide_pool(group, pods, workload.tried_pools) is not None]
    return state, (*steps, *recreation, *(MoveToNextPool(workload, group) for group in moved))


def _plan_group(
    group: objects.PodGroup, workload: DesiredWorkload, pods: list[objects.Pod], *, is_complete: bool
) -> list[Step]:
    failures = count_failures(group, pods)
    decision = decide_group(workload.podsets, pods, failures, is_complete=is_complete)
    counted = failures + decision.counts_failure
    # To be known when the pods are gone.
    annotations = {FAILURES: str(counted)} if counted > failures_of(group) else {}
    if is_complete and COMPLETED not in group.metadata.annotations:
        annotations[COMPLETED] = "true"
    steps: list[Step] = [AnnotateGroup(group, annotations)] if annotations else []
    steps += [DeletePods(decision.delete)] if decision.delete else []
    steps += [CreatePods(workload, decision.create, failures)] if decision.create else []
    return steps


def _plan_recreation(state: WorkloadState, workload: DesiredWorkload, seen: ObservedWorkload) -> Plan:
    """A failed job of an operator that is to restart is deleted; then it is created again as one that was lost."""
    podsets, operator = workload.podsets, operator_of(workload.podsets)
    job = next((one for one in seen.runners if has_operator(one) and run_of(one.metadata) == workload.run), None)
    if operator is None or job is None or find_controller_ahead_of_pods(seen, podsets) is not None:
        return state, ()
    failed = find_failed(podsets, job, seen.pods)
    # The job may be of an attempt whose successor was planned already: its deletion has not been seen yet.
    again = decide_recreation(podsets, job, seen, failed is not None)
    if again is not None:
        launch = msgspec.structs.replace(again, kinds=state.launch.kinds)
        step = RecreateJob(workload, operator.resource, job.metadata.uid, again)
        return msgspec.structs.replace(state, launch=launch), (step,)
    if failed is not None:
        return refuse(state, final_failure_message(podsets, job, failed)), ()
    return state, ()
