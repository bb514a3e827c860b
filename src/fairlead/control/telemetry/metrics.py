"""Metrics of workloads, pods and nodes over time and now, by their names in the interface.

Called by the API. Requests and allocations come from the records of pods, usage from `usage_samples.py`. A metric that
is not measured here has no values, and the response says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import msgspec

from fairlead.control.context import Context
from fairlead.control.decide.expand import base_role, expand_spec
from fairlead.control.lists import normal_id
from fairlead.control.usage_samples import Series, UsageSampler
from fairlead.control.workloads.sessions import holder_error
from fairlead.model.clock import Millis
from fairlead.model.errors import ComplianceIssue, Invalid, NotFound
from fairlead.model.pods.podset import PodSet
from fairlead.model.records.organization import Node
from fairlead.model.records.workload import Pod, Workload
from fairlead.model.resource_usage import node_key
from fairlead.store.base import Comparison, Query, Where
from fairlead.store.collections import PODS

_MEBIBYTE = 1024 * 1024
Combine = Callable[[Sequence[float]], float]
#: The maximum number of pods that are read for one request.
_MAX_PODS = 10_000


class Span(msgspec.Struct, frozen=True):
    """A time range, and the number of samples in it."""

    start: Millis
    end: Millis
    samples: int

    def times(self, now: Millis) -> list[Millis]:
        """Evenly spaced, none in the future."""
        step = (self.end - self.start) / max(self.samples - 1, 1)
        times = (self.start + round(step * number) for number in range(self.samples))
        return [time for time in times if time <= now]


class Measurement(msgspec.Struct, frozen=True):
    type: str
    values: tuple[tuple[Millis, float], ...] = ()
    labels: dict[str, str] | None = None
    #: False if it is not measured here.
    is_known: bool = True
    #: (key, value) of its group, if metrics were requested by groups.
    group: tuple[str, str] | None = None

    def within(self, group: tuple[str, str]) -> "Measurement":
        return Measurement(self.type, self.values, self.labels, self.is_known, group)


def check_span(span: Span) -> Span:
    if span.end < span.start:
        raise Invalid(
            "The query parameter end must not be before start", (ComplianceIssue("end", "must not be before start"),)
        )
    return span


async def take_usage_samples(context: Context) -> UsageSampler:
    """The usage history, with a sample of now; raises Elsewhere on a server that runs no machine."""
    usage_samples = context.all_clusters.usage_samples
    if usage_samples is None:
        raise await holder_error(context)
    await usage_samples.sample()
    return usage_samples


async def load_pod(context: Context, workload: Workload, pod_id: str) -> Pod:
    """A pod of the workload, ended or not. The caller of this function has checked access."""
    pod: Pod | None = await context.store.get(PODS, normal_id(pod_id, "pod"))
    if pod is None or pod.workload_id != workload.id:
        raise NotFound(f"Workload {workload.name} has no pod with the id {pod_id}")
    return pod


async def load_pods_within(context: Context, workload: Workload, span: Span) -> list[Pod]:
    where = (Where("workload_id", Comparison.EQUAL, workload.id), Where("created_at", Comparison.AT_MOST, span.end))
    query = Query(collection=PODS, where=where, order=(("created_at", True),), limit=_MAX_PODS)
    pods: list[Pod] = await context.store.find(query)
    return [pod for pod in pods if pod.completed_at is None or pod.completed_at >= span.start]


#: What one pod adds to a metric of its workload, from its record and its pod set.
_ALLOCATED: dict[str, Callable[[Pod, PodSet | None], float]] = {
    "POD_COUNT": lambda pod, podset: 1.0,
    "GPU_ALLOCATION": lambda pod, podset: len(pod.gpu_devices) * pod.gpu_thousandths / 1000,
    "CPU_REQUEST_CORES": lambda pod, podset: pod.cpu_milli / 1000,
    "CPU_MEMORY_REQUEST_BYTES": lambda pod, podset: float(pod.memory_bytes),
    "CPU_LIMIT_CORES": lambda pod, podset: (podset.container.cpu_limit_milli or 0) / 1000 if podset else 0.0,
    "CPU_MEMORY_LIMIT_BYTES": lambda pod, podset: float(podset.container.memory_limit_bytes or 0) if podset else 0.0,
    "GPU_MEMORY_REQUEST_BYTES": lambda pod, podset: (
        float(podset.request.gpu_memory_bytes * podset.request.gpu_devices) if podset else 0.0
    ),
}
#: Usage at a time.
_USED: dict[str, Callable[[Series, Millis], float | None]] = {
    "CPU_USAGE_CORES": Series.cores,
    "CPU_MEMORY_USAGE_BYTES": Series.memory,
}
#: The use of GPUs at a time, of each pod, and what it amounts to for several.
_GPUS: dict[str, tuple[Callable[[Series, Millis], float | None], Combine]] = {
    "GPU_UTILIZATION": (Series.gpu_percent, fmean),
    "GPU_MEMORY_USAGE_BYTES": (Series.gpu_memory, sum),
}
_ANSWERED: dict[str, Callable[[Series, Millis], float | None]] = {
    "THROUGHPUT": Series.throughput,
    "LATENCY": Series.latency,
}


def measure_workload(
    workload: Workload, pods: Sequence[Pod], types: Iterable[str], times: Sequence[Millis], usage_samples: UsageSampler
) -> list[Measurement]:
    """The metrics of a workload: sums over its pods."""
    sets = {podset.role: podset for podset in expand_spec(workload.kind, bytes(workload.spec)).podsets}
    measurements = []
    for type in types:
        if type == "RUNNING_POD_COUNT":
            measurements.append(
                Measurement(type, tuple((at, float(sum(_runs(pod, at) for pod in pods))) for at in times))
            )
        elif figure := _ALLOCATED.get(type):
            sums = (
                (at, sum(figure(pod, sets.get(base_role(pod.role))) for pod in pods if pod.exists_at(at)))
                for at in times
            )
            measurements.append(Measurement(type, tuple(sums)))
        elif used := _USED.get(type):
            series = [usage_samples.of(pod.id) for pod in pods]
            measurements.append(Measurement(type, _combined(series, used, times)))
        else:
            measurements.append(_measure_gpus([pod.id for pod in pods], type, times, usage_samples))
    return measurements


def _measure_gpus(ids: Sequence[str], type: str, times: Sequence[Millis], usage_samples: UsageSampler) -> Measurement:
    """The use of the GPUs of these pods; not known for other metrics, or where it is not measured."""
    if type not in _GPUS or not usage_samples.measures_gpus:
        return Measurement(type, is_known=False)
    take, combine = _GPUS[type]
    return Measurement(type, _combined([usage_samples.of(id) for id in ids], take, times, combine))


def measure_used(
    id: str, types: Iterable[str], times: Sequence[Millis], usage_samples: UsageSampler
) -> list[Measurement]:
    """The measured metrics of one pod or service."""
    known = _USED | _ANSWERED
    series = [usage_samples.of(id)]
    return [
        Measurement(type, _combined(series, known[type], times))
        if type in known
        else _measure_gpus([id], type, times, usage_samples)
        for type in types
    ]


def _runs(pod: Pod, at: Millis) -> bool:
    return pod.started_at is not None and pod.started_at <= at and pod.exists_at(at)


def _combined(
    series: Sequence[Series],
    take: Callable[[Series, Millis], float | None],
    times: Sequence[Millis],
    combine: Combine = sum,
) -> tuple[tuple[Millis, float], ...]:
    """The sum over all series with a value, or another figure, for each time; times without a value are left out."""
    figures = []
    for at in times:
        values = [value for each in series if (value := take(each, at)) is not None]
        if values:
            figures.append((at, combine(values)))
    return tuple(figures)


def measure_node(
    node: Node, pods: Sequence[Pod], types: Iterable[str], times: Sequence[Millis], usage_samples: UsageSampler
) -> list[Measurement]:
    """Of a node: the machine's own figures, or of a declared one those of its pods; devices one by one."""
    is_machine = not node.declared
    series = [usage_samples.of(node_key(node.name))] if is_machine else [usage_samples.of(pod.id) for pod in pods]
    sizes: Mapping[str, tuple[str, float]] = {
        "CPU_UTILIZATION": ("CPU_USAGE_CORES", node.cpu_milli / 1000),
        "CPU_MEMORY_UTILIZATION": ("CPU_MEMORY_USAGE_BYTES", float(node.memory_bytes)),
    }
    measurements: list[Measurement] = []
    for type in types:
        if type in ("GPU_ALLOCATION_PER_GPU", "GPU_MEMORY_ALLOCATION_BYTES_PER_GPU"):
            measurements += _per_device(node, pods, type, times)
            continue
        plain, whole = sizes.get(type, (type, 1.0))
        if plain not in _USED:
            measurements.append(Measurement(type, is_known=False))
            continue
        values = _combined(series, _USED[plain], times)
        share = 100.0 / whole if type in sizes and whole else 1.0
        measurements.append(Measurement(type, tuple((at, value * share) for at, value in values)))
    return measurements


def _per_device(node: Node, pods: Sequence[Pod], type: str, times: Sequence[Millis]) -> list[Measurement]:
    measurements = []
    for device in node.gpus:
        whole = 1.0 if type == "GPU_ALLOCATION_PER_GPU" else float(device.memory_mib * _MEBIBYTE)
        holders = [pod for pod in pods if device.index in pod.gpu_devices]
        shares = ((at, sum(pod.gpu_thousandths for pod in holders if pod.exists_at(at))) for at in times)
        values = tuple((at, whole * share / 1000) for at, share in shares)
        measurements.append(Measurement(type, values, {"gpu": str(device.index)}))
    return measurements


async def load_node_pods(context: Context, node: Node, span: Span) -> list[Pod]:
    where = (Where("node", Comparison.EQUAL, node.name), Where("created_at", Comparison.AT_MOST, span.end))
    query = Query(collection=PODS, where=where, order=(("created_at", True),), limit=_MAX_PODS)
    pods: list[Pod] = await context.store.find(query)
    return [pod for pod in pods if pod.completed_at is None or pod.completed_at >= span.start]
