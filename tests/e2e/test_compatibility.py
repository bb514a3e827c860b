"""Readings of the Run:ai documents that only a whole server shows; the compatibility page names these tests."""

import os
from pathlib import Path

from tests.e2e.server import Server

OLDER_PAGE = Path(__file__).parents[1] / "golden/training/older-page.request.json"


def test_the_older_page_posted_literally_is_accepted(server: Server) -> None:
    answer = server.call("POST", "/api/v1/workloads/trainings", OLDER_PAGE.read_bytes())
    assert answer.status == 202, answer
    assert answer.json["projectId"] == "1"
    # It names objects that the project does not have: it waits for them and says which, and is not refused.
    waiting = server.until_phase(answer.json["workloadId"], "Pending")
    assert " to be created in its project" in waiting["phaseMessage"]
    assert [one["reason"] for one in waiting["conditions"] if one["type"] == "WaitsForNames"] == ["NotFound"]


def test_a_request_without_effect_leaves_an_event(server: Server) -> None:
    workload_id = server.run("finished", "true")
    server.until_phase(workload_id, "Completed")
    for word in ("suspend", "resume"):
        assert server.call("POST", f"/api/v1/workloads/trainings/{workload_id}/{word}").status == 202
    assert server.phase(workload_id) == "Completed"
    events = server.call("GET", f"/api/v1/workloads/{workload_id}/events").json["events"]
    assert [event["reason"] for event in events].count("NoEffect") == 2


def test_variables_resolve_in_both_spellings(server: Server) -> None:
    workload_id = server.run(
        "spelled",
        "echo",
        "${GREETING} $(GREETING) $(RUNAI_JOB_NAME)",
        environmentVariables=[{"name": "GREETING", "value": "good day"}],
    )
    server.until_phase(workload_id, "Completed")
    assert server.logs(workload_id) == "good day good day spelled\n"


def test_a_training_keeps_the_hosts_network(server: Server) -> None:
    workload_id = server.run("networked", "readlink /proc/self/ns/net")
    server.until_phase(workload_id, "Completed")
    assert server.logs(workload_id).strip() == os.readlink("/proc/self/ns/net")
