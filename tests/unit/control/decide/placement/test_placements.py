"""Which task of an array a new pod has."""

import pytest

from fairlead.control.decide.draft import Draft, WorkloadEntry
from fairlead.control.decide.placement.placements import free_array_index
from fairlead.model.pods.podset import PodSet
from tests import builders


@pytest.mark.parametrize(
    ("podset", "want"),
    [
        pytest.param(builders.podset(completions=1), None, id="a single pod"),
        pytest.param(builders.podset(completions=2), 0, id="several completions"),
        pytest.param(builders.array_podset("7", 1), 0, id="an array of one task"),
        pytest.param(builders.array_podset("3-9:2", 4), 0, id="an array"),
    ],
)
def test_the_place_of_a_new_pod(podset: PodSet, want: int | None) -> None:
    draft = Draft(WorkloadEntry(workload=builders.workload(), pods=(), podsets=(podset,)), 0)
    assert free_array_index(draft, podset) == want
