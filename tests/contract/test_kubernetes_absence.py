"""An API server that is away for hours: what the engine says meanwhile, how often it asks, and what it does after that.

The engine, its watches and the retries of its requests are the real ones, on an event loop whose hours are short.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from fairlead.engines.base import ApplyOrganization, ApplyWorkload, WorkloadReport
from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.connection import Answer
from fairlead.engines.kubernetes.client.resources import JOB, POD, QUEUE
from fairlead.model.records.phase import Phase
from tests.contract.fake_cluster import Cluster, ClusterHarness, pod, run, told
from tests.contract.virtual_time import run_in_virtual_time

HOUR = 3600.0
#: Seconds within which everything is as it should be when the API server is back.
PROMPT = 15.0


class DistantCluster(Cluster):
    """May be away: connections are refused, and those that exist break."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self._left = asyncio.Event()
        #: When somebody tried to reach it in vain.
        self.tries: list[float] = []

    def leave(self) -> None:
        self.is_away = True
        self._left.set()

    def come_back(self) -> None:
        self.is_away = False
        self._left = asyncio.Event()

    async def request(self, method: str, path: str, body: Any = None, **asked: Any) -> bytes:
        # With the retries of a real one: returns when it answers, or raises when patience is over.
        await Api.request(self, method, path)
        return await super().request(method, path, body, **asked)

    async def _exchange(self, method: str, target: str, data: bytes, content: str) -> tuple[Answer, bytes]:
        self._refuse_if_away()
        return cast(Answer, SimpleNamespace(status=200, headers={})), b""

    def _refuse_if_away(self) -> None:
        if self.is_away:
            self.tries.append(asyncio.get_running_loop().time())
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str] | None = None) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            self._refuse_if_away()
        except OSError as error:
            self._on_unreachable(error)
            raise
        async with super().stream(path, query) as pieces:
            self._on_answer()
            yield self._until_it_leaves(pieces)

    async def _until_it_leaves(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        leaving = asyncio.ensure_future(self._left.wait())
        try:
            while True:
                piece = asyncio.ensure_future(anext(pieces))
                await asyncio.wait((piece, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not piece.done():
                    piece.cancel()
                    raise ConnectionResetError("the API server closed the connection")
                yield piece.result()
        finally:
            leaving.cancel()


async def look(harness: ClusterHarness) -> dict[str, WorkloadReport]:
    """The last report of each workload."""
    harness.reports += [one for one in await harness.engine.observe() if isinstance(one, WorkloadReport)]
    return {report.workload_id: report for report in harness.reports}


async def stay_away(harness: ClusterHarness, cluster: DistantCluster) -> None:
    cluster.leave()
    await asyncio.sleep(60)
    # What people ask for meanwhile.
    later = msgspec.structs.replace(run(), workload_id="later", name="later")
    await harness.engine.apply((ApplyWorkload(later),))
    known = told()
    [project] = known.projects
    added = msgspec.structs.replace(project, id="8", name="team-b")
    await harness.engine.apply([ApplyOrganization(msgspec.structs.replace(known, projects=(project, added)))])
    await asyncio.sleep(HOUR)


def test_an_hour_without_the_api_server() -> None:
    async def test() -> None:
        cluster = DistantCluster()
        async with ClusterHarness(cluster).open() as harness:
            await harness.set_desired(run())
            await harness.until(lambda: cluster.all(JOB))
            [job] = cluster.all(JOB)
            cluster.put(POD, pod(job, "train-a"))
            await harness.until(lambda: harness.report.pods)
            await stay_away(harness, cluster)

            # It says so, keeps what it knows, and goes on asking.
            reports = await look(harness)
            assert "does not answer: Connection refused" in harness.engine.away()
            assert "does not answer: Connection refused" in reports["later"].retrying_because
            assert (reports["w"].ended, [one.name for one in reports["w"].pods]) == (None, ["train-a"])
            now = asyncio.get_running_loop().time()
            last = [at for at in cluster.tries if at > now - 600] + [now]
            assert max(later - earlier for earlier, later in pairwise(last)) <= 5
            # Nor does it ask without a pause: thirteen watches and a few requests, each every five seconds at most.
            assert len(last) / 600 < 10

            # Meanwhile the pod has ended. Everything is seen and done soon after the return, and nothing twice.
            done = {"type": "Complete", "status": "True"}
            cluster.change(POD, "train-a", {"status": {"phase": "Succeeded"}})
            cluster.change(JOB, "train", {"status": {"succeeded": 1, "conditions": [done]}})
            cluster.asked.clear()
            cluster.come_back()
            await asyncio.sleep(PROMPT)
            reports = await look(harness)
            assert harness.engine.away() == ""
            assert reports["w"].ended is Phase.COMPLETED
            assert reports["later"].retrying_because == ""
            assert cluster.names(JOB) == ["later", "train"]
            assert "team-b" in cluster.names(QUEUE)
            assert [one for one in cluster.asked if one.startswith("DELETE")] == []

    run_in_virtual_time(test)
