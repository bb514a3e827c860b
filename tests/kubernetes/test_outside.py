"""A server outside its cluster: tokens of a credential plugin that last seconds, a proxy, and a cluster that goes away.

Run by `make test-operators`, because the cluster is away for longer than any single request is tried.
"""

import contextlib
import json
import shlex
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import build, control
from deploy.cluster import cluster as clusters
from tests.clusters import set_nodes
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS

pytestmark = pytest.mark.operators
#: Longer than a request is tried (60 s), and than its last try may take.
AWAY_SECONDS = 75.0
#: What the API server gives a token of a service account at least; the plugin says that it ends earlier.
TOKEN = ("--duration=10m", "-n", "default", "outside")
PLUGIN = """
import datetime, json, pathlib, subprocess, sys
done = subprocess.run({command!r}, capture_output=True, text=True, check=True)
expires = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=14)
with open({runs!r}, "a") as file:
    file.write("run\\n")
status = {{"token": done.stdout.strip(), "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""


class Tunnel(socketserver.StreamRequestHandler):
    """One CONNECT, and then bytes in both directions."""

    #: Where tunnels led.
    targets: list[str]

    def handle(self) -> None:
        target = self.rfile.readline().split()[1].decode()
        while self.rfile.readline().strip():
            pass
        self.targets.append(target)
        host, _, port = target.rpartition(":")
        try:
            there = socket.create_connection((host, int(port)))
        except OSError:
            self.wfile.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
            return
        with there:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=pass_on, args=(there, self.connection))
            back.start()
            pass_on(self.connection, there)
            back.join()


def pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    for each in (source, target):
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def proxy() -> Iterator[tuple[str, list[str]]]:
    """Its URL, and where its tunnels led."""
    targets: list[str] = []
    handler = type("OwnTunnel", (Tunnel,), {"targets": targets})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", targets
        server.shutdown()
        serving.join()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A line for each run of the plugin."""
    return tmp_path_factory.mktemp("plugin") / "runs"


@pytest.fixture(scope="module")
def harness(
    cluster: clusters.Cluster, proxy: tuple[str, list[str]], runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterHarness]:
    folder = tmp_path_factory.mktemp("server")
    command = [build.kubectl(), f"--kubeconfig={cluster.kubeconfig}", "create", "token", *TOKEN]
    program = runs.parent / "plugin.py"
    program.write_text(PLUGIN.format(command=command, runs=str(runs)))
    config = json.loads(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = proxy[0]
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(program)]}
    config["users"][0]["user"] = {"exec": {**plugin, "interactiveMode": "Never"}}
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    made = ClusterHarness(cluster, folder, kubeconfig)
    account = ("serviceaccount", "outside", "-n", "default")
    binding = ("clusterrolebinding", "outside", "--clusterrole=cluster-admin", "--serviceaccount=default:outside")
    try:
        for words in (account, binding):
            assert made.kubectl("create", *words).returncode == 0, shlex.join(words)
        made.open(CRDS)
        yield made
    finally:
        made.close()
        made.kubectl("delete", "clusterrolebinding,serviceaccount", "outside", "-n", "default")
        # The API server was away for so long that nodes without a kubelet count as lost: later tests add new ones.
        set_nodes(cluster)


def run_really(harness: ClusterHarness, name: str, script: str) -> str:
    """On the node with a kubelet: others would not be ready again by themselves."""
    return harness.submit("training", name, harness.real(script))


def test_a_cluster_that_goes_away_fails_nothing_and_is_taken_up_again(
    harness: ClusterHarness, proxy: tuple[str, list[str]], runs: Path
) -> None:
    folder = harness.cluster.layout.folder
    stays = run_really(harness, "stays", "sleep 86397")
    harness.until_phase(stays, "Running")
    began = time.monotonic()
    control.stop(folder, "kube-apiserver")
    try:
        # Accepted now, and carried out later.
        later = run_really(harness, "later", "true")
        gone = run_really(harness, "gone", "sleep 86397")
        harness.act("delete", gone)
        until(lambda: time.monotonic() - began > AWAY_SECONDS, "the time", AWAY_SECONDS + 10)
        assert harness.server.phase(stays) == "Running"
        assert harness.server.phase(later) in ("Creating", "Pending")
    finally:
        control.start_again(folder, "kube-apiserver")
    harness.until_phase(later, "Completed")
    assert harness.server.phase(stays) == "Running"
    assert "Failed" not in harness.server.history(stays) + harness.server.history(later)
    until(lambda: len(harness.pods(stays)) == 1, "its pod", PATIENCE)
    before = len(runs.read_text().splitlines())
    assert before >= 3
    until(lambda: len(runs.read_text().splitlines()) > before, "another renewal", PATIENCE)
    assert set(proxy[1]) == {f"{harness.cluster.layout.address}:6443"}
