"""Submissions of the next days are those of the last ones, and estimates take them into account."""

from itertools import islice

import pytest

from fairlead.foresight.estimate import estimate_start
from fairlead.foresight.forward import ForwardPlayer, SampleTurn
from fairlead.foresight.runtimes import RunningTime
from fairlead.foresight.submissions import DAY, NO_SUBMISSIONS, PastSubmission, PastSubmissions
from tests.unit.foresight.test_forward import random_cluster
from tests.unit.foresight.test_why import cluster, job, queue

QUEUES = (queue("a", quota=0), queue("b", quota=4))
HOLDS = {"project-a/holds": RunningTime(declared=1000)}


def past(ago: float, name: str = "past", queue: str = "a", seconds: float = 600) -> PastSubmission:
    return PastSubmission(ago=ago, jobs=(job(name, queue, gpu=4),), runtime=RunningTime(declared=seconds))


def test_every_day_of_a_sample_is_one_of_the_past_days_at_the_same_hours() -> None:
    submissions = PastSubmissions((past(DAY - 60), past(DAY + 100), past(2 * DAY - 30), past(9 * DAY)), 2.5 * DAY)
    first = [each.at for each in islice(submissions.sample(0, 1000), 3)]
    assert first == [1060, 1030 + DAY, 1000 + 2 * DAY - 100]
    second = [each.at for each in islice(submissions.sample(1, 1000), 3)]
    assert second == [1030, 1000 + DAY - 100, 1060 + DAY]
    assert [each.created for each in next(submissions.sample(0, 1000)).jobs] == [1060]


def test_many_samples_begin_with_all_days_alike() -> None:
    submissions = PastSubmissions(tuple(past(day * DAY + 0.5, f"day-{day}") for day in range(1, 7)), 7 * DAY)
    starts = [next(submissions.sample(number, 0)).at for number in range(14)]
    assert sorted(starts) == sorted(starts[:7] * 2)


def test_without_a_past_nothing_is_expected() -> None:
    assert not NO_SUBMISSIONS
    assert list(NO_SUBMISSIONS.sample(0, 0)) == []
    assert list(PastSubmissions((), 5 * DAY).sample(0, 0)) == []


def test_a_server_with_many_submissions_an_hour_repeats_the_hours_it_knows() -> None:
    submissions = PastSubmissions((past(3000), past(1000)), 3600)
    assert [each.at for each in islice(submissions.sample(0, 0), 3)] == [600, 2600, 4200]


def test_a_project_within_its_quota_that_submits_later_goes_first() -> None:
    """Project b submits something every day that evicts `holds`, which is beyond its quota, and starts over later."""
    snapshot = cluster(job("holds", on="n1", gpu=4), job("waits", gpu=4), queues=QUEUES)
    alone = estimate_start(snapshot, "waits", HOLDS)
    submissions = PastSubmissions((past(DAY - 950, queue="b"),), DAY)
    answer = estimate_start(snapshot, "waits", HOLDS, submissions=submissions)
    assert alone.p50 == 2000
    assert answer.p50 == pytest.approx(1950 + 600 + 1000, abs=5)
    assert answer.assumptions[0].startswith("As much is submitted as in the last days")
    assert all(step.workload in ("holds", "waits") for step in answer.chain)


def test_a_line_that_grows_without_end_is_not_played_to_its_end() -> None:
    """Project b may always go first, and submits twice what the cluster can do."""
    snapshot = cluster(job("holds", "b", on="n1", gpu=4), job("waits", gpu=4), queues=QUEUES)
    submissions = PastSubmissions(tuple(past(300.0 * n, f"past-{n}", "b") for n in range(1, 288)), DAY)
    player = ForwardPlayer(snapshot, submissions)
    holds = {"project-b/holds": RunningTime(declared=1000)}
    played = player.play({"waits": frozenset({"waits"})}, holds, SampleTurn(0, 1, 10_000))
    assert played.starts == {}
    assert played.until is not None
    assert 5_000 < len(player.jobs) < 7_000
    assert played.calls < 2_000


def test_a_kept_model_plays_submissions_as_new_snapshots_do() -> None:
    for seed in range(6):
        snapshot = random_cluster(seed)
        waiting = [each for each in snapshot.jobs if each.tasks[0].status == "Pending"]
        targets = {each.id: frozenset({each.id}) for each in waiting}
        runtimes = {each.id: RunningTime(runs=tuple(float(n) for n in range(5, 400, 7))) for each in snapshot.jobs}
        submissions = PastSubmissions(
            tuple(
                PastSubmission(ago=DAY - 20 * number, jobs=(each,), runtime=RunningTime(declared=50))
                for number, each in enumerate(waiting)
            ),
            DAY,
        )
        kept, plain = ForwardPlayer(snapshot, submissions), ForwardPlayer(snapshot, submissions, is_reference=True)
        assert (kept.is_fast, plain.is_fast) == (True, False)
        for number in range(2):
            sample = SampleTurn(number, 5, 100)
            played = kept.play(targets, runtimes, sample)
            assert played == plain.play(targets, runtimes, sample)
            assert any(key.startswith("+") for _, _, key in played.events)


def test_a_workload_that_is_evicted_starts_over() -> None:
    """`holds` has run for 900 of 1000 seconds when a workload of project b reclaims its place."""
    snapshot = cluster(job("holds", on="n1", gpu=4), job("reclaims", "b", gpu=4), job("waits", gpu=4), queues=QUEUES)
    runtimes = {
        "project-a/holds": RunningTime(declared=1000, elapsed=900),
        "project-b/reclaims": RunningTime(declared=100),
    }
    answer = estimate_start(snapshot, "waits", runtimes)
    assert answer.p50 is not None
    assert answer.p50 >= snapshot.now + 100 + 1000
