"""Reads the end of an object of any kind from its status, by the words that controllers use. Pure.

Called by the cache for manifests of users. It reads conditions, and a phase wherever the status has it. An object
without either ends only with its pods, or never.
"""

from collections.abc import Iterator

import msgspec

from fairlead.engines.kubernetes.client import objects

_COMPLETE = frozenset({"complete", "completed", "succeeded", "jobsucceeded", "jobcomplete"})
_FAILED = frozenset({"failed", "jobfailed", "error", "aborted"})
#: Members whose text is the state of the object, or that contain such a member.
_STATES = ("phase", "state", "jobStatus", "jobDeploymentStatus", "applicationState")


def read_runner(custom: objects.CustomObject) -> objects.Runner:
    """The object as a controller of pods, with the condition of its end."""
    status = msgspec.json.decode(custom.status)
    plain = status if isinstance(status, dict) else {}
    # An object that has failed may say that it is complete, too.
    ends = sorted((*_ends_by_condition(plain), *_ends_by_state(plain)), key=lambda end: end.type != "Failed")
    return objects.Runner(metadata=custom.metadata, status=objects.RunnerStatus(conditions=tuple(ends[:1])))


def _ends_by_condition(status: dict[str, object]) -> Iterator[objects.Condition]:
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and str(one.get("status")).lower() == "true":
            yield from _end(str(one.get("type")), str(one.get("reason") or ""), str(one.get("message") or ""))


def _ends_by_state(status: dict[str, object]) -> Iterator[objects.Condition]:
    for name in _STATES:
        value = status.get(name)
        if isinstance(value, dict):
            yield from _ends_by_state(value)
        elif isinstance(value, str):
            yield from _end(value, str(status.get("reason") or ""), str(status.get("message") or ""))


def _end(word: str, reason: str, message: str) -> Iterator[objects.Condition]:
    if word.lower() in _COMPLETE:
        yield objects.Condition(type="Complete", status="True")
    elif word.lower() in _FAILED:
        yield objects.Condition(type="Failed", status="True", reason=reason or "Failed", message=message)
