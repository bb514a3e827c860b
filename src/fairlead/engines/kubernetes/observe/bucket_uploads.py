"""Pods whose buckets did not get their changes back: they have failed, as they have on one machine. Pure.

The container that writes back stands beside the pod's own, and to Kubernetes its end decides nothing. `holdings.py`
keeps every pod as `judge_return` sees it; `observing.py` corrects the counts and the end of the object that made it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from fairlead.engines.kubernetes.client.objects import (
    ContainerState,
    ContainerStatus,
    Pod,
    Runner,
    Terminated,
    condition,
)
from fairlead.engines.kubernetes.render.buckets import number_of_return
from fairlead.engines.kubernetes.render.context import role_of
from fairlead.model.pods.podset import PodSet

#: What no pod of Kubernetes' own has as its reason.
FETCH_ERROR = "FetchError"
_TOO_LATE = "changes could not be brought back within the grace"


def with_upload_result(pod: Pod) -> Pod:
    """The pod as it is, or as one that failed because something could not be written back."""
    words = upload_error(pod) if pod.status.phase == "Succeeded" else ""
    if not words:
        return pod
    replace = msgspec.structs.replace
    ended = [
        replace(each, state=_failed(each, words), last_state=ContainerState()) for each in pod.status.container_statuses
    ]
    status = replace(pod.status, phase="Failed", reason=FETCH_ERROR, message=words, container_statuses=tuple(ended))
    return replace(pod, status=status)


def _failed(own: ContainerStatus, words: str) -> ContainerState:
    ended = own.state.terminated or Terminated()
    return ContainerState(terminated=msgspec.structs.replace(ended, exit_code=1, reason=FETCH_ERROR, message=words))


def upload_error(pod: Pod) -> str:
    """What could not be written back, by the field that asked for it."""
    found = []
    for status in pod.status.init_container_statuses:
        number, ended = number_of_return(status.name), status.state.terminated
        if number is not None and ended is not None and ended.exit_code:
            found.append(f"storage.s3[{number}]: {ended.message.strip() or _TOO_LATE}")
    return "; ".join(found)


def is_uploading(pods: Collection[Pod]) -> bool:
    """Whether the end of a pod is still to be seen that has something to write back."""
    return any(
        number_of_return(status.name) is not None and pod.status.phase not in ("Succeeded", "Failed")
        for pod in pods
        for status in pod.status.init_container_statuses
    )


def has_buckets(podsets: Iterable[PodSet]) -> bool:
    return any(podset.container.fields.storage.s3 for podset in podsets)


def is_upload_result_missing(podsets: Iterable[PodSet], runner: Runner, pods: Iterable[Pod]) -> bool:
    """Whether it counts more pods that ended well than are seen, so that one may have failed to write back."""
    conditions = runner.status.conditions
    if not has_buckets(podsets) or not (condition(conditions, "Complete") or condition(conditions, "Succeeded")):
        return False
    # What an operator runs counts by types of pods, and has pods of several roles.
    role = "" if runner.status.replica_statuses else role_of(runner.metadata.labels)
    own = [pod for pod in pods if role in ("", role_of(pod.metadata.labels))]
    seen = [pod for pod in own if pod.status.phase == "Succeeded" or pod.status.reason == FETCH_ERROR]
    counted = sum(numbers.get("succeeded") or 0 for numbers in runner.status.replica_statuses.values())
    return runner.status.succeeded + counted > len(seen)


def correct_counts(
    succeeded: Mapping[str, int], failed: Mapping[str, int], pods: Collection[Pod]
) -> tuple[dict[str, int], dict[str, int]]:
    """How many pods ended well and badly by role, where the object that counts them knows nothing of buckets."""
    lost = Counter(role_of(pod.metadata.labels) for pod in pods if pod.status.reason == FETCH_ERROR)
    well = {role: number - lost[role] for role, number in succeeded.items() if number > lost[role]}
    return well, dict(Counter(failed) + lost)
