"""Compute fields on the local engine."""

from fairlead.engines.declared.effect import Effect, seen

_TESTS = "e2e/test_fields_compute.py::test_"
_TOLD = "the share of a device is told to the process, which keeps to it itself"


def _seen(host: str, name: str, *, unless: str = "", container: str = "") -> Effect:
    return seen(host, _TESTS + name, unless=unless, container=container)


EFFECTS: dict[str, Effect] = {
    "compute.cpuCoreRequest": _seen("kept free on the node; the pod waits for it", "cpu_core_request"),
    "compute.cpuCoreLimit": _seen(
        "no more CPU time, by control group",
        "cpu_core_limit",
        unless="without writable control groups: kept to whole cores, at a lower priority below one",
        container="no more CPU time, by the runtime",
    ),
    "compute.cpuMemoryRequest": _seen("kept free on the node; the pod waits for it", "cpu_memory_request"),
    "compute.cpuMemoryLimit": _seen(
        "over it, OOMKilled, by control group",
        "cpu_memory_limit",
        unless="without writable control groups: looked at four times a second",
        container="over it, OOMKilled, by the runtime",
    ),
    "compute.gpuDevicesRequest": _seen("devices of its own, named to the process", "gpu_devices_request"),
    "compute.gpuRequestType": _seen("a share by portion or by memory", "gpu_request_type"),
    "compute.gpuPortionRequest": _seen(
        "counted on the device; told to the process", "gpu_portion_request", unless=_TOLD
    ),
    "compute.gpuPortionLimit": _seen("told to the process, in bytes", "gpu_portion_limit", unless=_TOLD),
    "compute.gpuMemoryRequest": _seen("counted on the device; told to the process", "gpu_memory_request", unless=_TOLD),
    "compute.gpuMemoryLimit": _seen("told to the process", "gpu_memory_limit", unless=_TOLD),
    "compute.migProfile": _seen("asks for the extended resource of that slice", "mig_profile"),
    "compute.largeShmRequest": seen(
        "shared memory without the small bound of 64 MB",
        "contract/test_local_volumes.py::test_shared_memory_is_small_unless_asked_for",
        unless="in personal mode it is the machine's own",
    ),
    "compute.extendedResources[].resource": _seen("as nodes declare it; the pod waits for it", "extended_resources"),
    "compute.extendedResources[].quantity": _seen("so much of it is kept free", "extended_resources"),
}
