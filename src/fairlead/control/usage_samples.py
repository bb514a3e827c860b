"""The resource usage of pods, nodes and services over time, in the memory of the server that runs the machine.

It takes a sample every few seconds while a pod runs, and none otherwise. Older history is thinned out, so that it stays
small. It is lost when the server restarts.
"""

import asyncio
import logging
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import isnan, nan

from fairlead.control.serving.traffic import Traffic
from fairlead.model.clock import Clock, Millis
from fairlead.model.resource_usage import MeasuredUsage
from fairlead.store.base import Store

log = logging.getLogger(__name__)

#: Seconds between two samples.
PERIOD = 10.0
#: The minimum time between two samples; with less there would be nothing to measure.
_APART: Millis = 1000
#: The maximum number of samples of one series; then every second one is dropped.
_KEPT_MOMENTS = 360
#: The maximum number of series; the one with the oldest last sample is dropped first.
_KEPT_THINGS = 2000
#: A sample: CPU seconds, bytes of memory, requests, responses, seconds that the responses took; percent of GPUs and
#: bytes of GPU memory, which are not a number if they are not measured.
Moment = tuple[float, float, float, float, float, float, float]
_CPU, _MEMORY, _REQUESTS, _ANSWERS, _LATENCY, _GPU, _GPU_MEMORY = range(7)
#: Samples that are older say nothing about now.
_FRESH: Millis = 60_000


class Series:
    """The samples of one pod, node or service in order: one column for their times, one per figure."""

    __slots__ = ("_figures", "_idle_since", "_times")

    def __init__(self) -> None:
        self._times = array("q")
        self._figures = tuple(array("d") for _ in range(7))
        #: Since when all samples show idle GPUs; kept apart, because samples are dropped.
        self._idle_since: Millis | None = None

    def add(self, at: Millis, moment: Moment) -> None:
        if self._times and at <= self._times[-1]:
            return
        self._idle_since = (at if self._idle_since is None else self._idle_since) if moment[_GPU] == 0 else None
        self._times.append(at)
        for column, figure in zip(self._figures, moment, strict=True):
            column.append(figure)
        if len(self._times) > _KEPT_MOMENTS:
            # The newest stays, and every second one before it.
            self._times = self._times[-1::-2][::-1]
            self._figures = tuple(column[-1::-2][::-1] for column in self._figures)

    def _neighbours(self, at: Millis) -> tuple[float, Moment, Moment] | None:
        """The samples before and after a time, and the seconds between them."""
        after = bisect_right(self._times, at)
        if after == len(self._times) and self._times and at <= self._times[-1] + PERIOD * 1000:
            after -= 1
        if not 0 < after < len(self._times):
            return None
        seconds = (self._times[after] - self._times[after - 1]) / 1000
        return seconds, self._moment(after - 1), self._moment(after)

    def _moment(self, number: int) -> Moment:
        cpu, memory, requests, answers, latency, gpu, gpu_memory = (column[number] for column in self._figures)
        return cpu, memory, requests, answers, latency, gpu, gpu_memory

    def cores(self, at: Millis) -> float | None:
        samples = self._neighbours(at)
        seconds = nan if samples is None else samples[2][_CPU] - samples[1][_CPU]
        return None if samples is None or isnan(seconds) else max(0.0, seconds) / samples[0]

    def memory(self, at: Millis) -> float | None:
        return self._measured(at, _MEMORY)

    def gpu_percent(self, at: Millis) -> float | None:
        return self._measured(at, _GPU)

    def gpu_memory(self, at: Millis) -> float | None:
        return self._measured(at, _GPU_MEMORY)

    def _measured(self, at: Millis, figure: int) -> float | None:
        samples = self._neighbours(at)
        return None if samples is None or isnan(samples[2][figure]) else samples[2][figure]

    def idle_time(self, now: Millis) -> Millis:
        """How long its GPUs have been idle without a break, as far as is measured; 0 if that is not known."""
        if self._idle_since is None or now - self._times[-1] > _FRESH:
            return 0
        return self._times[-1] - self._idle_since

    def throughput(self, at: Millis) -> float | None:
        """Requests per second."""
        samples = self._neighbours(at)
        return None if samples is None else (samples[2][_REQUESTS] - samples[1][_REQUESTS]) / samples[0]

    def latency(self, at: Millis) -> float | None:
        """Milliseconds per response; None if there was none."""
        samples = self._neighbours(at)
        if samples is None or samples[2][_ANSWERS] == samples[1][_ANSWERS]:
            return None
        return (samples[2][_LATENCY] - samples[1][_LATENCY]) / (samples[2][_ANSWERS] - samples[1][_ANSWERS]) * 1000


_NOTHING = Series()


def _gpu_figures(usage: MeasuredUsage | None) -> tuple[float, float]:
    figures = (usage.gpu_percent, usage.gpu_memory_bytes) if usage else (None, None)
    percent, memory = (nan if figure is None else float(figure) for figure in figures)
    return percent, memory


class UsageSampler:
    """Takes the samples and keeps them. One per server that runs the machine."""

    def __init__(
        self, store: Store, clock: Clock, traffic: Traffic, observe: Callable[[], Sequence[MeasuredUsage]] = tuple
    ) -> None:
        self._store = store
        self._clock = clock
        self._traffic = traffic
        self._observe = observe
        self._things: dict[str, Series] = {}
        self._sampled_at: Millis | None = None
        self._is_active = self._is_failing = False
        self._sampling = asyncio.Lock()
        #: Whether the use of GPUs has been measured.
        self.measures_gpus = False
        self._changed = asyncio.Event()

    def of(self, id: str) -> Series:
        """The samples of a workload, a pod or a node (`node/` and its name)."""
        return self._things.get(id, _NOTHING)

    def idle_time(self, ids: Sequence[str]) -> Millis:
        """How long the GPUs of all these pods have been idle at the same time."""
        now = self._clock()
        return min((self.of(id).idle_time(now) for id in ids), default=0)

    async def run(self) -> None:
        """Take samples while a pod runs. A commit to the store means that one may have started."""
        unsubscribe = self._store.subscribe(lambda revision, subjects: self._changed.set())
        # Pods may have been running before.
        self._changed.set()
        try:
            while True:
                await self._changed.wait()
                # While short jobs come and go, every commit would wake it for nothing.
                if self._sampled_at is not None:
                    await asyncio.sleep((self._sampled_at + _APART - self._clock()) / 1000)
                self._changed.clear()
                while await self.sample():  # noqa: ASYNC110 - only time passes, nobody tells
                    await asyncio.sleep(PERIOD)
        finally:
            unsubscribe()

    async def sample(self) -> bool:
        """Take a sample; returns whether any pod runs."""
        async with self._sampling:
            if self._sampled_at is not None and self._clock() - self._sampled_at < _APART:
                return self._is_active
            try:
                used = await asyncio.to_thread(self._observe)
            except OSError as error:
                if not self._is_failing:
                    log.warning("cannot read the resource usage of pods: %s", error)
                self._is_failing = True
                return self._is_active
            self._is_failing = False
            now = self._clock()
            usages = {usage.id: usage for usage in used}
            totals = self._traffic.totals()
            for id in usages.keys() | totals.keys():
                usage = usages.get(id)
                requests = totals.get(id, (0, 0, 0.0))
                cpu, memory = (usage.cpu_seconds, usage.memory_bytes) if usage else (0.0, 0.0)
                self._keep(id, now, (cpu, memory, *requests, *_gpu_figures(usage)))
            self.measures_gpus |= any(usage.gpu_percent is not None for usage in used)
            self._sampled_at = now
            self._is_active = any("/" not in id for id in usages)
            return self._is_active

    def _keep(self, id: str, now: Millis, moment: Moment) -> None:
        series = self._things.pop(id, None)
        if series is None:
            series = Series()
            if moment[_REQUESTS]:
                # Counting began at zero, so all of these requests came since the last sample.
                before = now - int(PERIOD * 1000) if self._sampled_at is None else self._sampled_at
                series.add(before, (moment[_CPU], moment[_MEMORY], 0.0, 0.0, 0.0, nan, nan))
        series.add(now, moment)
        self._things[id] = series
        if len(self._things) > _KEPT_THINGS:
            del self._things[next(iter(self._things))]
