"""Why controllers cannot create pods: quotas, admission rules, templates that fit no pod. Pure.

Controllers report it in events, which carry no label of ours and exist for an hour. The cache finds out to which
workload an event belongs; the report asks which events still hold.
"""

from collections.abc import Collection, Iterable, Iterator

from fairlead.engines.base import SchedulingBlocker
from fairlead.engines.kubernetes.client import objects
from fairlead.engines.kubernetes.client.resources import (
    DEPLOYMENT,
    JAX,
    JOB,
    LEADER_WORKER_SET,
    MPI,
    PYTORCH,
    TENSORFLOW,
    XGBOOST,
    Manifest,
    Resource,
)
from fairlead.formats.foreign.pod_templates import find_templates

FAILED_CREATE = "FailedCreate"
#: The reasons of such events, for the kinds whose controllers use other words than Kubernetes' own.
_REASONS = {
    **dict.fromkeys((PYTORCH, TENSORFLOW, XGBOOST, JAX), "FailedCreatePod"),
    MPI: "MPIJobFailed",
}
_STATEFUL_SET, _LAUNCHER = "StatefulSet", "-launcher"
#: Kinds whose templates the API server checks as it checks pods, when they are applied.
_CHECKED = frozenset({JOB.kind, DEPLOYMENT.kind})
_COMBINED = "(combined from similar events): "

#: Namespace, kind and name of a controller of pods.
Controller = tuple[str, str, str]


def reasons_for(resources: Iterable[Resource]) -> set[str]:
    """The reasons to watch if these kinds are the controllers of pods."""
    return {_REASONS.get(resource, FAILED_CREATE) for resource in resources} | {FAILED_CREATE}


def controllers_named_in(event: objects.Event) -> list[Controller]:
    """Which of our objects the event may be about: the one that it names, or that one's owner."""
    involved = event.involved_object
    controllers = [(involved.kind, involved.name)]
    if involved.kind == _STATEFUL_SET:
        stem, _, number = involved.name.rpartition("-")
        controllers += [(LEADER_WORKER_SET.kind, involved.name)]
        controllers += [(LEADER_WORKER_SET.kind, stem)] if number.isdecimal() else []
    elif involved.kind == JOB.kind and involved.name.endswith(_LAUNCHER):
        controllers.append((MPI.kind, involved.name.removesuffix(_LAUNCHER)))
    return [(involved.namespace, kind, name) for kind, name in controllers]


def find_pod_creation_errors(
    runners: Collection[objects.Runner],
    kinds: Collection[str],
    events: Iterable[objects.Event],
    pods: Iterable[objects.Pod],
) -> list[SchedulingBlocker]:
    """Why these controllers cannot create pods. An event holds until a pod is created after it."""
    latest = max((_created_at(pod.metadata) for pod in pods), default=0)
    holding = [
        event
        for event in events
        if last_seen_at(event) > latest and any(_is_about(event, runner.metadata, kinds) for runner in runners)
    ]
    messages = [max(holding, key=last_seen_at).message.removeprefix(_COMBINED)] if holding else []
    failing = (objects.condition(runner.status.conditions, "ReplicaFailure") for runner in runners)
    messages += [one.message for one in failing if one is not None]
    return [SchedulingBlocker(code=FAILED_CREATE, message=message, can_create_pods=False) for message in messages]


def is_checked(kinds: Collection[str]) -> bool:
    """Whether the API server checked the pod templates when objects of these kinds were applied."""
    return _CHECKED.issuperset(kinds)


def templates_of(manifest: Manifest) -> Iterator[Manifest]:
    """The pod templates of a controller, wherever they are in it."""
    return (template for _, template in find_templates({"": manifest}))


def last_seen_at(event: objects.Event) -> int:
    return max(objects.millis(event.last_timestamp) or 0, objects.millis(event.event_time) or 0)


def _created_at(metadata: objects.Metadata) -> int:
    return objects.millis(metadata.creation_timestamp) or 0


def _is_about(event: objects.Event, runner: objects.Metadata, kinds: Collection[str]) -> bool:
    """Whether the event names this object, or one that it may own: then only the time tells an older owner apart."""
    involved = event.involved_object
    if involved.kind in kinds:
        return involved.uid == runner.uid
    return last_seen_at(event) >= _created_at(runner)
