"""Random plays: shortcuts of the scheduler find what the plain way finds, and nothing goes above capacity."""

from __future__ import annotations

import pytest

from .plays import FEATURES, differences, play


@pytest.mark.parametrize("seed", range(60))
def test_shortcuts_find_what_the_plain_way_finds_in_a_play(seed: int) -> None:
    assert [differences(snapshot, plain) for snapshot, plain in play(seed, 8)] == [[]] * 8


@pytest.mark.parametrize("feature", FEATURES)
def test_shortcuts_find_what_the_plain_way_finds_with_each_feature(feature: str) -> None:
    for seed in range(3):
        for snapshot, plain in play(seed, 6, (feature,)):
            assert differences(snapshot, plain) == []


@pytest.mark.parametrize("seed", [1034, 1162, 1353, 2651])
def test_plays_that_found_faults(seed: int) -> None:
    """A proof that took a promised GPU for no GPU, places that were promised twice, and costs of jobs that had left."""
    for snapshot, plain in play(seed, 12):
        assert differences(snapshot, plain) == []
