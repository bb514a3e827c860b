"""How much output of a pod is kept a second, what that costs, and whether others start as fast beside it.

`python -m bench.output [--quick]`; it works below a temporary folder and leaves nothing behind.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench.engine import Watch, build_probe, cpu_seconds, pod, running
from bench.table import Measurement, Options, render_table
from fairlead.engines.base import PodState, Start, Stop
from fairlead.model.pods.podset import PodSpec

MEGABYTE = 1_000_000
#: Writes 100 MB a second, as evenly as a program can.
STEADY = """
import os, time
piece, began, written = b"x" * 999_999 + b"\\n", time.monotonic(), 0
while True:
    os.write(1, piece)
    written += len(piece)
    ahead = written / 100e6 - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
"""
RATE_GOAL, SLOWER_GOAL = 100, 1.2


def kept_bytes(folder: Path, spec: PodSpec) -> int:
    """How far the output of a pod has come: files are named by the offset of their first byte."""
    files = (folder / "pods" / "logs" / spec.pod_id).glob("*.log")
    ends = []
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            ends.append(int(file.name.split(".")[1]) + file.stat().st_size)
    return max(ends, default=0)


async def start(watch: Watch, *command: str) -> PodSpec:
    spec = pod(*command)
    await watch.engine.apply([Start(spec)])
    await watch.until([spec], PodState.RUNNING)
    return spec


async def end(watch: Watch, spec: PodSpec) -> None:
    await watch.engine.apply([Stop(spec.pod_id, 1, 0)])
    await watch.until([spec], PodState.EXITED)
    await watch.engine.drop_logs([spec.pod_id])


async def measure_most(folder: Path, rounds: int) -> tuple[list[float], float]:
    """Megabytes a second of a pod that writes as fast as it can; CPU seconds of supervision a gigabyte."""
    async with running(folder) as watch:
        spec = await start(watch, "/usr/bin/head", "-c", "100G", "/dev/zero")
        rates, first, used = [], kept_bytes(folder, spec), cpu_seconds(folder)
        for _ in range(rounds):
            before, began = kept_bytes(folder, spec), time.monotonic()
            await asyncio.sleep(1.0)
            rates.append((kept_bytes(folder, spec) - before) / (time.monotonic() - began) / MEGABYTE)
        gigabytes = (kept_bytes(folder, spec) - first) / 1e9
        used = cpu_seconds(folder) - used
        await end(watch, spec)
    return rates, used / gigabytes


async def measure_others(folder: Path, rounds: int) -> tuple[list[float], list[float], float]:
    """Milliseconds from order to first instruction, alone and beside 100 MB of output a second, which came to be."""
    command, _ = build_probe(folder)
    alone, beside, written = [], [], 0.0
    async with running(folder / "data") as watch:
        # In turns, so that whatever else the machine does meets both.
        for _ in range(4):
            alone += await take_turn(watch, folder, command, rounds)
            chatty = await start(watch, "/usr/bin/python3", "-c", STEADY)
            began = time.monotonic()
            beside += await take_turn(watch, folder, command, rounds)
            written = kept_bytes(folder / "data", chatty) / (time.monotonic() - began) / MEGABYTE
            await end(watch, chatty)
    return alone, beside, written


async def take_turn(watch: Watch, folder: Path, command: tuple[str, ...], rounds: int) -> list[float]:
    took = []
    for _ in range(rounds):
        spec = pod(*command, str(folder / "began"))
        began = time.monotonic_ns()
        await watch.engine.apply([Start(spec)])
        await watch.until([spec], PodState.EXITED)
        took.append((int((folder / "began").read_text()) - began) / 1e6)
        (folder / "began").unlink()
        await watch.engine.drop_logs([spec.pod_id])
    return took


def measure(options: Options) -> Iterator[Measurement]:
    rounds = 3 if options.quick else 20
    rates, used = uvloop.run(measure_most(options.folder / "most", rounds))
    note = f"{used:.2f} s of CPU a gigabyte, the pod's own included"
    yield Measurement("output of one pod that is kept", "MB/s", rates, RATE_GOAL, more_is_better=True, note=note)
    folder = options.folder / "others"
    folder.mkdir()
    alone, beside, written = uvloop.run(measure_others(folder, 5 if options.quick else 25))
    yield Measurement("order → first instruction, alone", "ms", alone)
    yield Measurement("the same beside a pod that writes 100 MB/s", "ms", beside, note=f"{written:.0f} MB/s at last")
    ratio = statistics.median(beside) / statistics.median(alone)
    yield Measurement("a start beside it, compared", "×", [ratio], SLOWER_GOAL, note="medians of the two above")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.output", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short look")
    with tempfile.TemporaryDirectory(prefix="fairlead-output-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        options = Options(quick=parser.parse_args().quick, folder=Path(folder))
        print(render_table(list(measure(options))))


if __name__ == "__main__":
    main()
