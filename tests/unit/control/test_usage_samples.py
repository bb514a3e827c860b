"""Moments of things that live long: they get fewer, and what lies between them stays right."""

import asyncio
from collections.abc import Sequence
from math import nan
from pathlib import Path

import pytest

from fairlead.control.serving.traffic import Traffic
from fairlead.control.telemetry.metrics import measure_used, measure_workload
from fairlead.control.usage_samples import Series, UsageSampler
from fairlead.model.resource_usage import MeasuredUsage
from fairlead.store.base import Change, Put
from fairlead.store.collections import WORKLOADS
from fairlead.store.sqlite import open_sqlite
from tests import builders
from tests.contract.databases import eventually

SECOND = 1000
NO_GPU = (nan, nan)
GPU_METRICS = ("GPU_UTILIZATION", "GPU_MEMORY_USAGE_BYTES", "CPU_USAGE_CORES", "CPU_MEMORY_USAGE_BYTES")


def test_history_gets_coarser_and_never_larger() -> None:
    series = Series()
    for number in range(5000):
        series.add(number * 10 * SECOND, (number * 5.0, 100.0, number * 20.0, number * 20.0, number * 4.0, *NO_GPU))
    assert len(series._times) <= 360
    for at in (1000 * SECOND, 20_005 * SECOND, 49_985 * SECOND, 49_990 * SECOND):
        assert series.cores(at) == pytest.approx(0.5)
        assert series.memory(at) == 100.0
        assert series.throughput(at) == pytest.approx(2.0)
        assert series.latency(at) == pytest.approx(200.0)


def test_times_outside_have_no_figures() -> None:
    series = Series()
    assert series.cores(0) is None
    series.add(10 * SECOND, (1.0, 7.0, 0.0, 0.0, 0.0, *NO_GPU))
    assert series.memory(10 * SECOND) is None
    series.add(20 * SECOND, (2.0, 8.0, 0.0, 0.0, 0.0, *NO_GPU))
    assert series.cores(5 * SECOND) is None
    assert series.cores(15 * SECOND) == pytest.approx(0.1)
    assert series.memory(29 * SECOND) == 8.0
    assert series.memory(31 * SECOND) is None
    assert (series.throughput(15 * SECOND), series.latency(15 * SECOND)) == (0.0, None)


def test_a_moment_twice_is_kept_once() -> None:
    series = Series()
    for cpu in (1.0, 9.0):
        series.add(10 * SECOND, (cpu, 0.0, 0.0, 0.0, 0.0, *NO_GPU))
    series.add(20 * SECOND, (3.0, 0.0, 0.0, 0.0, 0.0, *NO_GPU))
    assert series.cores(15 * SECOND) == pytest.approx(0.2)


def gpu_series(*percents: float, every: int = 10) -> Series:
    series = Series()
    for number, percent in enumerate(percents):
        series.add(number * every * SECOND, (0.0, 0.0, 0.0, 0.0, 0.0, percent, nan))
    return series


@pytest.mark.parametrize(
    ("percents", "seconds", "want"),
    [
        pytest.param([], 0, 0, id="nothing measured"),
        pytest.param([0, 0, 0, 0], 30, 30, id="always idle"),
        pytest.param([0, 0, 5, 0, 0], 40, 10, id="busy in between"),
        pytest.param([0, 0, 0, 1], 30, 0, id="busy now"),
        pytest.param([0, nan, 0], 20, 0, id="unknown in between"),
        pytest.param([0, 0, 0], 70, 20, id="the last sample is old enough to count"),
        pytest.param([0, 0, 0], 90, 0, id="not measured any more"),
    ],
)
def test_how_long_gpus_are_idle(percents: list[float], seconds: int, want: int) -> None:
    assert gpu_series(*percents).idle_time(seconds * SECOND) == want * SECOND


def test_a_busy_moment_long_ago_is_not_forgotten_when_samples_are_dropped() -> None:
    busy_at = 101
    series = gpu_series(*(50.0 if number == busy_at else 0.0 for number in range(1000)))
    assert series.idle_time(9990 * SECOND) == (999 - busy_at - 1) * 10 * SECOND


def collect(folder: Path, *rounds: Sequence[MeasuredUsage] | OSError) -> tuple[UsageSampler, list[bool]]:
    """Samples ten seconds apart, and whether each said that a pod runs."""

    async def run() -> tuple[UsageSampler, list[bool]]:
        store = await open_sqlite(folder / "fairlead.db")
        time, left = [0], list(rounds)

        def look() -> Sequence[MeasuredUsage]:
            found = left.pop(0)
            if isinstance(found, OSError):
                raise found
            return found

        usage_samples = UsageSampler(store, lambda: time[0], Traffic(lambda: time[0], lambda: 0.0), look)
        told = []
        try:
            for _ in rounds:
                told.append(await usage_samples.sample())
                time[0] += 10 * SECOND
        finally:
            await store.close()
        return usage_samples, told

    return asyncio.run(run())


def test_gpus_of_a_workload(tmp_path: Path) -> None:
    samples = [
        [MeasuredUsage("p", number * 5.0, 100.0, 40.0, 1000), MeasuredUsage("q", nan, nan, 80.0, 500)]
        for number in range(3)
    ]
    usage_samples, _ = collect(tmp_path, *samples)
    pods = [builders.pod("p", id="p", created_at=0), builders.pod("q", id="q", created_at=0)]
    usage = measure_workload(builders.workload(), pods, GPU_METRICS, [15 * SECOND], usage_samples)
    assert [one.values for one in usage] == [
        ((15 * SECOND, 60.0),),
        ((15 * SECOND, 1500.0),),
        ((15 * SECOND, 0.5),),
        ((15 * SECOND, 100.0),),
    ]
    [alone, unknown] = measure_used("q", ("GPU_UTILIZATION", "CPU_USAGE_CORES"), [15 * SECOND], usage_samples)
    assert (alone.values, unknown.values) == (((15 * SECOND, 80.0),), ())


def test_gpus_that_are_not_measured_are_unknown(tmp_path: Path) -> None:
    usage_samples, _ = collect(tmp_path, [MeasuredUsage("p", 0.0, 0.0)], [MeasuredUsage("p", 1.0, 0.0)])
    assert [one.is_known for one in measure_used("p", GPU_METRICS, [0], usage_samples)] == [False, False, True, True]


def test_sampling_continues_while_figures_are_missing(tmp_path: Path) -> None:
    """What measures pods learns of them later, or is away for a while."""
    _, told = collect(tmp_path, [], [MeasuredUsage("p", nan, nan)], OSError("away"), [MeasuredUsage("p", 1.0, 1.0)], [])
    assert told == [False, True, True, True, False]


def test_several_pods_are_idle_if_all_are(tmp_path: Path) -> None:
    rounds = [[MeasuredUsage("p", 0.0, 0.0, 0.0, 0), MeasuredUsage("q", 0.0, 0.0, busy, 0)] for busy in (9.0, 0.0, 0.0)]
    usage_samples, _ = collect(tmp_path, *rounds)
    idle = [usage_samples.idle_time(ids) // SECOND for ids in (["p"], ["q"], ["p", "q"], ["p", "unknown"], [])]
    assert idle == [20, 10, 10, 0, 0]


def test_commits_of_short_jobs_are_one_sample_per_second(tmp_path: Path) -> None:
    """A commit means that a pod may have started. Hundreds of them within a second are one look, which is not lost."""

    async def run() -> list[float]:
        store = await open_sqlite(tmp_path / "store.db")
        loop = asyncio.get_running_loop()
        looks: list[float] = []

        def look() -> Sequence[MeasuredUsage]:
            looks.append(loop.time())
            return ()

        sampler = UsageSampler(
            store, lambda: round(loop.time() * SECOND), Traffic(lambda: round(loop.time() * SECOND), loop.time), look
        )
        sampling = asyncio.create_task(sampler.run())
        for number in range(100):
            await store.commit(Change(writes=(Put(WORKLOADS, builders.workload(f"job-{number}")),)))
        await eventually(lambda: len(looks) == 2)
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        await store.close()
        return looks

    looks = asyncio.run(asyncio.wait_for(run(), 60))
    assert len(looks) == 2
    assert looks[1] - looks[0] >= 0.998
