"""Both engines behind the same few verbs, so that one suite can ask the same of each through its seam.

The local engine is told pod by pod, the cluster's whole workloads; what a test sees is one run of one script.
"""

import asyncio
import contextlib
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from fairlead.engines.base import (
    ApplyOrganization,
    ApplyWorkload,
    ClusterPod,
    DeleteWorkload,
    DesiredOrganization,
    DesiredWorkload,
    Engine,
    ExecRequest,
    LogRequest,
    PodReport,
    PodState,
    Sessions,
    Start,
    Stop,
    WorkloadReport,
)
from fairlead.engines.kubernetes.client.api import Api
from fairlead.engines.kubernetes.client.kubeconfig import load_access
from fairlead.engines.kubernetes.engine import KubernetesEngine
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.podset import PodContainer, PodSet, PodSpec, Request
from fairlead.model.records.organization import Department, NodePool, Project
from fairlead.model.records.phase import ENDED, PodPhase
from tests.builders import container_fields
from tests.contract.engine_harness import clock, myself, shell

DEADLINE = 120.0


class Seen(NamedTuple):
    """What an engine says of a run."""

    id: str
    is_running: bool = False
    has_ended: bool = False
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    started_at: int | None = None
    ended_at: int | None = None


EngineT = TypeVar("EngineT", bound=Engine)


class Seam(ABC, Generic[EngineT]):
    """An engine, what it has said, and the runs that were started with it."""

    def __init__(self) -> None:
        self.engine = self.make()
        self.news = asyncio.Event()
        self.seen: dict[str, Seen] = {}

    @abstractmethod
    def make(self) -> EngineT: ...

    @property
    @abstractmethod
    def sessions(self) -> Sessions: ...

    async def open(self) -> None:
        await self.engine.start(self.news.set)

    async def reopen(self) -> None:
        """As after a crash of the server: a new engine that has heard of nothing yet."""
        await self.engine.close()
        self.seen = {}
        self.engine = self.make()
        await self.open()

    @abstractmethod
    async def start(self, script: str, grace: int = 30) -> str:
        """Have a script run; the name under which it is known from now on."""

    @abstractmethod
    async def stop(self, run: str, grace: int) -> None: ...

    @abstractmethod
    async def look(self) -> None: ...

    async def until(self, run: str, is_it: Callable[[Seen], bool]) -> Seen:
        deadline = time.monotonic() + DEADLINE
        while True:
            self.news.clear()
            await self.look()
            if run in self.seen and is_it(self.seen[run]):
                return self.seen[run]
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self.news.wait()
            except TimeoutError:
                raise AssertionError(f"not within {DEADLINE} s; last seen: {self.seen}") from None

    async def running(self, run: str) -> Seen:
        return await self.until(run, lambda seen: seen.is_running or seen.has_ended)

    async def ended(self, run: str) -> Seen:
        return await self.until(run, lambda seen: seen.has_ended)

    async def output(self, run: str, *, follow: bool = False) -> bytes:
        request = LogRequest(pod_id=self.seen[run].id, follow=follow)
        return b"".join([piece async for piece in self.sessions.logs(request)])

    async def until_said(self, run: str, words: bytes) -> None:
        """Until the script has said `words`, as it does when it is ready for what comes next."""
        seen = b""
        following = cast(AsyncGenerator[bytes, None], self.sessions.logs(self._following(run)))
        async with contextlib.aclosing(following) as pieces:
            async for piece in pieces:
                seen += piece
                if words in seen:
                    return
        raise AssertionError(f"it ended and said only {seen!r}")

    def _following(self, run: str) -> LogRequest:
        return LogRequest(pod_id=self.seen[run].id, follow=True)

    async def call(self, run: str, *command: str) -> tuple[bytes, bytes]:
        """What a command beside the script wrote, and its exit code."""
        session = await self.sessions.exec(ExecRequest(pod_id=self.seen[run].id, command=command))
        written = b""
        while True:
            kind, data = await session.read()
            if kind == "exit":
                await session.close()
                return written, data
            written += data

    @abstractmethod
    async def close(self) -> None: ...


class LocalSeam(Seam[LocalEngine]):
    def __init__(self, folder: Path) -> None:
        self._settings = LocalSettings(data_dir=str(folder / "data"), owner=load_identity(myself()))
        self._specs: dict[str, PodSpec] = {}
        super().__init__()

    def make(self) -> LocalEngine:
        return LocalEngine(self._settings, clock)

    @property
    def sessions(self) -> Sessions:
        return self.engine

    async def start(self, script: str, grace: int = 30) -> str:
        spec = shell(script)
        self._specs[spec.pod_id] = spec
        await self.engine.apply([Start(spec)])
        return spec.pod_id

    async def repeat(self, run: str) -> None:
        await self.engine.apply([Start(self._specs[run])])

    async def stop(self, run: str, grace: int) -> None:
        await self.engine.apply([Stop(run, 1, grace)])

    async def look(self) -> None:
        for report in await self.engine.observe():
            if isinstance(report, PodReport):
                self.seen[report.pod_id] = Seen(
                    id=report.pod_id,
                    is_running=report.state is PodState.RUNNING,
                    has_ended=report.state in (PodState.EXITED, PodState.LOST),
                    exit_code=report.exit_code,
                    signal=report.signal,
                    message=report.message,
                    started_at=report.started_at,
                    ended_at=report.ended_at,
                )

    async def close(self) -> None:
        for run in self._specs:
            await self.engine.apply([Stop(run, 1, 0)])
            await self.ended(run)
        await self.engine.close()


class ClusterSeam(Seam[KubernetesEngine]):
    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._cluster = f"c{uuid.uuid4().hex[:8]}"
        self.project = f"seam-{self._cluster}"
        self._runs: dict[str, DesiredWorkload] = {}
        self._stopped: set[str] = set()
        self._removed: set[str] = set()
        super().__init__()

    def make(self) -> KubernetesEngine:
        return KubernetesEngine(Api(load_access(str(self._kubeconfig), {})), lambda: self._cluster)

    @property
    def sessions(self) -> Sessions:
        return self.engine.sessions

    async def open(self) -> None:
        await super().open()
        made: dict[str, Any] = {"version": 1, "cluster_id": self._cluster, "created_at": 0, "updated_at": 0}
        made |= {"created_by": "", "updated_by": ""}
        department = Department(id="1", name=f"d-{self._cluster}", **made)
        project = Project(id="1", name=self.project, department_id="1", department_name="d", **made)
        pool = NodePool(id="1", name="default", **made)
        await self.engine.apply([ApplyOrganization(DesiredOrganization((department,), (project,), (pool,)))])

    async def start(self, script: str, grace: int = 30) -> str:
        id = str(uuid.uuid4())
        container = PodContainer(
            image="busybox:1.35",
            command=("sh", "-c", script),
            termination_grace_seconds=grace,
            fields=container_fields({"nodeAffinityRequired": {"nodeSelectorTerms": [{"matchExpressions": [_REAL]}]}}),
        )
        self._runs[id] = DesiredWorkload(
            workload_id=id,
            name=f"w{id[:8]}",
            project=self.project,
            namespace=f"runai-{self.project}",
            run=1,
            podsets=(PodSet(role="worker", container=container, request=Request(), backoff_limit=0),),
            priority_class="low",
            is_preemptible=True,
            identity={"RUNAI_PROJECT": self.project},
        )
        await self.engine.apply([ApplyWorkload(self._runs[id])])
        return id

    async def repeat(self, run: str) -> None:
        await self.engine.apply([ApplyWorkload(self._runs[run])])

    async def stop(self, run: str, grace: int) -> None:
        """The grace is the pod's own there."""
        self._stopped.add(run)
        await self.engine.apply([DeleteWorkload(run, self._runs[run].namespace)])

    async def look(self) -> None:
        for report in await self.engine.observe():
            if isinstance(report, WorkloadReport):
                if report.is_removed:
                    self._removed.add(report.workload_id)
                for pod in report.pods[:1]:
                    self.seen[report.workload_id] = self._see(pod)

    def _see(self, pod: ClusterPod) -> Seen:
        return Seen(
            id=pod.id,
            is_running=pod.phase is PodPhase.RUNNING,
            has_ended=pod.phase in ENDED,
            exit_code=pod.exit_code,
            signal=pod.signal,
            message=pod.message,
            started_at=pod.started_at,
            ended_at=pod.ended_at,
        )

    async def removed(self, run: str) -> None:
        """Until the engine says that nothing of it is left."""
        deadline = time.monotonic() + DEADLINE
        while run not in self._removed:
            self.news.clear()
            await self.look()
            if run not in self._removed:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self.news.wait()

    async def close(self) -> None:
        for run in self._runs:
            if run not in self._removed:
                await self.stop(run, 0)
        for run in self._runs:
            await self.removed(run)
        await self.engine.apply([ApplyOrganization(DesiredOrganization((), (), ()))])
        await self.engine.close()
        # Connections that were closed last are let go in the loop's next round.
        await asyncio.sleep(0)


_REAL = {"key": "cluster.fairlead/no-kubelet", "operator": "DoesNotExist"}
