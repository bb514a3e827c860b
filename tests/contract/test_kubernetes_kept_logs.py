"""The output of pods that a cluster has deleted, through the Kubernetes engine."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead.engines.base import LogRequest
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.resources import JOB, POD
from fairlead.engines.kubernetes.engine import EngineSettings
from fairlead.engines.kubernetes.kept_logs import KeptLogs
from fairlead.model.errors import NotFound
from tests.contract.fake_cluster import Cluster, ClusterHarness, pod, run
from tests.contract.test_kubernetes_api import scenario

RUNNING = [{"name": "main", "state": {"running": {}}}]
ENDED = [{"name": "main", "state": {"terminated": {"exitCode": 0}}}]


class TalkingCluster(Cluster):
    """Its pods have output for as long as they are there; it is complete when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_complete = asyncio.Event()
        self.has_lost_node = False

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        if not path.endswith("/log"):
            async with super().stream(path, query) as pieces:
                yield pieces
            return
        self.asked.append(f"GET {path}")
        if self.has_lost_node:
            raise ApiError(500, "InternalError", "the node does not answer")
        yield self._output(is_followed=(query or {})["follow"] == "true")

    async def _output(self, *, is_followed: bool) -> AsyncIterator[bytes]:
        yield b"2026-01-01T00:00:01Z hello\n"
        if is_followed:
            await self.is_complete.wait()
        yield b"2026-01-01T00:00:02Z bye\n"


async def read(harness: ClusterHarness, id: str) -> bytes:
    return b"".join([piece async for piece in harness.engine.sessions.logs(LogRequest(pod_id=id))])


def test_output_outlives_the_pod(tmp_path: Path) -> None:
    async def outlive() -> None:
        cluster = TalkingCluster()
        logs = KeptLogs(tmp_path, 1 << 20)
        async with ClusterHarness(cluster, EngineSettings(kept_logs=logs)).open() as harness:
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            made = cluster.put(POD, pod(cluster.all(JOB)[0], "train-x", "Succeeded", containerStatuses=ENDED))
            id = made["metadata"]["uid"]
            await harness.settle()
            assert logs.has(id)
            cluster.has_lost_node = True
            assert await read(harness, id) == b"hello\nbye\n", "the node is gone before the pod"
            cluster.drop(POD, "train-x")
            await harness.until(lambda: not harness.report.pods)
            assert await read(harness, id) == b"hello\nbye\n"
            assert sum(path.endswith("/log") for path in cluster.asked) == 2
            with pytest.raises(NotFound):
                harness.engine.sessions.logs(LogRequest(pod_id="unknown"))
            await harness.engine.sessions.drop_logs([id])
            with pytest.raises(NotFound):
                harness.engine.sessions.logs(LogRequest(pod_id=id))

    scenario(outlive)()


def test_output_of_a_pod_that_is_deleted_while_it_runs(tmp_path: Path) -> None:
    async def follow() -> None:
        cluster = TalkingCluster()
        logs = KeptLogs(tmp_path, 1 << 20)
        async with ClusterHarness(cluster, EngineSettings(kept_logs=logs)).open() as harness:
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            made = cluster.put(POD, pod(cluster.all(JOB)[0], "train-x", containerStatuses=RUNNING))
            await harness.until(lambda: harness.report.pods)
            assert not any(path.endswith("/log") for path in cluster.asked)
            cluster.change(POD, "train-x", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
            await harness.settle()
            assert any(path.endswith("/log") for path in cluster.asked)
            cluster.drop(POD, "train-x")
            await harness.until(lambda: not harness.report.pods)
            cluster.is_complete.set()
            await harness.settle()
            assert logs.has(made["metadata"]["uid"])
            assert await read(harness, made["metadata"]["uid"]) == b"hello\nbye\n"

    scenario(follow)()


def test_nothing_is_asked_for_if_nothing_is_kept() -> None:
    async def keep_nothing() -> None:
        cluster = TalkingCluster()
        async with ClusterHarness(cluster).open() as harness:
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            cluster.put(POD, pod(cluster.all(JOB)[0], "train-x", "Succeeded", containerStatuses=ENDED))
            await harness.until(lambda: harness.report.pods)
            await harness.settle()
            assert not any(path.endswith("/log") for path in cluster.asked)
            assert await harness.engine.sessions.expire_logs(0) == 0

    scenario(keep_nothing)()
