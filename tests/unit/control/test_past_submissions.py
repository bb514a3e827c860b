"""Submissions of a period from the ledger: sizes, times, what a caller may not name, and what never ran."""

from typing import Any

import pytest

from fairlead.control.ledger.history import PastRun, RecordedRuns, RunNames, list_runs
from fairlead.control.ledger.periods import Period
from fairlead.model.clock import SECOND
from fairlead.model.records.ledger import ResourceAmounts, UsageInterval

PERIOD = Period(100 * SECOND, 200 * SECOND)
NAMES = RunNames(projects={"1": "vision"}, hidden_project={"1": "project-1", "2": "project-2"}, priorities={"w": 75})


def interval(since: int, until: int, workload: str = "w", gpu: int = 1000, **more: Any) -> UsageInterval:
    given = {"project_id": "1", "project_name": "vision", "id": f"{workload}-{since}-{until}-{gpu}"} | more
    return UsageInterval(
        since=since * SECOND,
        until=until * SECOND,
        workload_id=workload,
        workload_name=workload,
        user="ada",
        department_id="d",
        department_name="d",
        node_pool="default",
        amounts=ResourceAmounts(gpu, 4000, 1 << 30),
        **given,
    )


def ask(*uses: UsageInterval, waits: tuple[UsageInterval, ...] = ()) -> RecordedRuns:
    return list_runs(uses, waits, PERIOD, NAMES)


def only(*uses: UsageInterval, waits: tuple[UsageInterval, ...] = ()) -> PastRun:
    (run,) = ask(*uses, waits=waits).runs
    return run


def test_it_is_submitted_when_it_begins_to_wait_and_runs_as_long_as_it_held_something() -> None:
    run = only(interval(130, 150), waits=(interval(110, 130, type="waited"),))
    assert (run.id, run.at, run.duration, run.gpus, run.pods) == ("w", 110, 20, 1, 1)
    assert (run.project, run.priority, run.preemptible) == ("vision", 75, True)


def test_only_the_part_in_the_period_counts() -> None:
    run = only(interval(50, 250))
    assert (run.at, run.duration) == (100, 100)
    assert ask(interval(50, 100), interval(200, 250)).runs == ()


@pytest.mark.parametrize(
    ("uses", "want_gpus", "want_pods", "want_duration"),
    [
        pytest.param(((110, 150, 8000), (110, 150, 8000)), 8, 2, 40, id="pods at the same time"),
        pytest.param(((110, 120, 1000), (130, 150, 1000)), 1, 1, 30, id="after an eviction"),
        pytest.param(((110, 120, 1000), (120, 150, 1000)), 1, 1, 40, id="one pod after the other"),
        pytest.param(((110, 150, 0), (110, 150, 4000), (110, 150, 4000)), 4, 2, 40, id="a leader without a GPU"),
        pytest.param(((110, 150, 500),), 0.5, 1, 40, id="half a GPU"),
        pytest.param(((110, 150, 1500),), 2, 1, 40, id="parts of two GPUs"),
        pytest.param(((110, 150, 0), (110, 150, 0), (110, 150, 0)), 0, 3, 40, id="no GPU"),
        pytest.param(((110, 150, 2000), (120, 130, 2000), (140, 160, 2000)), 2, 2, 50, id="pods that come and go"),
    ],
)
def test_sizes(uses: tuple[tuple[int, int, int], ...], want_gpus: float, want_pods: int, want_duration: float) -> None:
    run = only(*(interval(since, until, gpu=gpu, id=str(place)) for place, (since, until, gpu) in enumerate(uses)))
    assert (run.gpus, run.pods, run.duration) == (want_gpus, want_pods, want_duration)


def test_cores_and_memory_of_pods_without_a_gpu_count_to_the_others() -> None:
    run = only(interval(110, 150, gpu=0), interval(110, 150, gpu=4000))
    assert (run.pods, run.cpu_milli, run.memory_bytes) == (1, 8000, 2 << 30)


def test_what_only_waited_is_counted() -> None:
    found = ask(interval(110, 120), waits=(interval(150, 160, "never", type="waited"),))
    assert ([run.id for run in found.runs], found.left_out) == (["w"], 1)


def test_what_may_not_be_named_has_a_number_and_the_id_of_its_queue() -> None:
    secret: dict[str, Any] = {"project_id": "2", "project_name": "secret"}
    found = ask(interval(120, 150, "b", **secret), interval(110, 150, "a", **secret), interval(115, 150))
    assert [(run.id, run.project, run.priority) for run in found.runs] == [
        ("hidden-1", "project-2", 50),
        ("w", "vision", 75),
        ("hidden-2", "project-2", 50),
    ]
    assert "secret" not in str(found)
