"""Kill -9 under load, the short form of `make soak`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.crash import crash
from tests.e2e.server import Server


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice_on_sqlite(
    make_server: Callable[..., Server], tmp_path: Path, seed: int
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    report = crash(make_server("--personal"), marks, seed, seconds=8)
    assert report.problems == []
    assert report.kills >= 3
