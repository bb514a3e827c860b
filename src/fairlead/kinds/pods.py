"""Build the container and the request of one pod from the fields that all kinds share.

Called by the kinds. If an accepted spec contradicts itself (only the older dialect may), one value wins here, by the
order of the code; `model/spec/rules.py` states the same in words.
"""

from typing import Any

import msgspec

from fairlead.model.command_words import split_words
from fairlead.model.pods.container_fields import ContainerFields
from fairlead.model.pods.podset import EnvironmentVariable, PodContainer, Request
from fairlead.model.quantity import thousandths_of, whole
from fairlead.model.spec.canonical import canonical, items
from fairlead.model.spec.compute import Compute
from fairlead.model.spec.environment import ConfigMapKey, SecretKey, UserCredentialKey, Variable
from fairlead.model.spec.fields import Maybe, is_given, value_or
from fairlead.model.spec.pod_fields import PodFields

MEBIBYTE = 1024 * 1024
#: The default CPU and memory per GPU device of a pod that requests GPUs.
CPU_MILLI_PER_GPU = 100
MEMORY_PER_GPU = 100 * MEBIBYTE
#: The default request without GPUs is the limit divided by this.
REQUEST_PER_LIMIT = 10
MIG_RESOURCE = "nvidia.com/mig-"
#: Members that become parts of `PodContainer` by name, and so are not repeated in its `fields`.
SPELT_OUT = frozenset({"image", "command", "args", "working_dir", "environment_variables"})


def request_of(compute: Maybe[Compute]) -> Request:
    """What one pod asks of its node, defaults applied."""
    if not isinstance(compute, Compute):
        return Request()
    extended = {
        value_or(item.resource, ""): whole(value_or(item.quantity, "1")) for item in items(compute.extended_resources)
    }
    devices, portion, memory = 0, 1000, 0
    if isinstance(compute.mig_profile, str):
        extended[MIG_RESOURCE + compute.mig_profile] = 1
    else:
        devices, portion, memory = _gpus(compute)
    return Request(
        cpu_milli=_request(
            _milli(compute.cpu_core_request), _milli(compute.cpu_core_limit), devices * CPU_MILLI_PER_GPU
        ),
        memory_bytes=_request(
            _bytes(compute.cpu_memory_request), _bytes(compute.cpu_memory_limit), devices * MEMORY_PER_GPU
        ),
        gpu_devices=devices,
        gpu_portion=portion,
        gpu_memory_bytes=memory,
        extended=extended,
    )


def _gpus(compute: Compute) -> tuple[int, int, int]:
    """Devices, thousandths of each, bytes of each: whole devices, a portion or memory, by the request type."""
    if compute.gpu_request_type == "portion":
        devices = value_or(compute.gpu_devices_request, 1)
        portion = thousandths_of(value_or(compute.gpu_portion_request, 0))
        return (devices, portion, 0) if portion and devices else (0, 1000, 0)
    if compute.gpu_request_type == "memory":
        devices = value_or(compute.gpu_devices_request, 1)
        memory = _bytes(compute.gpu_memory_request) or 0
        return (devices, 1000, memory) if memory and devices else (0, 1000, 0)
    return value_or(compute.gpu_devices_request, 0), 1000, 0


def _request(requested: int | None, limit: int | None, for_gpus: int) -> int:
    if requested is not None:
        return requested
    if for_gpus:
        return for_gpus if limit is None else min(for_gpus, limit)
    return -(-limit // REQUEST_PER_LIMIT) if limit is not None else 0


def _milli(cores: Maybe[int | float]) -> int | None:
    return thousandths_of(cores) if is_given(cores) else None


def _bytes(quantity: Maybe[str]) -> int | None:
    return whole(quantity) if is_given(quantity) else None


def container_of(spec: PodFields, without: frozenset[str] = SPELT_OUT, **more: Any) -> PodContainer:
    """The container of one pod. `without` names what stays out of `fields`: `SPELT_OUT` and members of the kind's own;
    `more` goes to `PodContainer` as it is."""
    compute = spec.compute if isinstance(spec.compute, Compute) else Compute()
    return PodContainer(
        image=value_or(spec.image, ""),
        command=split_words(spec.command) if isinstance(spec.command, str) else (),
        args=split_words(spec.args) if isinstance(spec.args, str) else (),
        working_dir=value_or(spec.working_dir, ""),
        environment=tuple(_variable(item) for item in items(spec.environment_variables)),
        cpu_limit_milli=_milli(compute.cpu_core_limit),
        memory_limit_bytes=_bytes(compute.cpu_memory_limit),
        fields=msgspec.convert(_resolved(canonical(spec, without)), ContainerFields),
        **more,
    )


def _variable(item: Variable) -> EnvironmentVariable:
    """The first source wins, in this order; more than one is refused outside the older dialect."""
    name: str = value_or(item.name, "")
    if isinstance(item.value, str):
        return EnvironmentVariable(name=name, value=item.value)
    if is_given(item.secret):
        return EnvironmentVariable(name=name, secret=_reference(item.secret))
    if is_given(item.config_map):
        return EnvironmentVariable(name=name, config_map=_reference(item.config_map))
    if is_given(item.user_credential):
        return EnvironmentVariable(name=name, user_credential=_reference(item.user_credential))
    if is_given(item.pod_field_ref):
        return EnvironmentVariable(name=name, pod_field=value_or(getattr(item.pod_field_ref, "path", None), ""))
    return EnvironmentVariable(name=name, value="")


def _reference(source: SecretKey | ConfigMapKey | UserCredentialKey) -> tuple[str, str]:
    return value_or(source.name, ""), value_or(source.key, "")


def _resolved(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with defaults and contradictions resolved."""
    for url in fields.get("exposedUrls", ()):
        _resolve_authorization(url)
    for toleration in fields.get("tolerations", ()):
        if toleration["effect"] != "NoExecute":
            toleration.pop("seconds", None)
    probe = fields.get("probes", {}).get("readiness")
    if probe is not None:
        get = probe.get("handler", {}).get("httpGet", {})
        get["path"] = "/" + get.get("path", "").removeprefix("/")
    return fields


def _resolve_authorization(url: dict[str, Any]) -> None:
    """Users win over groups, groups over all signed-in users; lists that do not count are removed."""
    if "authorizationType" not in url:
        lists = (name for name in ("authorizedUsers", "authorizedGroups") if url.get(name))
        url["authorizationType"] = next(lists, "authenticatedUsers")
    for name in ("authorizedUsers", "authorizedGroups"):
        if url["authorizationType"] != name:
            url.pop(name, None)
