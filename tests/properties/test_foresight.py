"""Answers of `why` on random clusters: every change starts the workload, and less of it does not."""

import pytest

from tests.properties.foresight_checks import check_cluster

#: Pod affinity makes single clusters take seconds; `make soak` has it too.
FEATURES = ("fractions", "memory", "elastic", "subgroups", "topology", "limits", "cpu", "spread", "mig")


@pytest.mark.parametrize("first", range(0, 200, 25))
def test_changes_start_it_and_are_the_smallest(first: int) -> None:
    answers = [check_cluster(seed, FEATURES) for seed in range(first, first + 25)]
    assert any(answer is not None and answer.changes for answer in answers)
