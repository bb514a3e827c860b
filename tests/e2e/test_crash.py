"""Kill -9 under load, the short form of `make soak`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.crash import MIN_KILLS, crash
from tests.e2e.server import Server
from tests.postgres import PostgresServer


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_and_nothing_runs_twice_on_sqlite(
    make_server: Callable[..., Server], tmp_path: Path, seed: int
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    report = crash(make_server("--personal"), marks, seed, seconds=8)
    assert report.problems == []
    assert report.kills >= MIN_KILLS


def test_nothing_acknowledged_is_lost_and_nothing_runs_twice_on_postgresql(
    make_server: Callable[..., Server], tmp_path: Path, postgres_server: PostgresServer
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    server = make_server("--personal", "--database", postgres_server.new_database())
    report = crash(server, marks, seed=3, seconds=8)
    assert report.problems == []
    assert report.kills >= MIN_KILLS


def test_what_waits_for_another_workload_starts_after_a_crash(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server("--personal")
    go = tmp_path / "go"
    prep = server.run("prep", f"sh -c 'until [ -e {go} ]; do sleep 0.05; done'")
    then = server.run("then", "true", annotations=[{"name": "fairlead/after", "value": "prep"}])
    server.until_phase(prep, "Running")
    server.until_phase(then, "Pending")
    server.kill()
    go.touch()
    server.start()
    server.until_phase(then, "Completed")
    assert server.phase(prep) == "Completed"
