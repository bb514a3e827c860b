"""One look at a workload whose pods are ours to make, or whose node pools ours to try, and what is done about it.

`engine.py` calls it whenever something of such a workload changes, for as long as it is to run.
"""

import msgspec

from fairlead.engines.base import DesiredWorkload
from fairlead.engines.kubernetes.apply.applier import ObjectApplier
from fairlead.engines.kubernetes.observe.operator_jobs import (
    decide_recreation,
    final_failure_message,
    find_failed,
    has_operator,
    launch_choices_of,
)
from fairlead.engines.kubernetes.observe.report import WorkloadObjectsSeen, find_controller_ahead_of_pods, run_of
from fairlead.engines.kubernetes.plan.state import WorkloadState
from fairlead.engines.kubernetes.render.kubeflow import operator_of
from fairlead.engines.kubernetes.render.pod_group import find_fairlead_group, has_completed


async def tend(hands: ObjectApplier, charge: WorkloadState, run: DesiredWorkload, held: WorkloadObjectsSeen) -> None:
    """Make, remove and move what needs it now."""
    groups = [group for group in held.groups if run_of(group.metadata) in (0, run.run)]
    pods = [pod for pod in held.pods if run_of(pod.metadata) == run.run]
    own = find_fairlead_group(groups)
    if own is not None:
        if has_completed(own, run.podsets, pods):
            charge.completed_run = run.run
        await hands.reconcile_pod_group(run, own, pods, is_complete=charge.completed_run == run.run)
    await _remake(hands, charge, run, held)
    await hands.try_pools(run, groups, pods)


async def _remake(hands: ObjectApplier, charge: WorkloadState, run: DesiredWorkload, held: WorkloadObjectsSeen) -> None:
    """A job of an operator that failed and is to begin again goes; as something that was lost it is made anew."""
    operator = operator_of(run.podsets)
    job = next((one for one in held.runners if has_operator(one) and run_of(one.metadata) == run.run), None)
    if operator is None or job is None or find_controller_ahead_of_pods(held, run.podsets) is not None:
        return
    failed = find_failed(run.podsets, job, held.pods)
    # It may be the job of an attempt whose successor is begun already: its removal has not been seen yet.
    is_disrupted = launch_choices_of(job.metadata).attempt in held.disrupted
    again = decide_recreation(run.podsets, job, is_disrupted, failed is not None)
    if again is None and failed is not None:
        charge.refused = charge.refused or final_failure_message(run.podsets, job, failed)
    if again is not None:
        charge.launch = msgspec.structs.replace(again, kinds=charge.launch.kinds)
        await hands.remake(run, operator.resource, job.metadata.uid, again)
