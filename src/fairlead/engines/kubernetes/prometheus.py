"""What pods use, as Prometheus knows it: processors and memory from the kubelets, GPUs from NVIDIA's DCGM exporter.

Called from a thread by telemetry, through the engine. One request for each of the three queries; an answer that does
not come is reported as an OSError.
"""

import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from math import nan
from statistics import fmean

import msgspec

from fairlead.model.resource_usage import MeasuredUsage

_SECONDS = 5.0
_MEBIBYTE = 1024 * 1024
_BY_POD = "sum by (namespace, pod) ({}{{container!=''}})"
_CPU, _MEMORY = (
    _BY_POD.format(name) for name in ("container_cpu_usage_seconds_total", "container_memory_working_set_bytes")
)
#: In percent; the part of the time in which a MIG slice was busy, which has no percentage; the memory in MiB.
_BUSY, _ACTIVE, _USED = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED"
_GPUS = f'{{__name__=~"{_BUSY}|{_ACTIVE}|{_USED}"}}'

#: A pod by its namespace and name.
PodKey = tuple[str, str]


class _Sample(msgspec.Struct):
    metric: dict[str, str] = {}
    #: The time, and the value as text.
    value: tuple[float, str] = (0.0, "NaN")

    @property
    def pod(self) -> PodKey:
        """The exporter's own pod has these names, if Prometheus keeps its labels apart from those of the series."""
        labels = self.metric
        name = labels.get("exported_pod", labels.get("pod", ""))
        return labels.get("exported_namespace", labels.get("namespace", "")), name


class _Data(msgspec.Struct):
    result: list[_Sample] = []


class _Answer(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class Prometheus:
    def __init__(self, url: str, at: float | None = None) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        #: The time for which it is asked, in seconds; None for now.
        self._at = at

    def observe(self, pods: Mapping[PodKey, str]) -> list[MeasuredUsage]:
        """What each of these pods uses, by their ids. Some may not be measured yet."""
        cpu, memory = (_by_pod(self._query(query)) for query in (_CPU, _MEMORY))
        gpus = _gpus_by_pod(self._query(_GPUS))
        return [
            MeasuredUsage(id, cpu.get(pod, nan), memory.get(pod, nan), *gpus.get(pod, (None, None)))
            for pod, id in pods.items()
        ]

    def _query(self, query: str) -> list[_Sample]:
        parameters = {"query": query} if self._at is None else {"query": query, "time": f"{self._at:.3f}"}
        # A POST, because proxies shorten long addresses.
        body = urllib.parse.urlencode(parameters).encode()
        with urllib.request.urlopen(self._url, body, timeout=_SECONDS) as answer:
            try:
                return msgspec.json.decode(answer.read(), type=_Answer).data.result
            except msgspec.MsgspecError as error:
                raise OSError(f"{self._url} does not answer like Prometheus: {error}") from error


def _by_pod(samples: Iterable[_Sample]) -> dict[PodKey, float]:
    return {sample.pod: float(sample.value[1]) for sample in samples}


def _gpus_by_pod(samples: Iterable[_Sample]) -> dict[PodKey, tuple[float | None, int | None]]:
    """How busy the GPUs of each pod are on average, and their memory in use."""
    figures: dict[PodKey, dict[str, dict[tuple[str, str], float]]] = {}
    for sample in samples:
        device = sample.metric.get("UUID", ""), sample.metric.get("GPU_I_ID", "")
        by_name = figures.setdefault(sample.pod, {})
        by_name.setdefault(sample.metric.get("__name__", ""), {})[device] = float(sample.value[1])
    usages: dict[PodKey, tuple[float | None, int | None]] = {}
    for pod, by_name in figures.items():
        slices = {device: 100 * part for device, part in by_name.get(_ACTIVE, {}).items()}
        busy = slices | by_name.get(_BUSY, {})
        used = by_name.get(_USED)
        memory = int(sum(used.values()) * _MEBIBYTE) if used else None
        usages[pod] = fmean(busy.values()) if busy else None, memory
    return usages
