"""Output of pods that are gone, read from a real Loki, to which the test sends it as an agent on the nodes would."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.cluster import build
from deploy.cluster import cluster as clusters
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS
from tests.kubernetes.test_ingress import free_port
from tests.loki_lines import LINES, SECOND, send

pytestmark = pytest.mark.operators

CONFIGURATION = """
auth_enabled: false
server:
  {{http_listen_address: 127.0.0.1, http_listen_port: {http}, grpc_listen_address: 127.0.0.1, grpc_listen_port: {grpc}}}
common:
  path_prefix: {folder}
  instance_addr: 127.0.0.1
  replication_factor: 1
  ring: {{kvstore: {{store: inmemory}}}}
  storage: {{filesystem: {{chunks_directory: {folder}/chunks, rules_directory: {folder}/rules}}}}
schema_config:
  configs:
    - {{from: "2020-01-01", store: tsdb, object_store: filesystem, schema: v13, index: {{prefix: index_, period: 24h}}}}
analytics: {{reporting_enabled: false}}
"""


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    build.build(("loki",))
    folder: Path = tmp_path_factory.mktemp("loki")
    port = free_port()
    configuration = folder / "loki.yaml"
    configuration.write_text(CONFIGURATION.format(http=port, grpc=free_port(), folder=folder))
    url = f"http://127.0.0.1:{port}"
    with (folder / "loki.log").open("wb") as log:
        process = subprocess.Popen([build.place_of("loki"), f"-config.file={configuration}"], stdout=log, stderr=log)
    try:
        until(lambda: is_ready(url), "Loki", PATIENCE)
        yield url
    finally:
        process.terminate()
        process.wait()


def is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.HTTPError, OSError):
        return False


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, loki: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    """Of a server that keeps no output itself."""
    flags = ("--loki-url", loki, "--keep-logs-size", "0")
    harness = ClusterHarness(cluster, tmp_path_factory.mktemp("server"), arguments=flags)
    try:
        harness.open(CRDS)
        yield harness
    finally:
        harness.close()


def test_output_of_a_deleted_pod_comes_from_loki(harness: ClusterHarness, loki: str) -> None:
    workload = harness.train("spoke")
    harness.until_phase(workload, "Running")
    [pod] = harness.objects("pods")
    send(loki, time.time_ns() - 30 * SECOND, harness.namespace, pod["metadata"]["name"])
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert harness.objects("pods") == []
    name = pod["metadata"]["name"]
    until(lambda: harness.server.call("GET", logs(workload, name)).status == 200, "lines in Loki", PATIENCE)
    assert harness.server.logs(workload, f"?pod={name}").splitlines() == list(LINES)
    assert harness.server.logs(workload, f"?pod={name}&tail=2").splitlines() == list(LINES[-2:])


def logs(workload: str, pod: str) -> str:
    return f"/api/v1/workloads/{workload}/logs?pod={pod}"
