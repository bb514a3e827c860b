"""Workspaces on real processes: kept while they are suspended, not preempted, open for people."""

import shlex
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.cli_calls import COMMAND, Caller, surroundings
from tests.e2e.server import Server, until
from tests.e2e.several import accepted, request

WORKSPACES = "/api/v1/workloads/workspaces"


def work(server: Server, name: str, script: str, **spec: Any) -> str:
    given = {"image": "x", "command": "sh -c", "args": shlex.quote(script), **spec}
    return accepted(server.call("POST", WORKSPACES, request(server, name, given)))


def test_it_is_for_people_and_not_preempted(server: Server) -> None:
    workload_id = work(server, "desk", "sleep 600")
    workload = server.until_phase(workload_id, "Running")
    assert (workload["type"], workload["category"], workload["preemptible"]) == ("Workspace", "Build", False)
    assert workload["priorityClassName"] == "high"
    assert server.call("DELETE", f"{WORKSPACES}/{workload_id}").status == 202


def test_a_suspend_keeps_its_claims_and_drops_the_ephemeral_ones(server: Server) -> None:
    claims = [
        {"path": "/kept", "claimInfo": {"size": "10Mi"}},
        {"path": "/lost", "claimInfo": {"size": "10Mi"}, "ephemeral": True},
    ]
    script = "ls /kept /lost; touch /kept/mine /lost/mine; sleep 600"
    workload_id = work(server, "drawer", script, storage={"pvc": claims})
    server.until_phase(workload_id, "Running")
    until(lambda: server.logs(workload_id), "its first words")
    first = server.logs(workload_id)
    assert server.call("POST", f"{WORKSPACES}/{workload_id}/suspend").status == 202
    server.until_phase(workload_id, "Stopped")
    assert server.call("POST", f"{WORKSPACES}/{workload_id}/resume").status == 202
    server.until_phase(workload_id, "Running")
    until(lambda: server.logs(workload_id) not in ("", first), "its second words")
    assert first.split() == ["/kept:", "/lost:"]
    assert server.logs(workload_id).split() == ["/kept:", "mine", "/lost:"]
    assert server.call("DELETE", f"{WORKSPACES}/{workload_id}").status == 202


def test_people_reach_its_input_and_run_commands_beside_it(server: Server, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    workload_id = work(server, "talks", f"read line; echo $line >{heard}; sleep 600", stdin=True, tty=True)
    server.until_phase(workload_id, "Running")
    fairlead = Caller(server.data_dir)
    assert fairlead.ok("workspace", "exec", "talks", "--", "sh", "-c", "echo $RUNAI_JOB_NAME") == "talks\n"
    words = [*COMMAND, "workspace", "attach", "talks"]
    environ = surroundings(server.data_dir)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ) as attached:
        assert attached.stdin is not None
        attached.stdin.write(b"hello\n")
        attached.stdin.flush()
        until(lambda: heard.exists() and heard.read_text() == "hello\n", "what was typed")
        attached.terminate()
    assert server.call("DELETE", f"{WORKSPACES}/{workload_id}").status == 202
