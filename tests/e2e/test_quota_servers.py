"""Projects over two servers on one database: what one of them is told holds at the other, and in the loop."""

import shutil
from collections.abc import Callable

from tests.e2e.server import Server, until
from tests.e2e.test_quota import PROJECTS, explanation, node, project, submit
from tests.postgres import PostgresServer


def test_quotas_set_at_one_server_apply_at_the_other(
    make_server: Callable[..., Server], postgres_server: PostgresServer
) -> None:
    database = postgres_server.new_database()
    first = make_server("--personal", "--database", database, *node(gpus=2))
    other = first.data_dir.parent / "other"
    shutil.copytree(first.data_dir / "keys", other / "keys")
    shutil.copy(first.data_dir / "credentials.json", other)
    second = make_server("--api-only", "--database", database, name="other")
    ours, theirs = project(second, "team-a", 0), project(first, "team-b", 2)
    until(lambda: second.call("GET", f"{PROJECTS}/{theirs}").status == 200, "the project at the other server")
    until(lambda: first.call("GET", f"{PROJECTS}/{ours}").status == 200, "the project at the first server")
    borrowers = [submit(second, ours, f"a{number}") for number in range(2)]
    for id in borrowers:
        first.until_phase(id, "Running")
    limit = [{"nodePool": {"id": "1"}, "gpu": {"deserved": 2, "limit": 1}}]
    assert second.call("PATCH", f"{PROJECTS}/{theirs}/resources", limit).status == 400
    limit = [{"nodePool": {"id": "1"}, "gpu": {"deserved": 1, "limit": 1}}]
    assert second.call("PATCH", f"{PROJECTS}/{theirs}/resources", limit).status == 200
    owner = submit(second, theirs, "b0")
    second.until_phase(owner, "Running")
    waits = submit(second, theirs, "b1")
    until(lambda: second.workload(waits).get("phaseReason") == "OverLimit", "its limit")
    told = explanation(second, waits)["waiting"]
    assert told["reason"]["code"] == "OverLimit"
    assert second.call("DELETE", f"{PROJECTS}/{theirs}").status == 202
    until(lambda: second.call("GET", f"{PROJECTS}/{theirs}").status == 404, "its end at the other server")
    until(lambda: all(first.phase(id) == "Running" for id in borrowers), "the borrowers' return")
