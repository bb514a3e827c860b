"""What this server recorded, replayed: over HTTP and by the command line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli.exit_codes import OK, USAGE
from fairlead.control.loop.usage_retention import begin_ledger
from fairlead.model.clock import SECOND
from tests.contract.api.api_server import START, ApiServer
from tests.contract.api.busy_node import FILLS, fill_node
from tests.contract.api.test_people import RESEARCHER, Person
from tests.unit.cli.calling import Called, call

HISTORY = "/api/v1/scheduling/history"
SINCE = ("--since", "2023-11-14T22:13:00", "--until", "2023-11-14T22:15:00")


@pytest.fixture
def busy(make_api: Callable[..., ApiServer]) -> ApiServer:
    """`fills` has run for 100 s, and `waits` has waited as long."""
    api = make_api()
    fill_node(api)
    api.do(begin_ledger(api.context))
    api.clock.now = START + 100 * SECOND
    return api


def ask(api: ApiServer, home: Path, *words: str) -> Called:
    url = f"http://127.0.0.1:{api.port}"
    return call("what-if", *words, home=home, FAIRLEAD_URL=url, FAIRLEAD_TOKEN=api.token)


def test_what_ran_and_how_long(busy: ApiServer) -> None:
    found = busy.get(HISTORY)
    assert (found["since"], found["leftOut"]) == ("2023-11-14T22:13:20.000Z", 1)
    (run,) = found["submissions"]
    shown = [run[name] for name in ("id", "at", "project", "duration", "gpus", "pods", "cpuMilli", "priority")]
    assert shown == [FILLS, START / 1000, "default", 100, 0, 1, 4000, 90]
    assert busy.call("GET", f"{HISTORY}?until=2023-11-01T00:00:00Z").status == 400


def test_only_who_may_read_the_scheduler(busy: ApiServer) -> None:
    ada = Person(busy, "ada@example.com")
    ada.may(RESEARCHER, "project", "1")
    assert busy.call("GET", HISTORY, token=ada.token).status == 403


def test_the_command_replays_it_on_the_servers_nodes(busy: ApiServer, tmp_path: Path) -> None:
    called = ask(busy, tmp_path, "history", *SINCE, "--add-node", "alpha", "-o", "json")
    assert called.code == OK, called
    answer = json.loads(called.out)
    (project,) = [each for each in answer["before"]["projects"] if each["workloads"]]
    assert (project["project"], project["workloads"], project["waitP90"]) == ("default", 1, 0)
    assert "Left out: 1 workload that only waited." in answer["assumptions"]
    shown = ask(busy, tmp_path, "history", *SINCE)
    assert "All: wait p50 0s" in shown.out
    assert "The nodes, quotas and settings are those that the server has now." in shown.err


def test_capacity_from_the_servers_records(busy: ApiServer, tmp_path: Path) -> None:
    found = ask(busy, tmp_path, "capacity", *SINCE, "--target", "p90 wait of default <= 1m")
    assert found.code == OK, found
    assert found.out.endswith("The smallest that is enough: 0 more nodes like alpha.\n")


def test_a_file_has_its_own_period(busy: ApiServer, tmp_path: Path) -> None:
    refused = ask(busy, tmp_path, "history", "jobs.json", "--since", "7d")
    assert (refused.code, "leave out FILE" in refused.err) == (USAGE, True)
