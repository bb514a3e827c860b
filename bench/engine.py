"""How fast the local engine starts pods, how many a second it runs to their end, and what a running one weighs.

`python -m bench.engine [--quick]`; it works below a temporary folder and leaves nothing behind.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import uvloop

from bench.table import Measurement, Options, render_table
from fairlead.engines.base import PodReport, PodState, Start, Stop
from fairlead.engines.local.configuration import load_identity
from fairlead.engines.local.engine import LocalEngine
from fairlead.engines.local.settings import LocalSettings
from fairlead.model.pods.podset import PodContainer, PodSpec, Request

#: Says the time at which its first instruction ran, and nothing more; built where a compiler is.
PROBE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int file = open(words[1], O_WRONLY | O_CREAT, 0600);
    dprintf(file, "%lld", now.tv_sec * 1000000000LL + now.tv_nsec);
    return count < 2;
}
"""
SCRIPT = "import sys, time\nopen(sys.argv[1], 'w').write(str(time.monotonic_ns()))"


def clock() -> int:
    return time.time_ns() // 1_000_000


def pod(*command: str) -> PodSpec:
    return PodSpec(
        workload_id="bench",
        workload_name="bench",
        kind="training",
        project="bench",
        namespace="runai-bench",
        created_by="bench",
        pod_id=str(uuid.uuid4()),
        pod_name="bench-0-0",
        attempt=1,
        node="here",
        role="worker",
        index=0,
        container=PodContainer(image="none", command=command),
        request=Request(),
    )


class Watch:
    """An engine and the last report of each of its pods."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.reports: dict[str, PodReport] = {}
        self.news = asyncio.Event()

    async def until(self, specs: Sequence[PodSpec], *states: PodState) -> None:
        left = {spec.pod_id for spec in specs}
        while left:
            self.news.clear()
            for report in await self.engine.observe():
                self.reports[report.pod_id] = report
            left = {pod for pod in left if pod not in self.reports or self.reports[pod].state not in states}
            if left:
                await self.news.wait()


@contextlib.asynccontextmanager
async def running(folder: Path, *, shared: bool = False) -> AsyncIterator[Watch]:
    owner = None if shared else load_identity(os.getuid())
    engine = LocalEngine(LocalSettings(data_dir=str(folder), owner=owner), clock)
    watch = Watch(engine)
    await engine.start(watch.news.set)
    try:
        yield watch
    finally:
        await engine.close()


def build_probe(folder: Path) -> tuple[tuple[str, ...], str]:
    """The command that tells when it began, and what it is."""
    (folder / "probe.c").write_text(PROBE)
    try:
        done = subprocess.run(["cc", "-O1", "-o", folder / "probe", folder / "probe.c"], capture_output=True)
    except FileNotFoundError:
        done = None
    if done is not None and done.returncode == 0:
        return (str(folder / "probe"),), "a compiled program"
    return ("/usr/bin/python3", "-I", "-S", "-c", SCRIPT), "a Python program, whose own start is in it"


async def measure_starts(folder: Path, rounds: int, *, shared: bool) -> tuple[list[float], str]:
    """Milliseconds from the order to the command's first instruction, one pod after another."""
    command, note = build_probe(folder)
    took = []
    place = "/tmp/began" if shared else str(folder / "began")
    async with running(folder / "data", shared=shared) as watch:
        for _ in range(rounds):
            spec = pod(*command, place)
            began = time.monotonic_ns()
            await watch.engine.apply([Start(spec)])
            await watch.until([spec], PodState.EXITED)
            inside = folder / "data" / "pods" / "private" / f"{spec.pod_id}.1" / "tmp" / "began"
            written = inside if shared else Path(place)
            took.append((int(written.read_text()) - began) / 1e6)
            written.unlink()
            await watch.engine.drop_logs([spec.pod_id])
    return took, note


async def measure_rate(folder: Path, count: int, at_once: int) -> float:
    """Pods a second from order to recorded end, `at_once` under way at any time."""
    async with running(folder) as watch:
        left = [pod("true") for _ in range(count)]
        ended = 0
        began = time.perf_counter()
        await watch.engine.apply([Start(left.pop()) for _ in range(at_once)])
        while ended < count:
            await watch.news.wait()
            watch.news.clear()
            for report in await watch.engine.observe():
                if report.state == PodState.EXITED:
                    ended += 1
                    following = [Start(left.pop())] if left else []
                    await watch.engine.drop_logs([report.pod_id])
                    await watch.engine.apply(following)
        return count / (time.perf_counter() - began)


def proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def supervision(folder: Path) -> set[int]:
    """The fork server of a data folder and its supervisors."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            if str(folder / "pods").encode() in words:
                found.add(int(name))
    return found


def cpu_seconds(folder: Path) -> float:
    """CPU time so far of this process, the fork server of a data folder, its supervisors and what ended below them."""
    used = time.process_time()
    for pid in supervision(folder):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return used


async def measure_crowd(folder: Path, count: int) -> tuple[float, float]:
    """Seconds until `count` pods run at once, and megabytes that each adds to the supervision."""
    async with running(folder) as watch:
        first = pod("sleep", "3600")
        await watch.engine.apply([Start(first)])
        await watch.until([first], PodState.RUNNING)
        alone = sum(map(proportional, supervision(folder)))
        rest = [pod("sleep", "3600") for _ in range(count - 1)]
        began = time.perf_counter()
        await watch.engine.apply([Start(spec) for spec in rest])
        await watch.until(rest, PodState.RUNNING)
        seconds = time.perf_counter() - began
        together = sum(map(proportional, supervision(folder)))
        everyone = [first, *rest]
        await watch.engine.apply([Stop(spec.pod_id, 1, 0) for spec in everyone])
        await watch.until(everyone, PodState.EXITED)
        await watch.engine.drop_logs([spec.pod_id for spec in everyone])
    return seconds, (together - alone) / (count - 1) / 1e6


def measure(options: Options) -> Iterator[Measurement]:
    rounds, count, crowd = (20, 100, 20) if options.quick else (200, 500, 500)
    for shared in (False, True):
        name = "shared" if shared else "personal"
        folder = options.folder / name
        folder.mkdir(parents=True)
        took, note = uvloop.run(measure_starts(folder, rounds, shared=shared))
        tail = statistics.quantiles(took, n=100)[98]
        yield Measurement(f"order → first instruction, {name}", "ms", took, 5, note=f"p99 {tail:.1f} ms; {note}")
    rates = [uvloop.run(measure_rate(options.folder / f"rate-{each}", count, 8)) for each in range(3)]
    yield Measurement("short pods finished a second", "/s", rates, 100, more_is_better=True, note="8 at a time")
    seconds, megabytes = uvloop.run(measure_crowd(options.folder / "crowd", crowd))
    yield Measurement(f"{crowd} pods running at once after", "s", [seconds])
    yield Measurement("a running pod's supervision", "MB", [megabytes], 2, note="proportional set, without its process")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look")
    # Not below /tmp, which shared pods have of their own, and open to the user as whom they run.
    with tempfile.TemporaryDirectory(prefix="fairlead-engine-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        options = Options(quick=parser.parse_args().quick, folder=Path(folder))
        print(render_table(list(measure(options))))


if __name__ == "__main__":
    main()
