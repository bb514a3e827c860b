"""How far each pod set of a draft has come, as the kinds read it; and the totals on the workload. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from fairlead.control.decide.draft import Draft
from fairlead.kinds.kind import GroupState, SetState
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import PodPhase
from fairlead.model.records.workload import Pod


def set_states(draft: Draft, last_failure: str = "") -> list[SetState]:
    """`last_failure` describes a pod that failed before this decision; a failure in the draft is newer."""
    last_failure = failure_in(draft) or last_failure
    by_role: dict[str, list[Pod]] = {podset.role: [] for podset in draft.entry.podsets}
    for pod in draft.active_pods():
        by_role[pod.role].append(pod)
    return [_set_state(draft, podset, by_role[podset.role], last_failure) for podset in draft.entry.podsets]


def failure_in(draft: Draft) -> str:
    """How the pod ended that failed last, among those of the draft."""
    failures = [pod for pod in draft.pods.values() if pod.message and (pod.phase is PodPhase.FAILED or pod.restart_at)]
    return failures[-1].message if failures else ""


def _set_state(draft: Draft, podset: PodSet, active: Sequence[Pod], last_failure: str) -> SetState:
    pods = [pod for pod in active if not pod.stopping_for]
    running = [pod for pod in pods if pod.phase is PodPhase.RUNNING]
    starting = [pod for pod in pods if pod.phase is PodPhase.STARTING and pod.restart_at is None]
    tally = draft.workload.tally(podset.role)
    return SetState(
        role=podset.role,
        podset=podset,
        starting=len(starting),
        running=len(running),
        ready=sum(pod.ready for pod in running),
        lapsed=sum(pod.ready_at is not None and not pod.ready for pod in running),
        ending=len(active) - len(pods),
        succeeded=tally.succeeded,
        failed=tally.failed,
        last_failure=last_failure,
        blocked=draft.workload.blocked_by is not None,
        groups=_group_states(podset, starting, running, active) if podset.groups > 1 or podset.gang else (),
    )


def _group_states(
    podset: PodSet, starting: Iterable[Pod], running: Sequence[Pod], active: Iterable[Pod]
) -> tuple[GroupState, ...]:
    starting_in = Counter(pod.group for pod in starting)
    running_in = Counter(pod.group for pod in running)
    ready_in = Counter(pod.group for pod in running if pod.ready)
    ending_in = Counter(pod.group for pod in active if pod.stopping_for)
    return tuple(
        GroupState(
            starting=starting_in[group], running=running_in[group], ready=ready_in[group], ending=ending_in[group]
        )
        for group in range(podset.groups)
    )


def count_running(draft: Draft) -> None:
    """Write the number of running pods and their GPUs into the workload."""
    active = draft.active_pods()
    running = sum(pod.phase in (PodPhase.RUNNING, PodPhase.STOPPING) for pod in active)
    gpu = round(sum(len(pod.gpu_devices) * pod.gpu_thousandths for pod in active) / 1000, 3)
    if (running, gpu) != (draft.workload.running_pods, draft.workload.allocated_gpu):
        draft.set(running_pods=running, allocated_gpu=gpu)
