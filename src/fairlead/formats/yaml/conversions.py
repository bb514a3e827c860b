"""The few YAML fields that are not one field of REST: for each group a reader and a writer.

The reader of workload YAML calls `READERS` with the given values, the writer calls `WRITERS` with the REST spec. They
see plain values only; the tests have a round trip for every pair.
"""

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import UNSET

from fairlead.formats.losses import Source
from fairlead.formats.plain import Plain
from fairlead.model.spec.lifecycle import AUTO_DELETION_SECONDS

SECRET = "SECRET:"  # noqa: S105 - the prefix of a reference to a secret
DEFAULT_SERVICE = "ClusterIP"
_RULES = {"hard": "Required", "soft": "Preferred"}
_PROPAGATION = "HostToContainer"
_DEFAULT_CLASS = "default"
#: What Kubernetes can probe with, and REST cannot.
_OTHER_HANDLERS = {"exec", "grpc", "tcpSocket"}
_GROUPS = "security.supplementalGroups"
#: For kubectl, unset means something else, so our default is written out.
_WRITTEN_OUT = {"autoDeletionTimeAfterCompletionSeconds": AUTO_DELETION_SECONDS}
#: The pod affinity of a kind that has podAffinity and nothing more specific.
_NEAR = {"type": "Preferred", "key": "kubernetes.io/hostname"}


class Reading(Protocol):
    """What a reader can do while a document is read."""

    #: The given values, by YAML name.
    given: Plain
    #: The letter of the kind.
    letter: str

    def put(self, path: str, value: object, name: str) -> None:
        """Set a member of the REST spec that comes from the YAML field `name`."""
        ...

    def get(self, path: str) -> Any:
        """A member of the REST spec as read so far, or None."""
        ...

    def move_item(self, path: str, number: int, place: str, item: Plain) -> None:
        """Remove an item from a list; its content is elsewhere from now on."""
        ...

    def wrong(self, name: str, details: str) -> None:
        """Refuse a field."""
        ...

    def remark(self, name: str, details: str) -> None:
        """Accept a field, and note what was done instead."""
        ...


Put = Callable[[str, Any], None]


def _read_gpu(reading: Reading) -> None:
    given = reading.given
    gpu, limit = given.get("gpu"), given.get("gpuLimit")
    if gpu is not None:
        if 0 < gpu < 1:
            reading.put("compute.gpuPortionRequest", gpu, "gpu")
        elif gpu < 0 or gpu != int(gpu):
            reading.wrong(
                "gpu", f"is {gpu}; it must be a fraction of a device between 0 and 1, or a whole number of devices"
            )
        elif given.get("gpuDevices", gpu) != gpu:
            reading.wrong("gpu", f"is {gpu} devices, and gpuDevices is {given['gpuDevices']}; remove one of them")
        else:
            reading.put("compute.gpuDevicesRequest", int(gpu), "gpu")
    if isinstance(limit, str):
        if "gpuMemoryLimit" in given:
            reading.wrong("gpuLimit", "is an amount of memory, and gpuMemoryLimit is given too; remove one of them")
        else:
            reading.put("compute.gpuMemoryLimit", limit, "gpuLimit")
    elif limit is not None:
        reading.put("compute.gpuPortionLimit", limit, "gpuLimit")
    if reading.get("compute.gpuPortionRequest") is not None:
        reading.put("compute.gpuRequestType", "portion", "gpu")
    elif reading.get("compute.gpuMemoryRequest") is not None:
        reading.put("compute.gpuRequestType", "memory", "gpuMemory")


def _write_gpu(source: Source, put: Put) -> None:
    portion = source.peek("compute.gpuPortionRequest")
    if portion is not UNSET and 0 < portion < 1:
        put("gpu", source.take("compute.gpuPortionRequest"))
        _write_request_type(source, "portion")
    elif portion is not UNSET:
        source.lose("compute.gpuPortionRequest", "1 or more means whole devices in workload YAML")
    limit = source.take("compute.gpuPortionLimit")
    if limit is not UNSET:
        put("gpuLimit", limit)
    memory = source.take("compute.gpuMemoryRequest")
    if memory is not UNSET:
        put("gpuMemory", memory)
        if portion is UNSET or not 0 < portion < 1:
            _write_request_type(source, "memory")


def _write_request_type(source: Source, kind: str) -> None:
    path = "compute.gpuRequestType"
    if source.peek(path) == kind:
        source.take(path)
    else:
        source.lose(path, f"follows from what is requested, and is {kind}", kind)


def _read_identity(reading: Reading) -> None:
    """Ids have an effect only with runAsUser; without ids it means the user of the identity token."""
    wanted = reading.given.get("runAsUser")
    ids = [name for name in ("runAsUid", "runAsGid") if name in reading.given]
    if wanted is True:
        for name in ids:
            reading.put(f"security.{name}", reading.given[name], name)
        reading.put("security.uidGidSource", "custom" if ids else "fromIdpToken", "runAsUser")
        return
    for name in ids:
        reading.remark(name, "has no effect without runAsUser: {value: true}; the image's own user is used")
    if wanted is False:
        reading.put("security.uidGidSource", "fromTheImage", "runAsUser")


def _write_identity(source: Source, put: Put) -> None:
    origin = source.peek("security.uidGidSource")
    ids = [name for name in ("runAsUid", "runAsGid") if source.peek(f"security.{name}") is not UNSET]
    if origin == "custom" and ids:
        put("runAsUser", True)
        for name in ids:
            put(name, source.take(f"security.{name}"))
    elif origin in ("fromIdpToken", "fromTheImage"):
        put("runAsUser", origin == "fromIdpToken")
    else:
        return
    source.take("security.uidGidSource")


def _read_affinity(reading: Reading) -> None:
    given = reading.given
    if given.get("podAffinity") is not True:
        for name in ("podAffinitySchedulingRule", "podAffinityTopology"):
            if name in given:
                reading.wrong(name, "has an effect only with podAffinity: {value: true}")
        return
    rule, topology = given.get("podAffinitySchedulingRule"), given.get("podAffinityTopology")
    reading.put("podAffinity", dict(_NEAR) if reading.letter == "D" else {}, "podAffinity")
    if rule is not None:
        reading.put("podAffinity.type", _RULES[rule], "podAffinitySchedulingRule")
    if topology is not None:
        reading.put("podAffinity.key", topology, "podAffinityTopology")


def _write_affinity(source: Source, put: Put) -> None:
    rule, topology = source.take("podAffinity.type"), source.take("podAffinity.key")
    if rule is UNSET and topology is UNSET:
        return
    put("podAffinity", True)
    if rule is not UNSET:
        put("podAffinitySchedulingRule", next(word for word, name in _RULES.items() if name == rule))
    if topology is not UNSET:
        put("podAffinityTopology", topology)


def _read_defaults_of_items(reading: Reading) -> None:
    service = reading.given.get("serviceType", DEFAULT_SERVICE)
    for port in reading.get("ports") or ():
        port.setdefault("serviceType", service)
    propagation = reading.given.get("mountPropagation")
    for volume in reading.get("storage.hostPath") or ():
        if propagation is not None:
            volume.setdefault("mountPropagation", _PROPAGATION if propagation else "None")


def _read_claims(reading: Reading) -> None:
    """The reference writes `default` for the default storage class."""
    for claim in reading.get("storage.pvc") or ():
        info = claim.get("claimInfo", {})
        if info.get("storageClass") == _DEFAULT_CLASS:
            del info["storageClass"]
            if not info:
                del claim["claimInfo"]


def _write_claims(source: Source, put: Put) -> None:
    for number, _ in source.items("storage.pvc"):
        path = f"storage.pvc[{number}].claimInfo.storageClass"
        if source.peek(path) == _DEFAULT_CLASS:
            source.lose(path, "default means the default storage class")


def _read_groups(reading: Reading) -> None:
    """One page of the reference separates groups by semicolons, the other page and REST by commas."""
    groups = reading.get(_GROUPS)
    if isinstance(groups, str) and ";" in groups:
        reading.put(_GROUPS, groups.replace(";", ","), "supplementalGroups")


def _write_groups(source: Source, put: Put) -> None:
    groups = source.peek(_GROUPS)
    if groups is not UNSET and ";" in groups:
        put("supplementalGroups", groups.replace(";", ","))
        source.lose(_GROUPS, "is written with commas", groups.replace(";", ","))


def _read_node_pool(reading: Reading) -> None:
    pool = reading.given.get("nodePool")
    if pool is None:
        return
    if reading.get("nodePools") is not None:
        reading.wrong("nodePool", "is given together with nodePools; use nodePools alone")
    else:
        reading.put("nodePools", [pool], "nodePool")


def _read_probe(reading: Reading) -> None:
    """A Kubernetes probe has the members of its handler beside the times; REST has them below `handler`."""
    probe = reading.given.get("readinessProbe")
    if probe is None:
        return
    times = dict(probe)
    for handler_name in _OTHER_HANDLERS & times.keys():
        reading.wrong("readinessProbe", f"has {handler_name}; only httpGet is supported")
    handler = {"httpGet": _texts(times.pop("httpGet"))} if "httpGet" in times else {}
    reading.put("probes.readiness", {**times, "handler": handler}, "readinessProbe")


def _texts(get: object) -> Any:
    """A path or host that consists of digits was read as a number; make it a text."""
    if not isinstance(get, dict):
        return get
    is_number = {name: isinstance(get.get(name), int | float) for name in ("path", "host")}
    return get | {name: str(get[name]) for name, wrong in is_number.items() if wrong}


def _write_probe(source: Source, put: Put) -> None:
    root = "probes.readiness."
    handler = f"{root}handler."
    probe: Plain = {}
    for path in [path for path in source.left if path.startswith(root)]:
        inner = path.removeprefix(handler) if path.startswith(handler) else path.removeprefix(root)
        first, _, second = inner.partition(".")
        if source.peek(path) in (UNSET, {}):
            continue
        if second:
            probe.setdefault(first, {})[second] = source.take(path)
        else:
            probe[first] = source.take(path)
    if probe:
        put("readinessProbe", probe)
        if "httpGet" not in probe:
            source.lose("probes.readiness.handler", "is empty if nothing is set", {})


def _write_out(source: Source, put: Put) -> None:
    for path, value in _WRITTEN_OUT.items():
        if source.peek(path) is UNSET:
            put(path, value)
            source.lose(path, "unset means never for kubectl, so the default of 30 days is written out", value)


READERS: tuple[Callable[[Reading], None], ...] = (
    _read_gpu,
    _read_identity,
    _read_affinity,
    _read_defaults_of_items,
    _read_claims,
    _read_groups,
    _read_node_pool,
    _read_probe,
)
#: Each with the fields that it writes; it is not used for a kind that lacks one of them.
WRITERS: tuple[tuple[tuple[str, ...], Callable[[Source, Put], None]], ...] = (
    (("gpu", "gpuLimit", "gpuMemory"), _write_gpu),
    (("runAsUser", "runAsUid", "runAsGid"), _write_identity),
    (("podAffinity", "podAffinitySchedulingRule", "podAffinityTopology"), _write_affinity),
    (("pvcs",), _write_claims),
    (("supplementalGroups",), _write_groups),
    (("readinessProbe",), _write_probe),
    (tuple(_WRITTEN_OUT), _write_out),
)


def read_variable(name: str, text: str) -> Plain:
    """An environment variable; `SECRET:name,key` refers to a secret. ValueError if the reference is not valid."""
    if not text.startswith(SECRET):
        return {"name": name, "value": text}
    secret, _, key = text.removeprefix(SECRET).partition(",")
    if not secret or not key:
        raise ValueError(f"is '{text[:80]}'; write a reference to a secret as {SECRET}name,key")
    return {"name": name, "secret": {"name": secret, "key": key}}


def render_variable(item: Plain) -> tuple[str, tuple[str, ...]] | None:
    """The text of a variable and the members that it contains; None if no text can express it."""
    value, secret = item.get("value"), item.get("secret")
    if isinstance(value, str):
        return None if value.startswith(SECRET) else (value, ("value",))
    if isinstance(secret, dict):
        name, key = secret.get("name"), secret.get("key")
        if name and key and "," not in name:
            return f"{SECRET}{name},{key}", ("secret.name", "secret.key")
    return None


def drop_authorization_type(source: Source, here: str) -> bool:
    """Keep only the list that says who can open a URL; False if that would open it to others.

    REST has an authorizationType next to the lists, workload YAML has only the lists.
    """
    kind = source.peek(f"{here}.authorizationType")
    lists = ("authorizedUsers", "authorizedGroups")
    if kind is UNSET:
        return True
    if kind in lists and not source.peek(f"{here}.{kind}"):
        return False
    for name in lists:
        if name != kind and source.peek(f"{here}.{name}"):
            source.lose(f"{here}.{name}", f"has no effect with the authorization type {kind}")
    source.lose(f"{here}.authorizationType", "follows from the list that is given")
    return True
