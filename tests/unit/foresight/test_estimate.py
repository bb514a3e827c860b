"""When a workload starts: quantiles of running times, the chain before it, and when there is no telling."""

from statistics import mean
from typing import Any

import pytest

from fairlead.foresight.estimate import estimate_start
from fairlead.foresight.runtimes import RunningTime, draw_part, draw_together, quantile
from fairlead.foresight.why import Asker
from tests.unit.foresight.test_why import cluster, job


@pytest.mark.parametrize(
    ("runtime", "part", "want"),
    [
        (RunningTime(declared=100), 0.5, (100, "declared")),
        (RunningTime(declared=100, elapsed=60), 0.5, (40, "declared")),
        (RunningTime(declared=100, elapsed=200), 0.5, (50, "declared")),
        (RunningTime(runs=(10, 20, 30, 40)), 0.5, (30, "similar runs")),
        (RunningTime(runs=(10, 20, 30, 40), elapsed=25), 0.0, (5, "similar runs")),
        (RunningTime(runs=(10, 20, 30, 40), elapsed=25), 0.5, (15, "similar runs")),
        (RunningTime(runs=(10, 20, 30, 40), elapsed=25), 0.99, (375, "similar runs")),
        (RunningTime(runs=(10,)), 0.4, (10, "similar runs")),
        (RunningTime(runs=(10,)), 0.75, (20, "similar runs")),
        # Of five runs two have not ended: 10 is the shortest of 6, 30 that of the 3 that are left.
        (RunningTime(runs=(10, 30, 40), running=(20, 25)), 0.1, (10, "similar runs")),
        (RunningTime(runs=(10, 30, 40), running=(20, 25)), 0.2, (30, "similar runs")),
        (RunningTime(runs=(10, 30, 40), running=(20, 25)), 0.5, (40, "similar runs")),
        (RunningTime(runs=(10, 30, 40), running=(20, 25)), 31 / 36, (80, "similar runs")),
        (RunningTime(runs=(10,), running=(90,)), 0.7, (200, "similar runs")),
        (RunningTime(runs=(10, 20), elapsed=40), 0.5, (40, "longer than all similar runs")),
        (RunningTime(runs=(10, 20), elapsed=40), 0.95, (360, "longer than all similar runs")),
        (RunningTime(runs=(10, 200), limit=60), 0.9, (60, "similar runs")),
        (RunningTime(limit=60, elapsed=20), 0.5, (40, "time limit")),
        (RunningTime(), 0.5, (None, "unknown")),
    ],
)
def test_what_is_left_of_a_running_time(runtime: RunningTime, part: float, want: tuple[Any, str]) -> None:
    assert (runtime.remaining(part), runtime.basis) == (want[0] and pytest.approx(want[0]), want[1])


@pytest.mark.parametrize("samples", [5, 9, 20])
def test_samples_cover_the_quantiles_evenly(samples: int) -> None:
    for workload in range(50):
        parts = [draw_part(f"workload-{workload}", number, samples) for number in range(samples)]
        assert all(0 <= part < 1 for part in parts)
        assert len({int(part * samples) for part in parts}) == samples


def test_runs_of_a_sample_are_long_or_short_together() -> None:
    keys = [f"workload-{number}" for number in range(200)]
    means = [mean(draw_together(key, number, 9) for key in keys) for number in range(9)]
    assert means[0] < 0.35
    assert means[4] == pytest.approx(0.5, abs=0.05)
    assert means[8] > 0.65
    # Over all samples, a workload's quantiles are still spread over the whole range.
    assert mean(means) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("part", "want"), [(0.5, 3), (0.9, 5), (0.0, 1), (1.0, 5)])
def test_quantiles(part: float, want: float) -> None:
    assert quantile([5, 3, 1, 2, 4], part) == want


HOLDS, WAITS = "project-a/holds", "project-a/waits"


def test_a_declared_end_is_when_the_next_one_starts() -> None:
    snapshot = cluster(job("holds", on="n1", gpu=4), job("waits"))
    answer = estimate_start(snapshot, "waits", {HOLDS: RunningTime(declared=500, elapsed=100)})
    assert (answer.status, answer.p50, answer.p90) == ("estimated", 1400, 1400)
    assert [(step.event, step.workload, step.basis) for step in answer.chain] == [("ends", "holds", "declared")]
    assert answer.message == "Starts about 1970-01-01 00:23:20 UTC: holds ends then (declared)."


def test_who_goes_first_is_played_too() -> None:
    first = job("first", gpu=4, created=1.0)
    snapshot = cluster(job("holds", on="n1", gpu=4), first, job("waits", gpu=4, created=2.0))
    runtimes = {HOLDS: RunningTime(declared=100), "project-a/first": RunningTime(declared=50)}
    answer = estimate_start(snapshot, "waits", runtimes)
    assert answer.p50 == 1151
    assert [step.event for step in answer.chain] == ["ends", "starts", "ends"]
    assert "1 workload goes first" in answer.message


def test_similar_runs_give_a_median_and_a_late_value() -> None:
    snapshot = cluster(job("holds", on="n1", gpu=4), job("waits"))
    answer = estimate_start(snapshot, "waits", {HOLDS: RunningTime(runs=tuple(float(n) for n in range(1, 101)))})
    assert answer.p50 is not None
    assert answer.p90 is not None
    assert 1045 <= answer.p50 <= 1055
    assert 1085 <= answer.p90 <= 1095


def test_what_is_not_known_is_not_guessed() -> None:
    snapshot = cluster(job("v1", "b", on="n1", gpu=4), job("waits"))
    answer = estimate_start(snapshot, "waits", {})
    assert (answer.status, answer.p50) == ("unknown", None)
    assert answer.message == "No estimate: no workload similar to v1 has ended yet."
    hidden = estimate_start(snapshot, "waits", {}, Asker(visible=frozenset({"project-a"})))
    assert hidden.message == "No estimate: how long 1 workload of other projects will run is unknown."


def test_an_unknown_running_time_of_who_goes_first_is_named() -> None:
    first = job("first", gpu=4, created=1.0)
    snapshot = cluster(job("holds", on="n1", gpu=4), first, job("waits", gpu=4, created=2.0))
    answer = estimate_start(snapshot, "waits", {HOLDS: RunningTime(declared=100)})
    assert answer.message == "No estimate: no workload similar to first has ended yet."


def test_what_starts_now_and_what_never_does() -> None:
    assert estimate_start(cluster(job("waits")), "waits", {}).message == "It starts in the next scheduling cycle."
    never = estimate_start(
        cluster(job("holds", on="n1"), job("waits", gpu=9)), "waits", {HOLDS: RunningTime(declared=5)}
    )
    assert never.status == "unknown"
    assert never.message.startswith("No estimate: it would not start even if all running workloads end.")
    untold = estimate_start(cluster(job("holds", on="n1"), job("waits", gpu=9)), "waits", {})
    assert untold.message == never.message
    assert estimate_start(cluster(job("runs", on="n1")), "runs", {}).status == "notWaiting"
