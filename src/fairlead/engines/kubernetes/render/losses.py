"""Fields of a spec that no Kubernetes object expresses, by their paths in the spec. Pure.

Renderers know the fields of pod sets: without excluded items, with defaults, and with the serving port as a URL. Here
they are found again in the spec, and fields that the kind itself reads are added if no object expresses them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fairlead.engines.kubernetes.render.runners import is_group
from fairlead.formats.losses import Loss, leaves
from fairlead.kinds.kind import Kind
from fairlead.model.pods.podset import PodSet, RestartPolicy
from fairlead.model.spec.canonical import counts
from fairlead.model.spec.fields import fields_of, is_given

NO_OBJECT = "no Kubernetes object expresses it by itself"
_EXCLUDED = "belongs to an item that is excluded"
_INCOMPLETE = "belongs to an item without a mandatory member; such an item has no effect"
_NO_PODS = "no pod has this role"
_WHOLE = "is read for the workload as a whole, not for one of its roles"
_SCALED = "the server does the scaling; the Deployment keeps its initial number of pods"
_ENDLESS = "pods that always restart are a Deployment, which never ends"
_LAUNCHED = "the server or an operator passes it to the MPI launcher; pod objects cannot express it"
_GROUPED = "the server recreates and deletes the pods of a group"
#: Members of a spec that concern the workload rather than its pods, and have no member of an object.
_AROUND = ("category", "terminateAfterPreemption", "preemptionLimit", "username")
_ENDING = ("backoffLimit", "autoDeletionTimeAfterCompletionSeconds")
_OF_GROUPS = (*_ENDING, "cleanPodPolicy")
_OF_LAUNCHERS = ("slotsPerWorker", "sshAuthMountPath", "mpiLauncherCreationPolicy")
_SCALING = ("autoscaling", "servingConfiguration")
#: Of the serving port a Service says the number, and that it is for the cluster alone.
_SERVING, _SERVED = "servingPort", ("container", "port", "clusterLocalAccessOnly")
#: What says nothing where all pods have one role.
_ALIKE = "masterSpecSameAsWorker"
_OF_TWO_ROLES = (("startupPolicy", "LeaderReady"), (_ALIKE, True))
#: Members of a role that count only in the spec around it.
_OF_THE_WHOLE = (*_AROUND, *_ENDING, "restartPolicy", "priorityClass", "preemptibility")


def find_losses(
    kind: Kind, spec: dict[str, object], typed: object, podsets: Sequence[PodSet], left: Iterable[Loss]
) -> list[Loss]:
    """`left` is what the pod sets' renderers left over; each member of the spec is listed once, in its order."""
    places, reasons = _places(spec, dict(_left_out(typed, "")))
    roots = ["", *(f"{name}." for name, value in spec.items() if isinstance(value, dict))]
    for loss in left:
        for root in roots:
            if root + loss.path in places:
                reasons.setdefault(places[root + loss.path], loss.reason)
    given = leaves(spec)
    for path, value in given.items():
        reason = (
            _unsaid(path, value, given) or _of_the_workload(path, podsets) or _of_a_role(kind, path, given, podsets)
        )
        if reason:
            reasons.setdefault(path, reason)
    return [
        Loss(path=path, reason=reasons[path], value=value)
        for path, value in given.items()
        if path in reasons and _is_something(value)
    ]


def _is_something(value: object) -> bool:
    """Nothing is lost with what is empty or off; 0 is a number like others."""
    return value is not None and value is not False and value not in ({}, [], "")


def _left_out(typed: Any, path: str) -> Iterator[tuple[str, str]]:
    """Items of lists that no pod set has, by their paths, and why."""
    for field in fields_of(typed.__class__):
        value, field_path = getattr(typed, field.attribute), f"{path}{field.rest}"
        if field.struct is None or not is_given(value):
            continue
        for position, item in enumerate(value) if field.is_list else ():
            if item is not None and not counts(item):
                yield f"{field_path}[{position}]", _EXCLUDED if getattr(item, "exclude", None) is True else _INCOMPLETE
            elif item is not None:
                yield from _left_out(item, f"{field_path}[{position}].")
        if not field.is_list:
            yield from _left_out(value, f"{field_path}.")


def _places(spec: dict[str, object], left_out: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """From paths of leaves, as they are without items that are left out, to those of the spec; and why others are."""
    counted, reasons = {}, {}
    for path, place, reason in _walk(spec, "", "", "", left_out):
        if reason:
            reasons[place] = reason
        else:
            counted[path] = place
    return counted, reasons


def _walk(
    plain: object, path: str, place: str, reason: str, left_out: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    if isinstance(plain, dict) and plain:
        for name, value in plain.items():
            dot = "." if place else ""
            yield from _walk(value, f"{path}{dot}{name}", f"{place}{dot}{name}", reason, left_out)
    elif isinstance(plain, list) and any(isinstance(item, dict) for item in plain):
        number = 0
        for position, item in enumerate(plain):
            item_path = f"{place}[{position}]"
            yield from _walk(item, f"{path}[{number}]", item_path, reason or left_out.get(item_path, ""), left_out)
            number += item is not None and item_path not in left_out
    else:
        yield path, place, reason


def _unsaid(path: str, value: object, given: dict[str, object]) -> str:
    """Of what a renderer takes as a whole, the members that are not in what it makes."""
    item, _, member = path.rpartition(".")
    in_list = item.endswith("]")
    if in_list and member == "name" and ("storage." in item or "tolerations[" in item):
        is_claim = "storage.pvc[" in item and not given.get(f"{item}.claimName")
        return "" if is_claim else NO_OBJECT
    if in_list and (member == "description" or (member == "userCredential" and value is True)):
        return NO_OBJECT
    return NO_OBJECT if item == _SERVING and member not in _SERVED else ""


def _of_the_workload(path: str, podsets: Sequence[PodSet]) -> str:
    if path in _AROUND:
        return NO_OBJECT
    if path.split(".")[0] in _SCALING:
        return _SCALED
    if path in _OF_LAUNCHERS:
        return _LAUNCHED
    if is_group(podsets):
        return _GROUPED if path in _OF_GROUPS else ""
    has_end = any(podset.completions is not None for podset in podsets)
    if has_end and all(podset.restart is RestartPolicy.ALWAYS for podset in podsets):
        return _ENDLESS if path in (*_ENDING, "completions") else ""
    return ""


def _of_a_role(kind: Kind, path: str, given: dict[str, object], podsets: Sequence[PodSet]) -> str:
    root, _, rest = path.partition(".")
    if len(podsets) == 1 and (path, given[path]) in _OF_TWO_ROLES:
        return _NO_PODS
    if path == _ALIKE and any(other.startswith("masterSpec.") for other in given):
        return "masterSpec says what the master runs"
    if not rest or not any(field.rest == root and field.about.role for field in fields_of(kind.spec)):
        return ""
    if len(podsets) == 1:
        return _NO_PODS
    return _WHOLE if rest in _OF_THE_WHOLE or (rest == "nodePools" and given.get(rest)) else ""
