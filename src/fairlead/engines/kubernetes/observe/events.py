"""What the cluster says of pods that cannot be made: quotas, rules of its admission, templates that fit no pod. Pure.

Controllers say it in events, which carry no label of ours and stay for an hour. `holdings.py` finds out whose an event
is, `observing.py` asks which of them still holds.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from fairlead.engines.base import SchedulingBlocker
from fairlead.engines.kubernetes.client.objects import Event, Metadata, Pod, Runner, condition, millis
from fairlead.engines.kubernetes.client.resources import (
    DEPLOYMENT,
    JAX,
    JOB,
    LEADER_WORKER_SET,
    MPI,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Resource,
)

FAILED_CREATE = "FailedCreate"
#: The reasons of such events, by the kinds beyond Kubernetes' own whose controllers give others.
_REASONS = {
    **dict.fromkeys((PYTORCH, TENSORFLOW, XGBOOST, JAX), "FailedCreatePod"),
    MPI: "MPIJobFailed",
}
_STATEFUL_SET, _LAUNCHER = "StatefulSet", "-launcher"
#: Kinds whose templates the API server checks as it checks pods, when they are applied.
_CHECKED = frozenset({JOB.kind, DEPLOYMENT.kind})
_COMBINED = "(combined from similar events): "

#: Namespace, kind and name of an object that makes pods.
Maker = tuple[str, str, str]


def reasons_for(resources: Iterable[Resource]) -> set[str]:
    """The reasons to look for where these kinds make pods."""
    return {_REASONS.get(resource, FAILED_CREATE) for resource in resources} | {FAILED_CREATE}


def controllers_named_in(event: Event) -> list[Maker]:
    """Which object of ours it may be about: the one that it names, or the one for which that was made."""
    told = event.involved_object
    found = [(told.kind, told.name)]
    if told.kind == _STATEFUL_SET:
        stem, _, number = told.name.rpartition("-")
        found += [(LEADER_WORKER_SET.kind, told.name)]
        found += [(LEADER_WORKER_SET.kind, stem)] if number.isdecimal() else []
    elif told.kind == JOB.kind and told.name.endswith(_LAUNCHER):
        found.append((MPI.kind, told.name.removesuffix(_LAUNCHER)))
    return [(told.namespace, kind, name) for kind, name in found]


def find_pod_creation_errors(
    runners: Collection[Runner], kinds: Collection[str], events: Iterable[Event], pods: Iterable[Pod]
) -> list[SchedulingBlocker]:
    """Why pods of these objects cannot be made. An event holds until a pod is made after it."""
    latest = max((_made_at(pod.metadata) for pod in pods), default=0)
    standing = [
        event
        for event in events
        if last_seen_at(event) > latest and any(_is_about(event, runner.metadata, kinds) for runner in runners)
    ]
    found = [max(standing, key=last_seen_at).message.removeprefix(_COMBINED)] if standing else []
    failing = (condition(runner.status.conditions, "ReplicaFailure") for runner in runners)
    found += [one.message for one in failing if one is not None]
    return [SchedulingBlocker(code=FAILED_CREATE, message=message, can_create_pods=False) for message in found]


def is_checked(kinds: Collection[str]) -> bool:
    """Whether the API server has seen that pods can come of what these kinds hold."""
    return _CHECKED.issuperset(kinds)


def templates_of(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The pods that an object would make, wherever they stand in it."""
    spec = body.get("spec")
    if isinstance(spec, Mapping) and "containers" in spec:
        yield body
        return
    for value in body.values():
        if isinstance(value, Mapping):
            yield from templates_of(value)


def last_seen_at(event: Event) -> int:
    return max(millis(event.last_timestamp) or 0, millis(event.event_time) or 0)


def _made_at(metadata: Metadata) -> int:
    return millis(metadata.creation_timestamp) or 0


def _is_about(event: Event, runner: Metadata, kinds: Collection[str]) -> bool:
    """About this very object; of what was made for one, only the time tells whether it was made for this one."""
    told = event.involved_object
    if told.kind in kinds:
        return told.uid == runner.uid
    return last_seen_at(event) >= _made_at(runner)
