"""Trainings from submission to end on real processes, through the real API."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.server import Server, until


def test_a_training_runs_and_its_output_can_be_read(server: Server, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f"echo hello; echo $RUNAI_JOB_NAME $RUNAI_PROJECT; until test -e {seen}; do sleep 0.05; done"
    workload_id = server.run("hello", "sh -c", f"'{script}'")
    server.until_phase(workload_id, "Running")
    seen.touch()
    done = server.until_phase(workload_id, "Completed")
    assert server.logs(workload_id) == "hello\nhello default\n"
    assert done["completedAt"] is not None
    assert server.history(workload_id) == ["Creating", "Pending", "Initializing", "Running", "Completed"]


class Failure(NamedTuple):
    name: str
    command: str
    spec: dict[str, Any]
    want_words: str


FAILURES = [
    Failure("exit-code", "sh -c 'exit 7'", {"backoffLimit": 0}, "exit code 7"),
    Failure("no-command", "/no/such/program", {}, "No such file or directory"),
    Failure("no-permission", "/etc/passwd", {}, "Permission denied"),
    Failure("no-folder", "true", {"workingDir": "/no/such/folder"}, "/no/such/folder"),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.name)
def test_a_failure_says_why(server: Server, case: Failure) -> None:
    workload_id = server.run(case.name, case.command, **case.spec)
    failed = server.until_phase(workload_id, "Failed")
    assert case.want_words in failed["phaseMessage"]


def test_a_failed_pod_is_retried_until_the_limit(server: Server) -> None:
    workload_id = server.run("retried", "sh -c 'echo try; exit 1'", backoffLimit=2)
    server.until_phase(workload_id, "Failed")
    pods = server.call("GET", f"/api/v1/workloads/{workload_id}/pods").json["pods"]
    assert len(pods) == 3


@pytest.mark.parametrize(("policy", "want_pods", "want_starts"), [("Never", 3, 1), ("OnFailure", 1, 3)])
def test_a_restart_makes_a_new_pod_or_restarts_in_place(
    server: Server, tmp_path: Any, policy: str, want_pods: int, want_starts: int
) -> None:
    counter = tmp_path / "count"
    script = f"echo x >> {counter}; test $(wc -l < {counter}) -ge 3"
    workload_id = server.run(f"restart-{policy.lower()}", f"sh -c '{script}'", restartPolicy=policy)
    server.until_phase(workload_id, "Completed")
    pods = server.call("GET", f"/api/v1/workloads/{workload_id}/pods").json["pods"]
    assert len(pods) == want_pods
    assert len(counter.read_text().split()) == 3


def test_always_restarts_even_after_success(server: Server, tmp_path: Any) -> None:
    counter = tmp_path / "count"
    workload_id = server.run("always", f"sh -c 'echo x >> {counter}'", restartPolicy="Always")
    until(lambda: counter.exists() and len(counter.read_text().split()) >= 3, "three runs")
    assert server.phase(workload_id) in ("Running", "Degraded", "Initializing")
    server.call("DELETE", f"/api/v1/workloads/trainings/{workload_id}")


def test_a_sweep_runs_each_pod_on_its_own(server: Server) -> None:
    workload_id = server.run("sweep", "true", completions=7, parallelism=3)
    done = server.until_phase(workload_id, "Completed")
    pods = server.call("GET", f"/api/v1/workloads/{workload_id}/pods").json["pods"]
    assert len(pods) == 7
    assert len({pod["name"] for pod in pods}) == 7
    assert done["runningPods"] == 0


def test_suspend_and_resume_keep_the_id_and_make_new_pods(server: Server) -> None:
    workload_id = server.run("pausing", "sleep 300", terminationGracePeriodSeconds=5)
    server.until_phase(workload_id, "Running")
    path = f"/api/v1/workloads/trainings/{workload_id}"
    assert server.call("POST", f"{path}/suspend").status == 202
    server.until_phase(workload_id, "Stopped")
    assert server.call("POST", f"{path}/suspend").status == 202
    assert server.call("POST", f"{path}/resume").status == 202
    server.until_phase(workload_id, "Running")
    names = {pod["name"] for pod in server.call("GET", f"/api/v1/workloads/{workload_id}/pods").json["pods"]}
    assert names == {"pausing-1-0"}
    assert server.call("DELETE", path).status == 202
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "the end of its pods")
    assert server.call("DELETE", path).status == 404
    assert server.call("GET", path).json["desiredPhase"] == "Deleted"


def test_the_grace_is_given_and_then_ended(server: Server, tmp_path: Any) -> None:
    mark = tmp_path / "mark"
    stubborn = f"""sh -c 'trap "echo term > {mark}" TERM; echo ready; while :; do sleep 0.05; done'"""
    workload_id = server.run("stubborn", stubborn, terminationGracePeriodSeconds=1)
    until(lambda: "ready" in server.logs(workload_id), "its first line") if server.until_phase(
        workload_id, "Running"
    ) else None
    server.call("POST", f"/api/v1/workloads/trainings/{workload_id}/suspend")
    server.until_phase(workload_id, "Stopped")
    assert mark.read_text() == "term\n"


#: Writes its pid, and a file when it is asked to end; it does not end by itself.
STUBBORN = """sh -c 'trap "echo term > {mark}" TERM; echo $$ > {mark}.pid; while :; do sleep 0.05; done'"""


@pytest.mark.parametrize("grace", [0, 1])
@pytest.mark.parametrize("verb", ["suspend", "delete"])
def test_no_workload_has_stopped_while_its_process_runs(server: Server, tmp_path: Path, verb: str, grace: int) -> None:
    """Asked as often as the server answers; with a grace period of 0 the process is killed and hears no TERM."""
    mark = tmp_path / "mark"
    name = f"ends-{verb}-{grace}"
    workload_id = server.run(name, STUBBORN.format(mark=mark), terminationGracePeriodSeconds=grace)
    path = f"/api/v1/workloads/trainings/{workload_id}"
    pid = mark.with_name("mark.pid")
    process = Path("/proc") / until(lambda: pid.exists() and pid.read_text().strip(), "its pid")
    server.until_phase(workload_id, "Running")
    began = time.monotonic()
    method, where = ("DELETE", path) if verb == "delete" else ("POST", f"{path}/suspend")
    assert server.call(method, where).status == 202

    def has_stopped() -> bool:
        answer = server.workload(workload_id)
        return answer["phase"] == "Stopped" or (answer["phase"] == "Deleting" and not answer.get("phaseMessage"))

    until(has_stopped, "its end")
    assert not process.exists()
    assert mark.exists() is (grace > 0)
    assert time.monotonic() - began >= grace


def test_a_workload_that_cannot_fit_says_what_it_lacks(server: Server) -> None:
    workload_id = server.run("too-big", "true", compute={"cpuCoreRequest": 100_000})
    waiting = server.until_phase(workload_id, "Pending")
    message = until(lambda: "CPU" in (m := server.message(workload_id)) and m, "a reason")
    assert "100000" in message or "100,000" in message
    assert waiting["phaseReason"] is None if "phaseReason" in waiting else True
    server.call("DELETE", f"/api/v1/workloads/trainings/{workload_id}")


def test_a_finished_workload_deletes_itself(server: Server) -> None:
    workload_id = server.run("short-lived", "true", autoDeletionTimeAfterCompletionSeconds=0)
    until(lambda: server.call("GET", f"/api/v1/workloads/trainings/{workload_id}").json["deletedAt"], "its deletion")
    listed = server.call("GET", "/api/v1/workloads?deleted=true&limit=500").json["workloads"]
    assert workload_id in {workload["id"] for workload in listed}


def test_an_equal_newcomer_waits_for_the_same_reason_from_its_first_record(server: Server) -> None:
    compute = {"cpuCoreRequest": 90_000}
    first = server.run("waits-first", "true", compute=compute)
    reason = until(lambda: "CPU" in (m := server.message(first)) and m, "a reason")
    second = server.run("waits-second", "true", compute=compute)
    until(lambda: server.message(second) == reason.replace("waits-first", "waits-second"), "the same reason")
    twin = server.workload(second)
    assert server.history(second) == ["Creating", "Pending"]
    assert [c["type"] for c in twin["conditions"]] == [c["type"] for c in server.workload(first)["conditions"]]
    for workload_id in (first, second):
        assert server.call("DELETE", f"/api/v1/workloads/trainings/{workload_id}").status == 202
