"""Pods with networks of their own: what one adds to a start, short jobs on a shared server, and many pods at once.

Isolated pods and pods on the machine's network take turns on one shared server, so that both meet the same load.
"""

import os
import statistics
import time
from collections.abc import Iterator
from typing import Any

from bench.jobs import ENDED, TRAININGS, phase_of, short_jobs
from bench.server import Server, memory_of, serving, wait_until
from bench.table import Measurement, Options

#: More than the machine has, so that nothing waits for room.
NODE = ("--node", "many:cpu=4000,memory=4000Gi,pods=2000")
ON_MACHINE = {"hostNetwork": True}


def started_after(server: Server, name: str, security: dict[str, Any]) -> float:
    """Milliseconds from before the request to the first instruction of the job, which prints the time."""
    spec = {"command": "date", "args": "+%s%N", "security": security}
    began = time.time_ns()
    id = server.call("POST", TRAININGS, server.submission(name, spec))["workloadId"]
    wait_until(lambda: phase_of(server, id) in ENDED, every=0.005)
    said = server.call("GET", f"/api/v1/workloads/{id}/logs")
    return (int(said.strip()) - began) / 1e6


def measure_starts(server: Server, jobs: int) -> tuple[float, float]:
    """The medians of plain and isolated starts, one after the other."""
    plain, isolated = [], []
    for number in range(jobs):
        plain.append(started_after(server, f"plain-{number}", ON_MACHINE))
        isolated.append(started_after(server, f"isolated-{number}", {}))
    return statistics.median(plain), statistics.median(isolated)


def count_running(server: Server, id: str) -> int:
    return int(server.call("GET", f"/api/v1/workloads/{id}")["runningPods"])


def start_many(server: Server, pods: int) -> tuple[float, float]:
    """Seconds until so many isolated pods run at once, and the megabytes that all processes of the server then hold."""
    spec = {"command": "sleep", "args": "600", "parallelism": pods, "completions": pods}
    began = time.perf_counter()
    id = server.call("POST", TRAININGS, server.submission("many", {**spec, "terminationGracePeriodSeconds": 0}))
    id = id["workloadId"]
    wait_until(lambda: count_running(server, id) == pods, every=0.1)
    seconds = time.perf_counter() - began
    megabytes = memory_of(server.family())
    server.call("DELETE", f"{TRAININGS}/{id}")
    wait_until(lambda: len(server.family()) <= 3, every=0.1)
    return seconds, megabytes


def measure(options: Options) -> Iterator[Measurement]:
    if os.geteuid() != 0:
        return
    rounds, jobs, short, pods = (1, 10, 50, 20) if options.quick else (3, 50, 300, 500)
    added, rates, personal, seconds, sizes = [], [], [], [], []
    for number in range(rounds):
        with serving(options.folder / f"personal-{number}", ["--personal", *NODE]) as server:
            personal.append(short_jobs(server, short, "short"))
        with serving(options.folder / f"shared-{number}", ["--allow", "host-namespaces", *NODE]) as server:
            plain, isolated = measure_starts(server, jobs)
            added.append(isolated - plain)
            rates.append(short_jobs(server, short, "short"))
            if number == rounds - 1:
                taken, held = start_many(server, pods)
                seconds.append(taken)
                sizes.append(held)
    note = f"{jobs} of each in turn, medians, beyond a pod on the machine's network"
    yield Measurement("own network: added to a start, p50", "ms", added, 25, note=note)
    yield Measurement("short jobs, shared server", "/s", rates, 40, True, f"{short}, each with its own network")
    yield Measurement("short jobs, personal server", "/s", personal, note="the same jobs in the same run")
    yield Measurement(f"{pods} isolated pods at once: all run after", "s", seconds, note="one training")
    yield Measurement(f"{pods} isolated pods at once: memory", "MB", sizes, note="server, supervisors and pods")
