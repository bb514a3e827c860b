"""A harness for trying an engine: starts it, gathers what it reports, waits for what should come, and cleans up."""

import asyncio
import contextlib
import functools
import os
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from fairlead.engines.base import LogRequest, LogStore, PodEngine, PodReport, PodState, Sessions, Start, Stop
from fairlead.model.pods.podset import PodContainer, PodSpec, Request
from tests.builders import container_fields

ENDED = (PodState.EXITED, PodState.LOST)
#: Long enough for a machine that is busy with other tests; nothing waits this long when it works.
DEADLINE = 90.0


class RunningEngine(PodEngine, Sessions, LogStore, Protocol):
    """What an implementation brings to the suite."""


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **members: Any) -> None:
        asyncio.run(_within(test(*arguments, **members)))

    async def _within(work: Awaitable[None]) -> None:
        async with asyncio.timeout(2 * DEADLINE):
            await work

    return run


def shell(script: str, **members: Any) -> PodSpec:
    return pod("/bin/sh", "-c", script, **members)


def pod(
    *command: str, pod_id: str = "", attempt: int = 1, fields: Mapping[str, Any] | None = None, **container: Any
) -> PodSpec:
    """A pod with this command; `fields` are those of its container under their REST names."""
    name = pod_id or str(uuid.uuid4())
    return PodSpec(
        workload_id=f"workload-of-{name}",
        workload_name="train",
        kind="training",
        project="research",
        namespace="runai-research",
        created_by="ada@example.com",
        pod_id=name,
        pod_name="train-0-0",
        attempt=attempt,
        node="here",
        role="worker",
        index=0,
        container=PodContainer(image="none", command=command, fields=container_fields(fields or {}), **container),
        request=Request(),
        identity={"RUNAI_PROJECT": "research"},
    )


class EngineHarness:
    def __init__(self, make: Callable[[], RunningEngine]) -> None:
        self._make = make
        self.engine = make()
        self.reports: dict[tuple[str, int], list[PodReport]] = {}
        self._news = asyncio.Event()

    async def open(self) -> None:
        await self.engine.start(self._news.set)

    async def reopen(self) -> None:
        """As after a crash of the server: a new engine object that knows only what is on disk."""
        await self.engine.close()
        self.reports = {}
        self.engine = self._make()
        await self.open()

    async def look(self) -> None:
        reports = [report for report in await self.engine.observe() if isinstance(report, PodReport)]
        for report in reports:
            self.reports.setdefault((report.pod_id, report.attempt), []).append(report)

    def last(self, spec: PodSpec) -> PodReport | None:
        found = self.reports.get((spec.pod_id, spec.attempt))
        return found[-1] if found else None

    async def until(self, spec: PodSpec, *states: PodState) -> PodReport:
        return await self._until(spec, lambda report: report.state in states, states)

    async def until_reason(self, spec: PodSpec, reason: str) -> PodReport:
        return await self._until(spec, lambda report: report.reason == reason, reason)

    async def _until(self, spec: PodSpec, is_it: Callable[[PodReport], bool], what: object) -> PodReport:
        deadline = time.monotonic() + DEADLINE
        while True:
            self._news.clear()
            await self.look()
            report = self.last(spec)
            if report is not None and is_it(report):
                return report
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    await self._news.wait()
            except TimeoutError:
                raise AssertionError(f"no {what} within {DEADLINE} s; reports: {self.reports}") from None

    async def start(self, spec: PodSpec) -> PodReport:
        """Start it and wait until it runs or has ended."""
        await self.engine.apply([Start(spec)])
        return await self.until(spec, PodState.RUNNING, *ENDED)

    async def run(self, spec: PodSpec) -> PodReport:
        """Start it and wait for its end."""
        await self.engine.apply([Start(spec)])
        return await self.until(spec, *ENDED)

    async def stop(self, spec: PodSpec, grace: int = 0) -> PodReport:
        await self.engine.apply([Stop(spec.pod_id, spec.attempt, grace)])
        return await self.until(spec, *ENDED)

    async def output(self, spec: PodSpec, **request: Any) -> bytes:
        pieces = [piece async for piece in self.engine.logs(LogRequest(pod_id=spec.pod_id, **request))]
        return b"".join(pieces)

    async def close(self) -> None:
        """End and forget every pod that was seen."""
        await self.look()
        for (pod_id, attempt), reports in list(self.reports.items()):
            if reports[-1].state not in ENDED:
                await self.engine.apply([Stop(pod_id, attempt, 0)])
        for pod_id, attempt in list(self.reports):
            await self._ended(pod_id, attempt)
            await self.engine.drop_logs([pod_id])
        await self.engine.close()

    async def _ended(self, pod_id: str, attempt: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while self.reports[pod_id, attempt][-1].state not in ENDED:
                self._news.clear()
                await self.look()
                if self.reports[pod_id, attempt][-1].state not in ENDED:
                    await self._news.wait()


@contextlib.asynccontextmanager
async def opened(make: Callable[[], RunningEngine]) -> AsyncIterator[EngineHarness]:
    harness = EngineHarness(make)
    await harness.open()
    try:
        yield harness
    finally:
        await harness.close()


async def eventually(check: Callable[[], Any], what: str = "") -> Any:
    """Wait for a condition that nobody announces; its value."""
    deadline = time.monotonic() + DEADLINE
    while not (found := check()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE} s: {what or check}")
        await asyncio.sleep(0.005)
    return found


def is_running(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def clock() -> int:
    return time.time_ns() // 1_000_000


def myself() -> int:
    return os.getuid()
