"""How long a server takes from cold to ready, and what it weighs when idle: empty, and with a long history."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.history import make_history
from bench.server import memory_of, serving, wait_until
from bench.submissions import NODE, load
from bench.table import Measurement, Options


def start_once(data: Path) -> tuple[float, float]:
    """Seconds until ready, and MB of the server and its fork server once it has come to rest."""
    with serving(data, NODE) as server:
        sizes: list[float] = []

        def is_at_rest() -> bool:
            sizes.append(memory_of(server.family()))
            return len(sizes) > 3 and abs(sizes[-1] - sizes[-3]) < 0.1

        wait_until(is_at_rest, every=0.2)
        return server.ready_after, sizes[-1]


def measure(options: Options) -> Iterator[Measurement]:
    rounds = 2 if options.quick else 7
    cold = [start_once(options.folder / f"cold-{number}") for number in range(rounds)]
    yield Measurement(
        "server ready from cold start", "s", [ready for ready, _ in cold], 0.7, note="an empty data folder"
    )
    yield Measurement("memory when idle", "MB", [size for _, size in cold], 80, note="PSS of server and fork server")
    finished, waiting = (2000, 100) if options.quick else (99_000, 1000)
    history = options.folder / "long"
    make_history(history, finished, NODE)
    with serving(history, NODE) as server:
        load(server, max(os.sched_getaffinity(0)), waiting, "waiting")
    full = [start_once(history) for _ in range(rounds)]
    stored = f"{finished:,} finished and {waiting:,} waiting"
    yield Measurement("ready, with a long history", "s", [ready for ready, _ in full], note=stored)
    yield Measurement("memory, with a long history", "MB", [size for _, size in full], 250, note=stored)
    shutil.rmtree(history)
