"""Moments of things that live long: they get fewer, and what lies between them stays right."""

import pytest

from fairlead.control.usage_history import Series

SECOND = 1000


def test_history_gets_coarser_and_never_larger() -> None:
    series = Series()
    for number in range(5000):
        series.add(number * 10 * SECOND, (number * 5.0, 100.0, number * 20.0, number * 20.0, number * 4.0))
    assert len(series._times) <= 360
    for at in (1000 * SECOND, 20_005 * SECOND, 49_985 * SECOND, 49_990 * SECOND):
        assert series.cores(at) == pytest.approx(0.5)
        assert series.memory(at) == 100.0
        assert series.throughput(at) == pytest.approx(2.0)
        assert series.latency(at) == pytest.approx(200.0)


def test_times_outside_have_no_figures() -> None:
    series = Series()
    assert series.cores(0) is None
    series.add(10 * SECOND, (1.0, 7.0, 0.0, 0.0, 0.0))
    assert series.memory(10 * SECOND) is None
    series.add(20 * SECOND, (2.0, 8.0, 0.0, 0.0, 0.0))
    assert series.cores(5 * SECOND) is None
    assert series.cores(15 * SECOND) == pytest.approx(0.1)
    assert series.memory(29 * SECOND) == 8.0
    assert series.memory(31 * SECOND) is None
    assert (series.throughput(15 * SECOND), series.latency(15 * SECOND)) == (0.0, None)


def test_a_moment_twice_is_kept_once() -> None:
    series = Series()
    for cpu in (1.0, 9.0):
        series.add(10 * SECOND, (cpu, 0.0, 0.0, 0.0, 0.0))
    series.add(20 * SECOND, (3.0, 0.0, 0.0, 0.0, 0.0))
    assert series.cores(15 * SECOND) == pytest.approx(0.2)
