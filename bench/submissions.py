"""Durable submissions per second: 64 connections, server on one core, load from the other, more asked than is free."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.history import make_history
from bench.server import Server, serving
from bench.table import Measurement, Options

CONNECTIONS = 64
SPEC = {
    "command": "python3 train.py",
    "args": "--epochs 3 --batch 64",
    "environmentVariables": [{"name": "SEED", "value": "7"}, {"name": "MODE", "value": "offline"}],
    "compute": {"cpuCoreRequest": 2, "cpuMemoryRequest": "1G"},
    "backoffLimit": 3,
    "autoDeletionTimeAfterCompletionSeconds": 86400,
}
#: Less than one submission asks for, so that everything waits and the scheduler has all of it before it.
NODE = ["--node", "bench:cpu=1,memory=4G"]


def load(server: Server, core: int, requests: int, prefix: str) -> dict[str, Any]:
    return send(server, core, requests, prefix, SPEC)


def send(server: Server, core: int, requests: int, prefix: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Submit so many workloads with that spec, in which NAME is the name of each."""
    body = json.dumps(server.submission("NAME", spec))
    plan = {
        "host": server.host,
        "port": server.port,
        "path": "/api/v1/workloads/trainings",
        "token": server.token,
        "connections": CONNECTIONS,
        "requests": requests,
        "prefix": prefix,
        "body": body,
        "core": core,
    }
    done = subprocess.run([sys.executable, "-m", "bench.load"], input=json.dumps(plan), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the load failed: {done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    if set(result["statuses"]) != {"202"}:
        raise SystemExit(f"not every submission was accepted: {result['statuses']}\n{done.stderr}")
    return result


def one_round(data: Path, waiting: int, requests: int) -> tuple[float, float]:
    """Submissions per second and the 99th percentile of their time in milliseconds."""
    cores = sorted(os.sched_getaffinity(0))
    with serving(data, NODE, {cores[0]}) as server:
        load(server, cores[-1], max(waiting, CONNECTIONS * 8), "before")
        result = load(server, cores[-1], requests, "counted")
    latencies = sorted(result["latencies"])
    return requests / result["seconds"], latencies[int(len(latencies) * 0.99)] / 1e6


def measure(options: Options) -> Iterator[Measurement]:
    rounds, requests = (1, 1000) if options.quick else (5, 6000)
    finished, waiting = (2000, 100) if options.quick else (99_000, 1000)
    fresh = [one_round(options.folder / f"fresh-{number}", 0, requests) for number in range(rounds)]
    shape = f"{requests:,} at 64 connections, server on one core, client on the other"
    yield Measurement("submissions", "/s", [rate for rate, _ in fresh], 3000, True, shape)
    yield Measurement("submissions, p99 of one", "ms", [p99 for _, p99 in fresh], 50)
    history = options.folder / "history"
    make_history(history, finished, NODE)
    full = []
    for number in range(rounds):
        copied = options.folder / f"full-{number}"
        shutil.copytree(history, copied, ignore=shutil.ignore_patterns("*.sock", "pods"))
        full.append(one_round(copied, waiting, requests))
        shutil.rmtree(copied)
    note = f"{finished:,} finished and {waiting:,} waiting before; the goal is at most 20 % below the row above"
    goal = 0.8 * statistics.median(rate for rate, _ in fresh)
    yield Measurement(
        f"submissions with {finished + waiting:,} stored", "/s", [rate for rate, _ in full], goal, True, note
    )
    yield Measurement(f"p99 with {finished + waiting:,} stored", "ms", [p99 for _, p99 in full], 50)
