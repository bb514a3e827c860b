"""Several servers: on one data folder, on one database, for one machine."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fairlead.client import Client
from fairlead.client.duplex import open_duplex
from tests.e2e.cli_calls import COMMAND, Caller, surroundings
from tests.e2e.server import IDLE_PROCESSES, Server, until
from tests.e2e.web import ask_access, bearer, exposed, fetch, start_web
from tests.postgres import PostgresServer

CREDENTIALS = "credentials.json"


def start_and_fail(*arguments: str) -> str:
    """What a server says that must not start."""
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead", "serve", "--port", "0", *arguments],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 1, ended
    return ended.stderr


def test_a_second_server_on_the_same_folder_is_refused(make_server: Callable[..., Server]) -> None:
    first = make_server("--personal")
    assert "Another server uses the data folder" in start_and_fail("--data-dir", str(first.data_dir))


def test_a_second_server_for_the_same_database_is_refused_whatever_its_machine_is_called(
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
    for machine in ("local", "another"):
        said = start_and_fail("--personal", "--database", database, "--data-dir", str(other), "--machine", machine)
        assert "Another server runs machine local of this database" in said
        assert "--api-only" in said


@pytest.fixture
def pair(make_server: Callable[..., Server], postgres_server: PostgresServer, tmp_path: Path) -> tuple[Server, Server]:
    """A server that runs the machine, and another on the same database that serves only the API."""
    database = postgres_server.new_database()
    holder = make_server("--personal", "--database", database, "--proxy-port", "0")
    folder = tmp_path / "other"
    shutil.copytree(holder.data_dir / "keys", folder / "keys")
    shutil.copy(holder.data_dir / "credentials.json", folder / "credentials.json")
    return holder, make_server("--api-only", "--database", database, name="other")


def call(server: Server, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The command line beside that server."""
    command = [*COMMAND, *arguments]
    return subprocess.run(command, input=input, capture_output=True, env=surroundings(server.data_dir), timeout=120)


def test_servers_that_start_together_on_an_empty_database_agree(
    make_server: Callable[..., Server], postgres_server: PostgresServer, tmp_path: Path
) -> None:
    database = postgres_server.new_database()
    first = make_server("--personal")
    first.stop()
    flags = {"one": "--personal", "two": "--api-only", "three": "--api-only"}
    for name in flags:
        shutil.copytree(first.data_dir / "keys", tmp_path / name / "keys")
    with ThreadPoolExecutor() as pool:
        servers = pool.map(
            lambda name: make_server(flags[name], "--database", database, "--proxy-port", "0", name=name), flags
        )
        clusters = {server.credentials["clusterId"] for server in servers if (server.data_dir / CREDENTIALS).exists()}
    assert len(clusters) == 1


def test_a_server_without_pods_passes_logs_on(pair: tuple[Server, Server]) -> None:
    holder, other = pair
    workload_id = other.run("from-the-second", "sh -c", "'echo from afar'")
    other.until_phase(workload_id, "Completed")
    assert holder.logs(workload_id) == "from afar\n"
    assert other.logs(workload_id) == "from afar\n"
    refused = other.call("GET", f"/api/v1/workloads/{workload_id}/logs?attempt=7")
    assert refused.status == 404
    assert refused.json["code"] == 404


def test_a_server_without_pods_passes_sessions_on(pair: tuple[Server, Server], tmp_path: Path) -> None:
    holder, other = pair
    web = start_web(other, tmp_path / "web", "web", exposedUrls=[{"container": 8080}])
    ran = call(other, "exec", "web", "--", "sh", "-c", "echo beside; echo wrong >&2; exit 42")
    assert (ran.stdout, ran.stderr, ran.returncode) == (b"beside\n", b"wrong\n", 42)
    piped = call(other, "exec", "web", "-i", "--", "wc", "-c", input=b"x" * 500_000)
    assert (piped.stdout.strip(), piped.returncode) == (b"500000", 0)
    missing = call(other, "exec", "web", "--", "no-such-command")
    assert missing.returncode != 0
    assert b"no-such-command" in missing.stderr

    listener = other.run("listener", "/bin/sh", "-c 'read line; echo got $line'", stdin=True)
    other.until_phase(listener, "Running")
    assert call(other, "attach", "listener", input=b"hello\n").stdout == b"got hello\n"

    link = urlsplit(call(other, "url", "web").stdout.decode().strip())
    assert fetch(exposed(holder, web), f"{link.path}?{link.query}").status == 303


def test_a_server_without_pods_passes_questions_of_ingress_controllers_on(
    pair: tuple[Server, Server], tmp_path: Path
) -> None:
    holder, other = pair
    url = exposed(holder, start_web(other, tmp_path / "web", "web", exposedUrls=[{"container": 8080}]))
    assert ask_access(other, url).status == 401
    passed = ask_access(other, url, Cookie="a=1; fairlead-url=x", **bearer(other.token))
    assert (passed.status, passed.headers["cookie"], passed.headers["x-forwarded-user"]) == (200, "a=1", "fairlead")
    evil = ask_access(other, url, Origin="http://evil.localhost", Sec_WebSocket_Key="x", **bearer(other.token))
    assert evil.status == 403


def test_a_server_without_pods_passes_connections_to_ports_on(pair: tuple[Server, Server], tmp_path: Path) -> None:
    _, other = pair
    web = start_web(other, tmp_path / "web", "web")
    client = Client(other.url, token=other.token)
    connection = open_duplex(client, f"/api/v1/workloads/{web}/port-forward", "port=8080")
    connection.send(b"GET /here HTTP/1.0\r\n\r\n")
    answer = b""
    while not connection.is_over:
        answer += connection.receive()
    connection.close()
    client.close()
    assert b'"/here"' in answer


def test_a_server_without_pods_says_who_does_not_answer(pair: tuple[Server, Server]) -> None:
    holder, other = pair
    workload_id = other.run("alone", "sleep 1000")
    other.until_phase(workload_id, "Running")
    address = holder.url
    holder.kill()
    refused = other.call("GET", f"/api/v1/workloads/{workload_id}/logs")
    assert refused.status == 503
    assert f"The server at {address}, which runs this machine, cannot be reached" in refused.json["details"]


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


@pytest.mark.debian("openssl")
def test_the_command_line_knows_its_own_machines_server_by_its_certificate(tmp_path: Path) -> None:
    """Whatever names stand in it, and though nobody vouches for it; to others it is no safe connection."""
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere.example"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    words = ("--personal", "--host", "0.0.0.0", "--tls-certificate", str(certificate), "--tls-key", str(key))
    data = tmp_path / "data"
    serving = [sys.executable, "-m", "fairlead", "serve", "--port", "0", "--data-dir", str(data), *words]
    with subprocess.Popen(serving, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            until((data / "server.json").exists, "the server")
            inside = Caller(data)("list")
            assert inside.code == 0, inside.err
            url = json.loads((data / "server.json").read_text())["url"]
            outside = Caller(tmp_path / "nothing")("list", FAIRLEAD_URL=url)
            assert "No secure connection" in outside.err
            assert "`fairlead config set ca-file FILE`" in outside.err
            Caller(tmp_path / "nothing").ok("config", "set", "ca-file", str(certificate))
            known = Caller(tmp_path / "nothing")("list", FAIRLEAD_URL=url)
            assert "IP address mismatch" in known.err, "its authority is known, and its address is checked"
        finally:
            server.terminate()


def test_a_port_that_was_asked_for_and_is_taken_is_refused(make_server: Callable[..., Server], tmp_path: Path) -> None:
    first = make_server("--personal")
    port = first.url.rpartition(":")[2]
    said = start_and_fail("--port", port, "--data-dir", str(tmp_path / "fixed"))
    assert f"port {port} of" in said


def test_a_stopped_server_leaves_no_trace(make_server: Callable[..., Server]) -> None:
    server = make_server("--personal")
    server.stop()
    assert server.process is not None
    assert server.process.returncode == 0
    assert not (server.data_dir / "server.json").exists()
    assert "Stopped; pods keep running" in (server.data_dir / "logs" / "server.log").read_text()


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


def test_a_lost_pod_leaves_a_node_that_is_not_declared_any_more(tmp_path: Path) -> None:
    """Its place is gone: it waits until the scheduler has another, and starts there."""
    server = Server(tmp_path / "data", "--personal", "--retry-delay", "20", "--node", "first:cpu=2,memory=2Gi").start()
    try:
        workload = server.run("moves", "/bin/sleep", "600", compute={"cpuCoreRequest": 1})
        server.until_phase(workload, "Running")
        server.kill()
        for pid in server.leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for node, phase in (("small:cpu=0.5,memory=1Gi", "Pending"), ("second:cpu=2,memory=2Gi", "Running")):
            server.arguments = ("--personal", "--retry-delay", "20", "--node", node)
            server.token = ""
            server.start()
            server.until_phase(workload, phase)
            server.kill()
        server.start()
        server.until_phase(workload, "Running")
        pods = server.call("GET", f"/api/v1/workloads/{workload}/pods").json["pods"]
        assert [pod["nodeName"] for pod in pods if pod["k8sPhase"] == "Running"] == ["second"]
    finally:
        server.close()
