"""One pod of the cluster in our terms: its phase, its end, why it does not start. Pure.

Reasons and messages stay as the cluster has them.
"""

from collections.abc import Iterable

import msgspec

from fairlead.engines.base import ClusterPod
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.observe.bucket_uploads import upload_error
from fairlead.engines.kubernetes.observe.disruptions import find_disruption
from fairlead.engines.kubernetes.observe.failed_starts import exit_code_of
from fairlead.engines.kubernetes.observe.signalled_ends import has_succeeded
from fairlead.engines.kubernetes.render.labels import (
    COMPLETION_INDEX,
    GPU_GROUP_LABEL,
    GROUP_ANNOTATION,
    INDEX_LABEL,
    MAIN,
    labelled_pool,
    role_of,
)
from fairlead.model.records.phase import ENDED, PodPhase

_LWS = "leaderworkerset.sigs.k8s.io"
_REPLICA_INDEX = "training.kubeflow.org/replica-index"


def render_pods(pods: Iterable[objects.Pod], groups: Iterable[objects.PodGroup]) -> tuple[ClusterPod, ...]:
    """The oldest first, each in the node pool of its pod group."""
    pools = {group.metadata.name: labelled_pool(group.metadata.labels) for group in groups}
    return tuple(
        msgspec.structs.replace(
            rendered, node_pool=pools.get(pod.metadata.annotations.get(GROUP_ANNOTATION, ""), rendered.node_pool)
        )
        for pod in sorted(pods, key=_age)
        if (rendered := render_pod(pod))
    )


def _age(pod: objects.Pod) -> tuple[int, str]:
    return objects.millis(pod.metadata.creation_timestamp) or 0, pod.metadata.name


def render_pod(pod: objects.Pod) -> ClusterPod:
    labels = pod.metadata.labels
    main = _main(pod)
    terminated = _terminated(main)
    phase = _phase(pod, main)
    disruption = find_disruption(pod)
    placed = objects.condition(pod.status.conditions, "PodScheduled")
    reason, message = _reason_and_message(pod, main, terminated if phase in ENDED else None)
    if disruption is not None:
        reason, message = disruption.reason, disruption.message
    group, index = _group_and_index(labels)
    return ClusterPod(
        id=pod.metadata.uid,
        name=pod.metadata.name,
        role=role_of(labels),
        group=group,
        index=index,
        phase=phase,
        node=pod.spec.node_name,
        node_pool=labelled_pool(labels),
        gpu_groups=_gpu_groups(labels),
        created_at=objects.millis(pod.metadata.creation_timestamp) or 0,
        placed_at=objects.millis(placed.last_transition_time) if placed is not None else None,
        started_at=_started(pod, main),
        ended_at=objects.millis(terminated.finished_at) if terminated is not None and phase in ENDED else None,
        exit_code=exit_code_of(terminated) if terminated is not None else None,
        signal=_signal(terminated) if terminated is not None else None,
        reason=reason,
        message=message,
        ready=phase is PodPhase.RUNNING and objects.condition(pod.status.conditions, "Ready") is not None,
        restarts=main.restart_count if main is not None else 0,
        last_end=_last_end(main) if main is not None else "",
        cluster_phase=pod.status.phase,
        container=main_container_name(pod),
        eviction=message if disruption is not None else "",
        has_lost_node=disruption is not None and disruption.is_of_node,
    )


def main_container_name(pod: objects.Pod) -> str:
    """The name of the container that runs the workload: the first one, unless one has the usual name."""
    names = [container.name for container in pod.spec.containers]
    return MAIN if MAIN in names or not names else names[0]


def has_main_exited(pod: objects.Pod) -> bool:
    main = _main(pod)
    return main is not None and main.state.terminated is not None


def _main(pod: objects.Pod) -> objects.ContainerStatus | None:
    main, statuses = main_container_name(pod), pod.status.container_statuses
    return next((status for status in statuses if status.name == main), statuses[0] if statuses else None)


def _terminated(main: objects.ContainerStatus | None) -> objects.Terminated | None:
    return None if main is None else main.state.terminated or main.last_state.terminated


def end_of_main(pod: objects.Pod, restarts: int) -> objects.Terminated | None:
    """How the main process ended that ran after this many restarts; None while it runs."""
    main = _main(pod)
    if main is None or main.state.running is None:
        return _terminated(main)
    return main.last_state.terminated if main.restart_count > restarts else None


def _gpu_groups(labels: dict[str, str]) -> tuple[str, ...]:
    """The shared GPUs that the scheduler gave the pod: a label for each of several, or one label for a single GPU."""
    several = sorted(value for key, value in labels.items() if key.startswith(f"{GPU_GROUP_LABEL}/"))
    return tuple(several) or ((labels[GPU_GROUP_LABEL],) if GPU_GROUP_LABEL in labels else ())


def _group_and_index(labels: dict[str, str]) -> tuple[int, int | None]:
    """As the pod's controller counts them, if it does."""
    group = labels.get(f"{_LWS}/group-index", "")
    worker = labels.get(f"{_LWS}/worker-index", "")
    if worker.isdecimal():
        # The leader is number 0 of its group, and the only pod of its set.
        return int(group or 0), max(0, int(worker) - 1)
    index = labels.get(COMPLETION_INDEX) or labels.get(_REPLICA_INDEX) or labels.get(INDEX_LABEL, "")
    return int(group or 0), int(index) if index.isdecimal() else None


def _signal(terminated: objects.Terminated) -> int | None:
    return terminated.signal or (terminated.exit_code - 128 if terminated.exit_code > 128 else None)


def _last_end(main: objects.ContainerStatus) -> str:
    """How the container ended before its last restart."""
    last = main.last_state.terminated or main.state.terminated
    if not main.restart_count or last is None:
        return ""
    signal = _signal(last)
    message = f"exit code {exit_code_of(last)}" + (f" (signal {signal})" if signal else "")
    return f"{last.reason}, {message}" if last.reason not in ("", "Error", "Completed") else message


def _phase(pod: objects.Pod, main: objects.ContainerStatus | None) -> PodPhase:
    if pod.status.phase == "Succeeded":
        return PodPhase.SUCCEEDED if has_succeeded(pod) else PodPhase.STOPPED
    if pod.status.phase == "Failed":
        return PodPhase.FAILED
    if pod.metadata.deletion_timestamp is not None:
        return PodPhase.STOPPING
    if pod.status.phase == "Running" and (main is None or main.state.running is not None):
        return PodPhase.RUNNING
    # It has no node yet, its images are being pulled, or its container waits for its next start.
    return PodPhase.STARTING


def _started(pod: objects.Pod, main: objects.ContainerStatus | None) -> int | None:
    state = objects.ContainerState() if main is None else main.state
    if state.running is not None:
        return objects.millis(state.running.started_at)
    if state.terminated is not None:
        return objects.millis(state.terminated.started_at)
    if main is not None and main.last_state.terminated is not None:
        return objects.millis(main.last_state.terminated.started_at)
    return objects.millis(pod.status.start_time) if pod.status.phase == "Running" else None


def _reason_and_message(
    pod: objects.Pod, main: objects.ContainerStatus | None, terminated: objects.Terminated | None
) -> tuple[str, str]:
    """Why the pod does not start, or how it ended."""
    if terminated is not None:
        return terminated.reason or pod.status.reason, _end_message(pod, terminated)
    has_started = main is not None and main.state.running is not None
    for status in (*pod.status.init_container_statuses, *((main,) if main is not None else ())):
        before = status.last_state.terminated if status is not main and not has_started else None
        if before is not None and before.exit_code and status.state.terminated is None:
            # It is tried again; what it failed with says more than that it runs or waits now.
            why = before.message or f"{before.reason}, code {before.exit_code}"
            return "InitError", f"container {status.name} failed {status.restart_count} times, last with: {why}"
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
            return waiting.reason, waiting.message or waiting.reason
        failed = status.state.terminated
        if failed is not None and failed.exit_code and status is not main:
            return "InitError", f"container {status.name}: {failed.message or failed.reason}, code {failed.exit_code}"
    return pod.status.reason, pod.status.message


def _end_message(pod: objects.Pod, terminated: objects.Terminated) -> str:
    message = terminated.message or pod.status.message
    if not message and terminated.exit_code:
        message = f"exit code {exit_code_of(terminated)}"
        message = f"{terminated.reason}, {message}" if terminated.reason not in ("", "Error") else message
    lost = upload_error(pod)
    return message if lost in message else f"{message}; {lost}"
