"""The status of a workload's custom resource, as kubectl shows it and as a later server adopts it. Pure.

Called by `loop.py`. Conditions keep the time at which they became what they are.
"""

from collections.abc import Iterable
from typing import Any

from fairlead.control.decide.expand import podsets_of
from fairlead.model.clock import Millis, iso
from fairlead.model.custom_resource import CustomResource
from fairlead.model.errors import Invalid
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.phase import Phase
from fairlead.model.records.workload import Workload

Status = dict[str, Any]
ConditionValue = dict[str, str]

#: The condition of an object with an edit that is not allowed; statuses of earlier versions have the second name.
EDIT_REJECTED, _FORMER_EDIT_REJECTED = "EditRejected", "EditNotTaken"
#: The condition of an object whose template is missing or not usable; it is checked again when templates change.
TEMPLATE_NOT_USABLE = "TemplateNotUsable"
#: The condition of an object that an earlier server accepted and that cannot be adopted yet.
NOT_ADOPTED = "NotAdopted"
#: The phase of an object that is a template.
TEMPLATE = "Template"
_ACCEPTED = "Accepted"
_BASE = "spec.baseWorkload"
_WAITING = frozenset({Phase.CREATING, Phase.PENDING, Phase.STOPPED, Phase.STOPPING, Phase.RESUMING})
_RUNNING = frozenset({Phase.RUNNING, Phase.UPDATING, Phase.DEGRADED})


def render_status(resource: CustomResource, workload: Workload, generation: int, now: Millis) -> Status:
    """The status of an accepted workload. A later server adopts it by these members if it does not know it."""
    status: Status = {
        "phase": workload.phase.value,
        "message": one_line(workload.phase_message),
        "workloadId": workload.id,
        "workloadName": workload.name,
        "observedGeneration": generation,
        "project": workload.project_name,
        "createdBy": workload.created_by,
        "createdAt": iso(workload.created_at),
        "completedAt": None if workload.completed_at is None else iso(workload.completed_at),
        "dialect": workload.dialect,
        "runningPods": workload.running_pods,
        "requestedGpu": f"{sum(map(_requested_gpus, podsets_of(workload))):g}",
        "allocatedGpu": str(workload.allocated_gpu),
        "conditions": with_times(resource, [*_standard_conditions(workload), *_own_conditions(workload)], now),
    }
    if workload.revisions:
        newest = workload.revisions[-1]
        status |= {"revision": newest.number, "replicas": newest.replicas}
    return status


def _requested_gpus(podset: PodSet) -> float:
    """A part of a device by its portion; by memory a whole device, because the size of a device is not known here."""
    request = podset.request
    return podset.total * request.gpu_devices * (1 if request.gpu_memory_bytes else request.gpu_portion / 1000)


def one_line(text: str) -> str:
    """`kubectl get` shows only the first line."""
    return " ".join(text.split())


def _standard_conditions(workload: Workload) -> list[ConditionValue]:
    """For `kubectl wait --for=condition=…` and `kubectl describe`."""
    phase, message = workload.phase, one_line(workload.phase_message)
    reason = workload.phase_reason or phase.value
    states = {
        _ACCEPTED: True,
        "Scheduled": phase not in _WAITING or workload.running_pods > 0,
        "Running": phase in _RUNNING,
        "Succeeded": phase is Phase.COMPLETED,
        "Failed": phase is Phase.FAILED,
    }
    return [
        _condition(type, is_true, _ACCEPTED if type == _ACCEPTED else reason, "" if type == _ACCEPTED else message)
        for type, is_true in states.items()
    ]


def _own_conditions(workload: Workload) -> list[ConditionValue]:
    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": iso(condition.last_transition_time),
        }
        for condition in {condition.type: condition for condition in workload.conditions}.values()
    ]


def _condition(type: str, is_true: bool, reason: str, message: str) -> ConditionValue:
    return {"type": type, "status": "True" if is_true else "False", "reason": reason, "message": message}


def render_template_status(generation: int) -> Status:
    return {"phase": TEMPLATE, "message": "", "observedGeneration": generation, "conditions": None}


def render_refusal(resource: CustomResource, error: Invalid, now: Millis) -> Status:
    """The status of an object that is not accepted. It names no workload, so nobody adopts it."""
    message = refusal_message(error)
    conditions = [_condition(_ACCEPTED, False, "Invalid", message)]
    if is_about_template(error):
        conditions.append(_condition(TEMPLATE_NOT_USABLE, True, "WillRetry", message))
    return {
        "phase": Phase.FAILED.value,
        "message": message,
        "observedGeneration": resource.generation,
        "conditions": with_times(resource, conditions, now),
    }


def with_condition(resource: CustomResource, status: Status, condition: tuple[str, str, str], now: Millis) -> Status:
    """The status with one more condition (type, reason, message), whose message comes first in the status too."""
    type, reason, message = condition
    others = [one for one in status.get("conditions") or () if one.get("type") != type]
    before = status.get("message", "")
    text = before if message in before else ". ".join(part for part in (message, before) if part)
    added = with_times(resource, [_condition(type, True, reason, message)], now)
    return {**status, "message": text, "conditions": [*others, *added]}


def with_times(resource: CustomResource, conditions: Iterable[ConditionValue], now: Millis) -> list[ConditionValue]:
    """Each condition with the time at which it became true or false."""
    earlier = {
        (one.get("type"), one.get("status")): one.get("lastTransitionTime")
        for one in resource.status.get("conditions") or ()
    }
    former = earlier.get((_FORMER_EDIT_REJECTED, "True"))
    times = {(EDIT_REJECTED, "True"): former, **earlier} if former else earlier
    return [{"lastTransitionTime": times.get((one["type"], one["status"])) or iso(now), **one} for one in conditions]


def waits_for_template(resource: CustomResource) -> bool:
    return any(one.get("type") == TEMPLATE_NOT_USABLE for one in resource.status.get("conditions") or ())


def is_about_template(error: Invalid) -> bool:
    return any(issue.field == _BASE for issue in error.issues)


def refusal_message(error: Invalid) -> str:
    return "; ".join(f"{issue.field}: {issue.details}" for issue in error.issues) or error.message
