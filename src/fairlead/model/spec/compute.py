"""What a pod requests of its node: CPU, memory, GPUs, extended resources. Read by kinds, counted by scheduling."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from fairlead.model.spec.fields import (
    QUANTITY_RULE,
    Count32,
    ExcludeItemUnset,
    FieldInfo,
    FlagDeclaration,
    Maybe,
    Number,
    QuantityText,
    SizeText,
    Spec,
    Text253,
)
from fairlead.model.syntax import Syntax

GpuRequestType = Literal["portion", "memory"]
_EXTENDED_QUANTITY = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        pattern=r"^([+]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)\Z",
        extra_json_schema={"pattern": "^([+]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"},
        extra={"quantity": 1, "rule": QUANTITY_RULE},
    ),
]


class ExtendedResource(Spec, frozen=True, kw_only=True):
    resource: Annotated[
        Maybe[Text253],
        FieldInfo(
            text="The name of the resource, as nodes declare it.",
            mandatory=True,
            yaml="name",
            part="resource",
            syntax=Syntax.RESOURCE_NAME,
        ),
    ] = UNSET
    quantity: Annotated[
        Maybe[_EXTENDED_QUANTITY],
        FieldInfo(text="The amount, a whole number.", default="1", origin="ours", yaml="quantity", part="quantity"),
    ] = UNSET
    exclude: ExcludeItemUnset = UNSET


class Compute(Spec, frozen=True, kw_only=True):
    cpu_core_request: Annotated[
        Maybe[Number],
        FieldInfo(
            text="CPU cores that are guaranteed to the pod; it waits until a node has them free.",
            is_common=True,
            unit="cores",
            default_text="a tenth of the limit; 0.1 per GPU device if GPUs are requested; otherwise none",
            yaml="cpu",
            flags=(FlagDeclaration(name="--cpu-core-request", aliases=("--cpu",)),),
        ),
    ] = UNSET
    cpu_core_limit: Annotated[
        Maybe[Number],
        FieldInfo(
            text="The maximum number of CPU cores that the pod can use; at least the request.",
            unit="cores",
            default_text="no limit",
            yaml="cpuLimit",
            flags=(FlagDeclaration(name="--cpu-core-limit"),),
        ),
    ] = UNSET
    cpu_memory_request: Annotated[
        Maybe[QuantityText],
        FieldInfo(
            text="Memory that is guaranteed to the pod; it waits until a node has it free.",
            is_common=True,
            unit="bytes, as a quantity such as 20M or 1Gi",
            default_text="a tenth of the limit; 100Mi per GPU device if GPUs are requested; otherwise none",
            yaml="memory",
            flags=(FlagDeclaration(name="--cpu-memory-request", aliases=("--memory",)),),
        ),
    ] = UNSET
    cpu_memory_limit: Annotated[
        Maybe[QuantityText],
        FieldInfo(
            text="The maximum memory that the pod can use: a process that exceeds it is killed. At least the request.",
            unit="bytes, as a quantity such as 20M or 1Gi",
            default_text="no limit",
            yaml="memoryLimit",
            flags=(FlagDeclaration(name="--cpu-memory-limit"),),
        ),
    ] = UNSET
    gpu_devices_request: Annotated[
        Maybe[Count32],
        FieldInfo(
            text="The number of GPU devices on one node; with a portion or memory request, that share of each device.",
            is_common=True,
            default_text="1 with a portion or memory request, otherwise none",
            yaml="gpuDevices",
            flags=(FlagDeclaration(name="--gpu-devices-request", short="-g", aliases=("--gpu",)),),
        ),
    ] = UNSET
    gpu_request_type: Annotated[
        Maybe[GpuRequestType],
        FieldInfo(
            text="Whether a share of a GPU is requested as a portion of the device or as memory.",
            default_text="whole devices",
            flags=(FlagDeclaration(name="--gpu-request-type"),),
        ),
    ] = UNSET
    gpu_portion_request: Annotated[
        Maybe[Number],
        FieldInfo(
            text="The portion of each device, above 0 and at most 1. Given if and only if the request type is portion.",
            unit="devices",
            yaml="gpu",
            flags=(FlagDeclaration(name="--gpu-portion-request"),),
        ),
    ] = UNSET
    gpu_portion_limit: Annotated[
        Maybe[Number],
        FieldInfo(
            text="The portion of each device that the pod may use while it is free; at least the request.",
            unit="devices",
            default_text="the request",
            yaml="gpuLimit",
            flags=(FlagDeclaration(name="--gpu-portion-limit"),),
        ),
    ] = UNSET
    gpu_memory_request: Annotated[
        Maybe[SizeText],
        FieldInfo(
            text="The memory of each device. Given if and only if the request type is memory.",
            unit="bytes, as a quantity such as 20M or 1Gi",
            yaml="gpuMemory",
            flags=(FlagDeclaration(name="--gpu-memory-request"),),
        ),
    ] = UNSET
    gpu_memory_limit: Annotated[
        Maybe[QuantityText],
        FieldInfo(
            text="The memory of each device that the pod may use while it is free; at least the request.",
            unit="bytes, as a quantity such as 20M or 1Gi",
            default_text="the request",
            yaml="gpuMemoryLimit",
            flags=(FlagDeclaration(name="--gpu-memory-limit"),),
        ),
    ] = UNSET
    mig_profile: Annotated[
        Maybe[Text253],
        FieldInfo(
            text="A MIG slice such as 1g.5gb: requests one extended resource nvidia.com/mig-<profile>.",
            yaml="migProfile",
            syntax=Syntax.MIG_PROFILE,
            flags=(FlagDeclaration(name="--mig-profile"),),
            surface="older",
        ),
    ] = UNSET
    large_shm_request: Annotated[
        Maybe[bool],
        FieldInfo(
            text="Mounts a large shared-memory file system at /dev/shm.",
            default_text="64 MB, the default of container runtimes",
            yaml="largeShm",
            flags=(FlagDeclaration(name="--large-shm"),),
        ),
    ] = UNSET
    extended_resources: Annotated[
        Maybe[Annotated[tuple[ExtendedResource | None, ...], Meta(max_length=1000)]],
        FieldInfo(
            text="Resources that nodes declare beyond CPU, memory and GPUs.",
            key="resource",
            yaml="extendedResources",
            flags=(
                FlagDeclaration(name="--extended-resource", form="pair", pair=("resource", "quantity")),
                FlagDeclaration(name="--extended-resource-item", form="item"),
            ),
        ),
    ] = UNSET
