"""How long commands take, from the start of the process to its end, with the environment's own Python."""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.server import FAIRLEAD, serving
from bench.table import Measurement, Options


def time_of(command: Sequence[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    took = (time.perf_counter() - began) * 1000
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return took


def measure(options: Options) -> Iterator[Measurement]:
    rounds = 5 if options.quick else 40
    data: Path = options.folder / "commands"
    environment = {**os.environ, "FAIRLEAD_DATA_DIR": str(data)}
    helped = [time_of([str(FAIRLEAD), "--help"], environment) for _ in range(rounds)]
    yield Measurement("`fairlead --help`", "ms", helped, 60)
    numbers = itertools.count()
    with serving(data, ["--personal"]):
        submitted = [time_of(submit(next(numbers)), environment) for _ in range(rounds)]
    yield Measurement("`fairlead training submit`", "ms", submitted, 100)


def submit(number: int) -> list[str]:
    name = f"timed-{number}"
    return [str(FAIRLEAD), "training", "submit", name, "--image", "bench", "--command", "--", "true"]
