"""The past of a server that was killed: rebuilt states, the same decisions, and who evicted whom."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.e2e.test_quota import node, project, submit


@pytest.fixture
def killed(tmp_path: Path) -> Server:
    return Server(tmp_path / "data", *node(gpus=2))


def test_the_past_survives_kill_9(killed: Server, tmp_path: Path) -> None:
    server = killed.start()
    try:
        poor, rich = project(server, "poor", 0), project(server, "rich", 2)
        borrows = submit(server, poor, "borrows", 2)
        server.until_phase(borrows, "Running")
        waits = submit(server, poor, "waits", 2)
        server.until_phase(waits, "Pending")
        until(lambda: "GPUs" in server.workload(waits)["phaseMessage"], "the reason of the wait")
        before = datetime.now(UTC).isoformat()
        claims = submit(server, rich, "claims", 1)
        server.until_phase(claims, "Running")
        server.kill()
        server.start()

        cli = Caller(server.data_dir)
        then = json.loads(cli.ok("why", "waits", "-p", "poor", "--at", before, "-o", "json"))
        assert (then["status"], then["reason"]["code"]) == ("waits", "NoNodeFits")
        state = cli.ok("snapshot", "--at", before)
        (tmp_path / "state.json").write_text(state)
        assert {job["name"] for job in json.loads(state)["jobs"]} == {"borrows", "waits"}
        decisions = [cli.ok("schedule", "-f", str(tmp_path / "state.json")) for _ in range(2)]
        assert decisions[0] == decisions[1]
        again = json.loads(cli.ok("replay", "--from", "1h", "-o", "json"))
        assert (again["cycles"], again["differences"]) == (again["same"], [])
        assert again["binds"] >= 2
        past = json.loads(cli.ok("why", "borrows", "-p", "poor", "--history", "-o", "json"))
        [evicted] = past["evictions"]
        assert (evicted["rule"], evicted["by"]["workload"]) == ("reclaimed", "claims")
        first = json.loads(cli.ok("why", "waits", "-p", "poor", "--after", "rich/claims", "-o", "json"))
        assert first["cause"] in ("noPlace", "project")
        refused = cli("snapshot", "--at", "2020-01-01")
        assert refused.code != 0
        assert "No scheduling cycle of 2020-01-01" in refused.err
    finally:
        server.close()
