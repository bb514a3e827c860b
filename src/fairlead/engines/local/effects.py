"""What of a pod's fields this engine provides, what is only advice here, and what it must refuse before a start. Pure.

`control` asks at submission: a field of `unsupported` fails the workload before its start, one of `advisory` becomes a
condition. Fields not named here have their effect elsewhere (scheduling, records), or have it on this engine.
"""

from collections.abc import Callable
from typing import Any

from fairlead.model.podset import Container

#: (path of the field, why)
Note = tuple[str, str]

_STORAGE_WHY = "the local engine mounts no volumes yet"
_NETWORK_WHY = "the local engine opens no ports for workloads yet; the process shares this machine's network"
_SECURITY_WHY = "the local engine does not apply it yet, and a weaker setting would result"

#: Security members whose given value asks for nothing beyond what this engine does anyway.
_HARMLESS: dict[str, Callable[[Any], bool]] = {
    "uidGidSource": lambda value: value == "fromTheImage",
    # A pod that would run as root is refused by `orders.py`.
    "runAsNonRoot": lambda value: True,
    "readOnlyRootFilesystem": lambda value: value is False,
    # No new privileges where it is false.
    "allowPrivilegeEscalation": lambda value: True,
    "hostIpc": lambda value: value is False,
    # Plain pods keep the host's network in any case.
    "hostNetwork": lambda value: True,
    "seccompProfileType": lambda value: value == "Unconfined",
    "capabilities": lambda value: not value,
    "supplementalGroups": lambda value: not value,
}
_SHARES = ("gpuPortionRequest", "gpuPortionLimit", "gpuMemoryRequest", "gpuMemoryLimit")


def unsupported(container: Container, may_use_secrets: bool = True) -> tuple[Note, ...]:
    """Fields that this engine cannot provide and may not ignore, each with the reason.

    Secrets may be used where the server is its owner's alone, or where pods are isolated from each other.
    """
    fields = container.fields
    notes: list[Note] = []
    for name, value in (fields.get("storage") or {}).items():
        if value:
            notes.append((f"storage.{name}", _STORAGE_WHY))
    for name, value in (fields.get("security") or {}).items():
        if value is not None and not _HARMLESS.get(name, _never)(value):
            notes.append((f"security.{name}", _SECURITY_WHY))
    notes += [(name, _NETWORK_WHY) for name in ("ports", "exposedUrls") if fields.get(name)]
    if (fields.get("probes") or {}).get("readiness"):
        notes.append(("probes.readiness", "the local engine does not probe pods yet"))
    if not may_use_secrets:
        notes += _secrets(container)
    return tuple(notes)


def _never(value: Any) -> bool:
    return False


def _secrets(container: Container) -> list[Note]:
    notes = []
    for variable in container.environment:
        for kind, source in (("secret", variable.secret), ("userCredential", variable.user_credential)):
            if source is not None:
                why = f"pods are not isolated from each other here, so '{source[0]}' could be read by all of them"
                notes.append((f"environmentVariables[{variable.name}].{kind}", why))
    return notes


def advisory(container: Container) -> tuple[Note, ...]:
    """Fields that are recorded and counted but not enforced on this engine, each with what happens instead."""
    compute = container.fields.get("compute") or {}
    notes: list[Note] = []
    if container.image:
        notes.append(("image", "recorded, not used: the process runs on this machine's own file system"))
    pulling = (name for name in ("imagePullPolicy", "imagePullSecrets") if container.fields.get(name))
    notes += [(name, "no image is pulled on the host runtime") for name in pulling]
    if container.cpu_limit_milli is not None:
        notes.append(("compute.cpuCoreLimit", "the process may use more when this machine is idle"))
    shares = (name for name in _SHARES if compute.get(name))
    notes += [(f"compute.{name}", "the share is told to the process, which must keep to it itself") for name in shares]
    if compute.get("largeShmRequest"):
        notes.append(("compute.largeShmRequest", "shared memory is this machine's own and has its size"))
    return tuple(notes)
