"""Requested and allocated resources of workloads, revisions and pods, as their views show them. Nothing here reads."""

import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from fairlead.api.http.shapes import Shape
from fairlead.model.pods.podset import EnvironmentVariable, PodSet, Request
from fairlead.model.records.workload import Pod


class RequestedCores(Shape):
    request: float | None
    limit: float | None = None


class RequestedMemory(Shape):
    request: str | None
    limit: str | None = None


class ExtendedResourceView(Shape):
    resource: str
    quantity: str


class RequestedResources(Shape):
    cpu: RequestedCores
    cpu_memory: RequestedMemory
    gpu: RequestedCores
    gpu_memory: RequestedMemory | UnsetType = UNSET
    gpu_request_type: Literal["portion", "memory"] | None = None
    extended_resources: tuple[ExtendedResourceView, ...] = ()


class AllocatedResourcesView(Shape):
    gpu: float
    cpu: float
    cpu_memory: str


class RequestedPods(Shape):
    number: int
    #: The bounds within which their number follows the load.
    min: int | None = None
    max: int | None = None
    parallelism: int | None = None
    completions: int | None = None


def render_asked(podsets: Sequence[PodSet], *, shows_process: bool = True) -> dict[str, Any]:
    """What the spec requests: pods, resources of one pod and of all pods that run at once, image and command.

    Command, arguments and variables are left out for callers who may list the workload but not read its spec.
    """
    first = podsets[0]
    number = sum(podset.total for podset in podsets)
    completions = [podset.completions for podset in podsets if podset.completions is not None]
    container = first.container
    return {
        "requested_pods": RequestedPods(
            number=number,
            min=first.scaling.min_pods if first.scaling else None,
            max=first.scaling.max_pods if first.scaling else None,
            parallelism=number,
            completions=sum(completions) if completions else None,
        ),
        "pods_requested_resources": render_requested(first),
        "workload_requested_resources": _requested_together(podsets),
        "images": tuple(dict.fromkeys(podset.container.image for podset in podsets)),
        "command": shlex.join(container.command) if container.command and shows_process else UNSET,
        "arguments": shlex.join(container.args) if container.args and shows_process else UNSET,
        "environment_variables": _values(container.environment) if shows_process else UNSET,
    }


def _values(environment: Iterable[EnvironmentVariable]) -> dict[str, str]:
    return {variable.name: variable.value for variable in environment if variable.value is not None}


def _gpus(request: Request) -> float:
    return request.gpu_devices * request.gpu_portion / 1000


def render_requested(podset: PodSet) -> RequestedResources:
    request, container = podset.request, podset.container
    kind: Literal["portion", "memory"] | None = None
    if request.gpu_memory_bytes:
        kind = "memory"
    elif request.gpu_devices:
        kind = "portion"
    limit, memory_limit = container.cpu_limit_milli, container.memory_limit_bytes
    return RequestedResources(
        cpu=RequestedCores(request=request.cpu_milli / 1000, limit=None if limit is None else limit / 1000),
        cpu_memory=RequestedMemory(
            request=str(request.memory_bytes), limit=None if memory_limit is None else str(memory_limit)
        ),
        gpu=RequestedCores(request=_gpus(request)),
        gpu_memory=RequestedMemory(request=str(request.gpu_memory_bytes)) if kind == "memory" else UNSET,
        gpu_request_type=kind,
        extended_resources=tuple(
            ExtendedResourceView(resource=name, quantity=str(amount)) for name, amount in request.extended.items()
        ),
    )


def _requested_together(podsets: Iterable[PodSet]) -> RequestedResources:
    cpu = memory = gpu_memory = 0
    gpus = 0.0
    extended: dict[str, int] = {}
    for podset in podsets:
        cpu += podset.request.cpu_milli * podset.total
        memory += podset.request.memory_bytes * podset.total
        gpus += _gpus(podset.request) * podset.total
        gpu_memory += podset.request.gpu_memory_bytes * podset.total
        for name, amount in podset.request.extended.items():
            extended[name] = extended.get(name, 0) + amount * podset.total
    return RequestedResources(
        cpu=RequestedCores(request=cpu / 1000),
        cpu_memory=RequestedMemory(request=str(memory)),
        gpu=RequestedCores(request=gpus),
        gpu_memory=RequestedMemory(request=str(gpu_memory)) if gpu_memory else UNSET,
        extended_resources=tuple(
            ExtendedResourceView(resource=name, quantity=str(amount)) for name, amount in extended.items()
        ),
    )


def render_allocated(pods: Sequence[Pod]) -> AllocatedResourcesView:
    return AllocatedResourcesView(
        gpu=sum(pod.gpu_thousandths * max(1, len(pod.gpu_devices)) for pod in pods) / 1000,
        cpu=sum(pod.cpu_milli for pod in pods) / 1000,
        cpu_memory=str(sum(pod.memory_bytes for pod in pods)),
    )
