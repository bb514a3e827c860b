"""A proxy between our server and the API server refuses, loses and withholds; afterwards both agree on every object."""

from collections.abc import Iterator

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.crowd import assert_all_end, assert_settled, start_groups, start_trainings, until_some_run
from tests.kubernetes.meddler import Meddler, Trouble

pytestmark = pytest.mark.kubernetes

MANY = 20
EVERYTHING = ("changes", "reads", "watches")


@pytest.fixture(scope="module")
def harness(meddled_harness: ClusterHarness) -> ClusterHarness:
    return meddled_harness


@pytest.fixture(autouse=True)
def peace(harness: ClusterHarness, meddler: Meddler) -> Iterator[None]:
    """After a test nothing is in the way of what cleans up; asked for after the harness's own, so done before."""
    yield
    meddler.trouble()


TROUBLES: dict[str, tuple[Trouble, ...]] = {
    "409": (Trouble(409, 0.4),),
    "429": (Trouble(429, 0.3, ("changes", "reads")),),
    "500": (Trouble(500, 0.3, EVERYTHING),),
    "503": (Trouble(503, 0.3, EVERYTHING),),
    "answers are lost": (Trouble("lost", 0.3, ("changes", "reads")),),
    # Few: each takes as long as a request may at most.
    "no answers": (Trouble("silent", 0.5, ("changes", "reads"), most=4),),
    "done late": (Trouble("late", 0.5, most=4),),
    "streams are torn": (Trouble("torn", 0.5, ("watches",)),),
    "versions are forgotten": (Trouble("gone", 0.5, ("watches",)), Trouble("torn", 0.5, ("watches",))),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_trouble_during_twenty_workloads(harness: ClusterHarness, meddler: Meddler, name: str) -> None:
    """From the first submission until some run, and again while everything is deleted."""
    meddler.trouble(*TROUBLES[name])
    meddler.cut_watches()
    members = start_trainings(harness, MANY - 4) + start_groups(harness, 4)
    until_some_run(harness, members)
    assert meddler.counts, "nothing was meddled with"
    meddler.trouble()
    assert_settled(harness, members)
    meddler.trouble(*TROUBLES[name])
    assert_all_end(harness)


def test_watches_that_are_cut_again_and_again(harness: ClusterHarness, meddler: Meddler) -> None:
    members = start_trainings(harness, MANY)
    cuts = 0

    def is_enough() -> bool:
        nonlocal cuts
        cuts += meddler.cut_watches()
        return cuts > 30 and harness.server.phase(members[0].id) == "Completed"

    until(is_enough, "thirty cuts", PATIENCE)
    assert_settled(harness, members)
    assert_all_end(harness)
