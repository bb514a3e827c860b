"""Rules between the members of a spec, which the contract states in prose and no bound on one member can express.

`admission` checks every spec against them, and `formats` adds the violations to its own, so that a caller gets all of
them at once. They know no kind.
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET

from fairlead.model.command_words import split_words
from fairlead.model.priority import PRIORITIES
from fairlead.model.quantity import BadQuantity, parse
from fairlead.model.spec.claims import Pvc
from fairlead.model.spec.compute import Compute, ExtendedResource
from fairlead.model.spec.environment import Variable
from fairlead.model.spec.fields import Struct, fields_of, is_given, sources_of
from fairlead.model.spec.network import ExposedUrl, Port
from fairlead.model.spec.placement import MatchExpression, Toleration
from fairlead.model.spec.security import BasicSecurity, Security
from fairlead.model.spec.storage import DataStorage, EmptyDir, Git, HostPath, Storage

#: More cores than any machine has; in thousandths it still fits into 64 bits.
MAX_CORES = 1_000_000_000
#: The ports that Kubernetes allows for services of type NodePort.
NODE_PORTS = range(30_000, 32_768)
#: The fields of its pod that a variable can take its value from, as Kubernetes names them.
POD_FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KEYED_POD_FIELD = re.compile(r"metadata\.(labels|annotations)\['[^']+'\]")


class Violation(msgspec.Struct, frozen=True):
    #: The dotted path from where the check began; items of a list by position.
    path: str
    details: str
    #: What happens instead if the submission is in the older dialect; empty if it is refused in every dialect.
    instead: str = ""


class SubmissionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of this installation."""

    completions: int = 100_000


Violations = Iterator[tuple[str, str, str]]


def violations(spec: msgspec.Struct, path: str) -> list[Violation]:
    """Every broken rule in the struct and below it; excluded items are not checked."""
    broken: list[Violation] = []
    _check(spec, path, broken, is_item=False)
    return broken


@cache
def _plan(struct: Struct) -> tuple[tuple[str, str, bool, bool, bool, bool], ...]:
    """Per member: attribute, REST name, mandatory, quantity, a struct, a list of structs; only those to check."""
    return tuple(
        (f.attribute, f.rest, f.about.mandatory, f.is_quantity, f.struct is not None and not f.is_list, f.is_list)
        for f in fields_of(struct)
        if f.about.mandatory or f.is_quantity or f.struct is not None
    )


def _check(struct: msgspec.Struct, path: str, broken: list[Violation], is_item: bool) -> None:
    cls = struct.__class__
    for attribute, rest, mandatory, quantity, is_struct, is_list in _plan(cls):
        value = getattr(struct, attribute)
        if value is UNSET or value is None:
            if mandatory:
                instead = "the item is left out" if is_item else ""
                broken.append(Violation(f"{path}.{rest}", "is missing; it must be given", instead))
        elif is_struct:
            _check(value, f"{path}.{rest}", broken, is_item=False)
        elif is_list:
            for number, item in enumerate(value):
                if item is not None and getattr(item, "exclude", None) is not True:
                    _check(item, f"{path}.{rest}[{number}]", broken, is_item=True)
        elif quantity:
            _check_quantity(value, f"{path}.{rest}", broken)
    rule = _RULES.get(cls)
    if rule is not None:
        broken.extend(
            Violation(f"{path}.{name}" if name else path, details, instead) for name, details, instead in rule(struct)
        )


def _check_quantity(value: str, path: str, broken: list[Violation]) -> None:
    try:
        parse(value)
    except BadQuantity as bad:
        broken.append(Violation(path, str(bad)))


def _is_quantity(value: object) -> bool:
    if not is_given(value):
        return False
    try:
        parse(value)
    except BadQuantity:
        return False
    return True


def _variable(item: Variable) -> Violations:
    known = [field.rest for field in sources_of(Variable)]
    sources = [field.rest for field in sources_of(Variable) if is_given(getattr(item, field.attribute))]
    if not sources:
        yield "", f"has no source; give one of {', '.join(known)}", "the variable is empty"
    elif len(sources) > 1:
        yield "", f"has {len(sources)} sources ({', '.join(sources)}); exactly one is allowed", f"{sources[0]} is used"
    if isinstance(item.name, str) and "=" in item.name:
        yield "name", "contains '=', which the name of a variable cannot", ""
    path = getattr(item.pod_field_ref, "path", None)
    if isinstance(path, str) and path not in POD_FIELDS and not _KEYED_POD_FIELD.fullmatch(path):
        fields = ", ".join((*POD_FIELDS, "metadata.labels['KEY']", "metadata.annotations['KEY']"))
        yield "podFieldRef.path", f"is '{path}', which is not a field of a pod; known are {fields}", ""


def _compute(item: Compute) -> Violations:
    if is_given(item.gpu_request_type) or any(map(is_given, _gpu_shares(item))):
        yield from _gpus(item)
    for rest, value in (("cpuCoreRequest", item.cpu_core_request), ("cpuCoreLimit", item.cpu_core_limit)):
        if isinstance(value, int | float) and value > MAX_CORES:
            yield rest, f"is {value}; at most {MAX_CORES} cores can be requested", ""
    yield from _limits(item)


def _gpu_shares(item: Compute) -> tuple[object, ...]:
    return item.gpu_portion_request, item.gpu_portion_limit, item.gpu_memory_request, item.gpu_memory_limit


def _gpus(item: Compute) -> Violations:
    portion, portion_limit, memory, memory_limit = _gpu_shares(item)
    mig = is_given(item.mig_profile)
    yield from _gpu_share(item, "portion", portion, portion_limit, mig)
    yield from _gpu_share(item, "memory", memory, memory_limit, mig)
    for rest, value in (("gpuPortionRequest", portion), ("gpuPortionLimit", portion_limit)):
        if isinstance(value, int | float) and value > 1:
            yield rest, f"is {value}; a portion of a device is at most 1", ""
    if item.gpu_request_type == "memory" and isinstance(item.gpu_devices_request, int) and item.gpu_devices_request > 1:
        yield "gpuDevicesRequest", "is above 1; with gpuRequestType memory only one device can be requested", ""


def _gpu_share(item: Compute, kind: str, request: object, limit: object, mig: bool) -> Violations:
    """The request and limit of one way to share a device are given if and only if that way is chosen."""
    title = f"gpu{kind.capitalize()}"
    instead = "it is ignored, migProfile is used" if mig else "it is ignored, gpuRequestType decides"
    if item.gpu_request_type == kind:
        if not is_given(request):
            yield f"{title}Request", f"is missing; it must be given when gpuRequestType is {kind}", ""
        elif mig:
            yield (
                f"{title}Request",
                "is given together with migProfile; only one way to request GPUs is allowed",
                instead,
            )
        return
    for rest, value in ((f"{title}Request", request), (f"{title}Limit", limit)):
        if is_given(value):
            yield rest, f"is given, but gpuRequestType is not {kind}", instead


def _limits(item: Compute) -> Violations:
    for request, limit, rest in (
        (item.cpu_core_request, item.cpu_core_limit, "cpuCore"),
        (item.gpu_portion_request, item.gpu_portion_limit, "gpuPortion"),
    ):
        if isinstance(limit, int | float) and isinstance(request, int | float) and limit < request:
            yield f"{rest}Limit", f"is {limit}, below {rest}Request, which is {request}", ""
    for wanted, most, rest in (
        (item.cpu_memory_request, item.cpu_memory_limit, "cpuMemory"),
        (item.gpu_memory_request, item.gpu_memory_limit, "gpuMemory"),
    ):
        if is_given(most) and _is_quantity(wanted) and _is_quantity(most) and parse(str(most)) < parse(str(wanted)):
            yield f"{rest}Limit", f"is {most}, below {rest}Request, which is {wanted}", ""


def _extended_resource(item: ExtendedResource) -> Violations:
    if _is_quantity(item.quantity) and parse(str(item.quantity)).denominator != 1:
        yield "quantity", f"is {item.quantity}; extended resources must be whole numbers", ""


def _pvc(item: Pvc) -> Violations:
    if item.existing_pvc is True:
        if is_given(item.claim_info):
            yield "claimInfo", "is given, but existingPvc is true; leave one of them out", ""
        if not is_given(item.claim_name):
            yield "claimName", "is missing; an existing claim must be named", ""
    elif not is_given(getattr(item.claim_info, "size", None)):
        yield "claimInfo.size", "is missing; a new claim must have a size (or set existingPvc)", ""


def _empty_dir(item: EmptyDir) -> Violations:
    if is_given(item.medium) and item.medium != "Memory":
        yield "medium", f"is '{item.medium}'; give Memory, or leave it out to use the node's disk", ""


def _git(item: Git) -> Violations:
    if is_given(item.secret_ref) and not is_given(getattr(item.secret_ref, "name", None)):
        yield "secretRef.name", "is missing; it must be given", ""


def _host_path(item: HostPath) -> Violations:
    if isinstance(item.path, str) and ".." in item.path.split("/"):
        yield "path", f"is '{item.path}'; a host path must not contain '..'", ""


def _storage(item: DataStorage) -> Violations:
    paths = [path for path in item.host_path or () if path is not None and path.exclude is not True]
    kinds = {path.mount_propagation if is_given(path.mount_propagation) else "None" for path in paths}
    if len(kinds) > 1:
        yield "hostPath", "has items with different mountPropagation; it must be the same for all of them", ""


def _security(item: BasicSecurity) -> Violations:
    if item.seccomp_profile_type == "Localhost":
        yield "seccompProfileType", "is Localhost, which is not supported; use RuntimeDefault or Unconfined", ""
    for rest, value in (("runAsUid", item.run_as_uid), ("runAsGid", item.run_as_gid)):
        if isinstance(value, int) and value < 0:
            yield rest, f"is {value}; an id must be 0 or more", ""
    if isinstance(item.supplemental_groups, str):
        words = item.supplemental_groups.replace(";", ",").split(",") if item.supplemental_groups else []
        if any(not (word.strip().isascii() and word.strip().isdigit()) for word in words):
            yield "supplementalGroups", "must be group ids separated by commas, such as 2,3,5", ""


def _exposed_url(item: ExposedUrl) -> Violations:
    if not is_given(item.authorization_type) and item.authorized_users and item.authorized_groups:
        details = "has authorizedUsers and authorizedGroups; give only one of them, or an authorizationType"
        yield "", details, "authorizedUsers is used, authorizedGroups is ignored"
    yield from _port_number("container", item.container)


def _port(item: Port) -> Violations:
    yield from _port_number("external", item.external)
    is_port = isinstance(item.external, int) and 1 <= item.external <= 65535
    if item.service_type == "NodePort" and is_port and item.external not in NODE_PORTS:
        yield "external", f"is {item.external}; a NodePort must be between {NODE_PORTS[0]} and {NODE_PORTS[-1]}", ""


def _port_number(rest: str, value: object) -> Violations:
    if isinstance(value, int) and not 1 <= value <= 65535:
        yield rest, f"is {value}; a port must be between 1 and 65535", ""


def _toleration(item: Toleration) -> Violations:
    if is_given(item.seconds) and item.effect != "NoExecute":
        yield "seconds", "is given, but only the effect NoExecute takes seconds", "it has no effect"
    if item.operator == "Exists" and is_given(item.value) and item.value != "":
        yield "value", "is given, but the operator Exists takes none", ""
    if item.operator == "Equal" and not is_given(item.value):
        yield "value", "is missing; the operator Equal needs it", ""


def _match_expression(item: MatchExpression) -> Violations:
    values = item.values or ()
    if item.operator in ("In", "NotIn") and not values:
        yield "values", f"is empty; the operator {item.operator} needs at least one", ""
    elif item.operator in ("Exists", "DoesNotExist") and values:
        yield "values", f"is given, but the operator {item.operator} takes none", ""
    elif item.operator in ("Gt", "Lt") and (len(values) != 1 or not values[0].lstrip("-").isdecimal()):
        yield "values", f"must be one whole number with the operator {item.operator}", ""


_RULES: dict[type, Callable[[Any], Violations]] = {
    Variable: _variable,
    Compute: _compute,
    ExtendedResource: _extended_resource,
    Pvc: _pvc,
    EmptyDir: _empty_dir,
    Git: _git,
    HostPath: _host_path,
    DataStorage: _storage,
    Storage: _storage,
    BasicSecurity: _security,
    Security: _security,
    ExposedUrl: _exposed_url,
    Port: _port,
    Toleration: _toleration,
    MatchExpression: _match_expression,
}


def command_violations(spec: msgspec.Struct, path: str) -> list[Violation]:
    """Commands that cannot be split into words."""
    broken = []
    for rest in ("command", "args"):
        text = getattr(spec, rest)
        if isinstance(text, str):
            try:
                split_words(text)
            except ValueError:
                broken.append(Violation(f"{path}.{rest}", "has an unclosed quote; quote it as for a shell"))
    return broken


def priority_violations(spec: Any, path: str) -> list[Violation]:
    """A priority class that does not exist."""
    name = spec.priority_class
    if not is_given(name) or name in PRIORITIES:
        return []
    near = get_close_matches(name, PRIORITIES, 1)
    hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(PRIORITIES)}"
    return [Violation(f"{path}.priorityClass", f"is '{name}', which is not a priority class{hint}")]
