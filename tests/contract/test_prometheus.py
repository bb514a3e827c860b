"""What pods use, asked of a real Prometheus: series as NVIDIA's DCGM exporter and kubelets write them, recorded."""

import http.server
import re
import subprocess
import threading
from collections.abc import Iterator
from math import isnan
from pathlib import Path

import pytest

from fairlead.engines.kubernetes.client.resources import JOB, POD
from fairlead.engines.kubernetes.engine import EngineSettings
from fairlead.engines.kubernetes.prometheus import PodKey, Prometheus
from fairlead.model.resource_usage import MeasuredUsage
from tests.contract.fake_cluster import Cluster, ClusterHarness, pod, run, the_pods
from tests.contract.test_kubernetes_api import scenario

RECORDED = Path(__file__).parent / "data" / "dcgm.om"
#: When the series were recorded.
THEN = 1763424000.0
PODS: dict[PodKey, str] = {
    ("runai-team-a", "train-a"): "two-gpus",
    ("runai-team-a", "notebook-0"): "idle",
    ("runai-team-a", "slice-0"): "slice",
    ("runai-team-a", "new"): "new",
}
_LISTENS = re.compile(r'msg="Listening on" address=(\S+)')


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(RECORDED), str(folder / "data")]
    subprocess.run(blocks, check=True, capture_output=True)
    (folder / "prometheus.yml").write_text("global: {}\n")
    flags = ["--web.listen-address=127.0.0.1:0", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]
    command = ["prometheus", "--config.file=prometheus.yml", *flags]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address, lines = "", iter(server.stderr)
        for line in lines:
            match = _LISTENS.search(line)
            address = match[1] if match else address
            if "ready to receive web requests" in line:
                break
        drain = threading.Thread(target=lambda: [None for _ in lines])
        drain.start()
        try:
            yield f"http://{address}"
        finally:
            server.terminate()
            drain.join()


def observe(url: str, at: float = THEN) -> dict[str, MeasuredUsage]:
    return {usage.id: usage for usage in Prometheus(f"{url}/", at).observe(PODS)}


@pytest.mark.debian("prometheus")
def test_what_pods_use(url: str) -> None:
    observed = observe(url)
    # The average of two GPUs, the sum of their memory, and the containers of the pod without their sum.
    assert observed["two-gpus"] == MeasuredUsage("two-gpus", 102.0, 4 << 30, 60.0, 40000 << 20)
    idle = observed["idle"]
    assert (idle.cpu_seconds, idle.gpu_percent, idle.gpu_memory_bytes) == (7.0, 0.0, None)
    assert isnan(idle.memory_bytes)


@pytest.mark.debian("prometheus")
def test_a_mig_slice_is_as_busy_as_its_engine(url: str) -> None:
    sliced = observe(url)["slice"]
    assert (sliced.gpu_percent, sliced.gpu_memory_bytes) == (25.0, 1000 << 20)


@pytest.mark.debian("prometheus")
def test_a_pod_that_is_not_measured_yet_is_there_without_figures(url: str) -> None:
    for usage in (observe(url)["new"], observe(url, THEN + 3600)["two-gpus"]):
        assert isnan(usage.cpu_seconds)
        assert (usage.gpu_percent, usage.gpu_memory_bytes) == (None, None)


@pytest.mark.debian("prometheus")
def test_the_engine_asks_for_its_running_pods(url: str) -> None:
    async def ask() -> None:
        cluster = Cluster()
        async with ClusterHarness(cluster, EngineSettings(prometheus=Prometheus(url, THEN))).open() as harness:
            assert harness.engine.observe_usage() == [], "nothing runs"
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            for name, phase in (("train-a", "Running"), ("notebook-0", "Pending")):
                cluster.put(POD, pod(cluster.all(JOB)[0], name, phase))
            await harness.until(lambda: len(harness.report.pods) == 2)
            [found] = harness.engine.observe_usage()
            assert (found.id, found.gpu_percent) == (the_pods(cluster)["train-a"], 60.0)

    scenario(ask)()


class _Page(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>sign in</html>")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_something_else_at_that_address() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with pytest.raises(OSError, match="does not answer like Prometheus"):
                observe(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


def test_no_server_at_that_address() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _Page) as server:
        port = server.server_port
    with pytest.raises(OSError, match="refused"):
        observe(f"http://127.0.0.1:{port}")
