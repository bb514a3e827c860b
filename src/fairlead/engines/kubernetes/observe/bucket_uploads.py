"""Pods that could not upload their changes to a bucket: they have failed, as they have on one machine. Pure.

The upload runs in a container beside the pod's own, whose end means nothing to Kubernetes. The cache keeps every pod
`with_upload_result`; the report corrects the counts and the end of the pod's controller.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import msgspec

from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.render.buckets import number_of_upload
from fairlead.engines.kubernetes.render.labels import role_of
from fairlead.model.pods.podset import PodSet

#: No pod has this reason from Kubernetes itself.
FETCH_ERROR = "FetchError"
_TOO_LATE = "changes could not be uploaded within the grace period"


def with_upload_result(pod: objects.Pod) -> objects.Pod:
    """The pod as it is, or as a failed one if something could not be uploaded."""
    error = upload_error(pod) if pod.status.phase == "Succeeded" else ""
    if not error:
        return pod
    replace = msgspec.structs.replace
    ended = [
        replace(each, state=_failed(each, error), last_state=objects.ContainerState())
        for each in pod.status.container_statuses
    ]
    status = replace(pod.status, phase="Failed", reason=FETCH_ERROR, message=error, container_statuses=tuple(ended))
    return replace(pod, status=status)


def _failed(own: objects.ContainerStatus, error: str) -> objects.ContainerState:
    ended = own.state.terminated or objects.Terminated()
    return objects.ContainerState(
        terminated=msgspec.structs.replace(ended, exit_code=1, reason=FETCH_ERROR, message=error)
    )


def upload_error(pod: objects.Pod) -> str:
    """What could not be uploaded, by the field of the spec that asks for it."""
    errors = []
    for status in pod.status.init_container_statuses:
        number, ended = number_of_upload(status.name), status.state.terminated
        if number is not None and ended is not None and ended.exit_code:
            errors.append(f"storage.s3[{number}]: {ended.message.strip() or _TOO_LATE}")
    return "; ".join(errors)


def is_uploading(pods: Collection[objects.Pod]) -> bool:
    """Whether a pod that has something to upload has not ended yet, as far as is seen."""
    return any(
        number_of_upload(status.name) is not None and pod.status.phase not in ("Succeeded", "Failed")
        for pod in pods
        for status in pod.status.init_container_statuses
    )


def has_buckets(podsets: Iterable[PodSet]) -> bool:
    return any(podset.container.fields.storage.s3 for podset in podsets)


def is_upload_result_missing(podsets: Iterable[PodSet], runner: objects.Runner, pods: Iterable[objects.Pod]) -> bool:
    """Whether the controller counts more succeeded pods than are seen, so that one may have failed to upload."""
    conditions = runner.status.conditions
    if not has_buckets(podsets) or not (
        objects.condition(conditions, "Complete") or objects.condition(conditions, "Succeeded")
    ):
        return False
    # A job of an operator counts by types of pods, and has pods of several roles.
    role = "" if runner.status.replica_statuses else role_of(runner.metadata.labels)
    own = [pod for pod in pods if role in ("", role_of(pod.metadata.labels))]
    seen = [pod for pod in own if pod.status.phase == "Succeeded" or pod.status.reason == FETCH_ERROR]
    counted = sum(numbers.get("succeeded") or 0 for numbers in runner.status.replica_statuses.values())
    return runner.status.succeeded + counted > len(seen)


def correct_counts(
    succeeded: Mapping[str, int], failed: Mapping[str, int], pods: Collection[objects.Pod]
) -> tuple[dict[str, int], dict[str, int]]:
    """How many pods succeeded and failed by role: their controller, which counts them, knows nothing of buckets."""
    lost = Counter(role_of(pod.metadata.labels) for pod in pods if pod.status.reason == FETCH_ERROR)
    uploaded = {role: number - lost[role] for role, number in succeeded.items() if number > lost[role]}
    return uploaded, dict(Counter(failed) + lost)
