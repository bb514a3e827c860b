"""Several servers: on one data folder, on one database, for one machine."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.e2e.server import IDLE_PROCESSES, Server, until
from tests.postgres import PostgresServer


def start_and_fail(*arguments: str) -> str:
    """What a server says that must not start."""
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead", "serve", "--port", "0", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1, ended
    return ended.stderr


def test_a_second_server_on_the_same_folder_is_refused(make_server: Callable[..., Server]) -> None:
    first = make_server("--personal")
    assert "Another server uses the data folder" in start_and_fail("--data-dir", str(first.data_dir))


def test_a_second_server_for_the_same_machine_is_refused_and_another_serves_its_api(
    make_server: Callable[..., Server], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    database = postgres_server.new_database()
    first = make_server("--personal", "--database", database)
    other = tmp_path / "other"
    other.mkdir()
    said = start_and_fail("--personal", "--database", database, "--data-dir", str(other))
    assert "another signing key" in said
    shutil.rmtree(other / "keys")
    shutil.copytree(first.data_dir / "keys", other / "keys")
    said = start_and_fail("--personal", "--database", database, "--data-dir", str(other))
    assert "is run by another server" in said

    second = make_server("--api-only", "--database", database, name="other")
    second.token = first.log_in()
    shutil.copy(first.data_dir / "credentials.json", second.data_dir / "credentials.json")
    workload_id = second.run("from-the-second", "sh -c", "'echo from afar'")
    second.until_phase(workload_id, "Completed")
    assert first.logs(workload_id) == "from afar\n"
    assert second.logs(workload_id) == "from afar\n"


def test_a_server_that_was_killed_is_followed_at_once(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal")
    workload_id = server.run("goes-on", "sh -c", "'echo before; sleep 1; echo after'")
    server.until_phase(workload_id, "Running")
    server.kill()
    server.start()
    server.until_phase(workload_id, "Completed")
    assert server.logs(workload_id) == "before\nafter\n"
    assert server.history(workload_id).count("Running") == 1


def test_a_listener_beyond_loopback_wants_tls(tmp_path: Path) -> None:
    said = start_and_fail("--host", "0.0.0.0", "--data-dir", str(tmp_path / "data"))
    assert "--tls-certificate" in said


def test_a_port_that_was_asked_for_and_is_taken_is_refused(make_server: Callable[..., Server], tmp_path: Path) -> None:
    first = make_server("--personal")
    port = first.url.rpartition(":")[2]
    said = start_and_fail("--port", port, "--data-dir", str(tmp_path / "fixed"))
    assert f"Port {port}" in said


def test_a_server_that_is_told_to_end_leaves_no_trace_of_being_there(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal")
    server.stop()
    assert server.process is not None
    assert server.process.returncode == 0
    assert not (server.data_dir / "server.json").exists()
    assert "stopped; pods run on" in (server.data_dir / "logs" / "server.log").read_text()


def test_a_node_that_is_no_longer_declared_goes(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal", "--node", "old:cpu=2,memory=1Gi", "--node", "busy:cpu=2,memory=1Gi,labels=a=b")
    workload_id = server.run(
        "stays",
        "sleep 1000",
        nodeAffinityRequired={
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
        },
    )
    server.until_phase(workload_id, "Running")
    server.stop()
    server.arguments = ("--personal", "--node", "new:cpu=2,memory=1Gi")
    server.start()
    nodes = {node["name"]: node["status"] for node in server.call("GET", "/api/v1/nodes").json["nodes"]}
    assert nodes == {"new": "Ready", "busy": "NotReady"}
    assert server.phase(workload_id) == "Running"


def test_nothing_is_left_when_server_and_pods_are_gone(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal")
    workload_id = server.run("clean", "sh -c", "'setsid sleep 1000 & sleep 1000'", terminationGracePeriodSeconds=1)
    server.until_phase(workload_id, "Running")
    assert server.call("DELETE", f"/api/v1/workloads/trainings/{workload_id}").status == 202
    until(lambda: len(server.leftovers()) <= IDLE_PROCESSES, "the end of its processes")
    server.stop()
    until(lambda: server.leftovers() == [], "the end of the fork server")
