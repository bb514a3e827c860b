"""Fairlead's scheduler beside KAI: what counts as the same decision, and how an answer says it."""

import pytest

from fairlead.foresight.kai.agreement import (
    Agreement,
    SchedulingOutcome,
    compare_outcomes,
    describe_agreement,
    find_waiting,
    observe_outcome,
    predict_outcome,
)
from fairlead.scheduling import Job, Snapshot, Task
from tests.unit.foresight.test_why import cluster, job, node, queue

A, B, C = "project-a/a", "project-a/b", "project-b/c"
QUEUES = (queue("a", quota=4), queue("b", quota=0))


def outcome(placed: tuple[str, ...] = (), victims: tuple[str, ...] = ()) -> SchedulingOutcome:
    return SchedulingOutcome(frozenset(placed), frozenset(victims))


@pytest.mark.parametrize(
    ("ours", "theirs", "want"),
    [
        (outcome((A, B)), outcome((A, B)), (2, 2, 0, 0)),
        (outcome(), outcome(), (2, 2, 0, 0)),
        (outcome((A,)), outcome(), (2, 1, 0, 0)),
        (outcome((A,)), outcome((B,)), (2, 0, 0, 0)),
        (outcome((A, B), (C,)), outcome((A, B), (C,)), (2, 2, 1, 1)),
        (outcome((A, B), (C,)), outcome((A, B)), (2, 2, 1, 0)),
        (outcome((A, B), (C,)), outcome((A, B), ("other",)), (2, 2, 2, 0)),
    ],
    ids=["both start", "both wait", "ours starts", "another one", "same victim", "ours evicts", "another victim"],
)
def test_comparisons(ours: SchedulingOutcome, theirs: SchedulingOutcome, want: tuple[int, ...]) -> None:
    found = compare_outcomes((A, B), ours, theirs)
    assert (found.placements, found.equal_placements, found.victims, found.equal_victims) == want


@pytest.mark.parametrize(
    ("before", "want"),
    [
        (cluster(job("a"), job("b", gpu=8)), outcome((A,))),
        (cluster(job("a", gpu=4), job("c", "b", on="n1", gpu=4), queues=QUEUES), outcome((A,), (C,))),
        (cluster(job("a", gpu=4), job("b", on="n1", gpu=4), queues=QUEUES), outcome()),
    ],
    ids=["room for one", "reclaims", "of equal rank"],
)
def test_what_ours_makes_of_a_cluster(before: Snapshot, want: SchedulingOutcome) -> None:
    assert predict_outcome(before) == want


def test_evicted_pods_wait_again_after_the_others() -> None:
    """The gang takes one node. The other one goes to who waited before, not to who was evicted from it."""
    gang = Job(
        id="gang",
        name="gang",
        queue="project-a",
        tasks=(Task(id="gang-0", gpu=2), Task(id="gang-1", gpu=2)),
        min_available=2,
        priority=60,
        created=6,
    )
    before = cluster(
        job("whole", "a", on="n1", gpu=4, created=0),
        job("most", "b", on="n2", gpu=3, created=1),
        job("waits", "b", gpu=4, priority=90, created=5),
        gang,
        nodes=(node("n1"), node("n2")),
        queues=QUEUES,
    )
    victims = ("project-a/whole", "project-b/most")
    assert predict_outcome(before) == outcome(("project-a/gang", "project-b/waits"), victims)


def test_what_became_of_a_cluster() -> None:
    before = cluster(job("a"), job("b"), job("c", "b", on="n1"))
    after = cluster(job("a", on="n1"), job("b"), job("c", "b"))
    assert find_waiting(before) == {A, B}
    # One that held nothing cannot have lost it.
    assert observe_outcome(before, after, {C, B}) == outcome((A,), (C,))


def test_sentences() -> None:
    assert "have not been compared since this server started" in describe_agreement(Agreement())
    sum = Agreement(placements=400, equal_placements=399) + Agreement(
        placements=7, equal_placements=7, victims=9, equal_victims=8
    )
    assert describe_agreement(sum).endswith("both agreed in 406 of 407 placements and 8 of 9 evictions.")
