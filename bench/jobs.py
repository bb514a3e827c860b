"""From a submission to the job's own first instruction, and how many short jobs end per second."""

import time
from collections.abc import Iterator
from pathlib import Path

from bench.server import Server, serving, wait_until
from bench.table import Measurement, Options

TRAININGS = "/api/v1/workloads/trainings"
ENDED = ("Completed", "Failed")


def phase_of(server: Server, id: str) -> str:
    return str(server.call("GET", f"{TRAININGS}/{id}")["actualPhase"])


def first_instruction(server: Server, body: dict[str, object], output: Path) -> float:
    """Milliseconds from before the request to the time that the job itself wrote down."""
    began = time.time_ns()
    id = server.call("POST", TRAININGS, body)["workloadId"]
    wait_until(lambda: phase_of(server, id) in ENDED, every=0.005)
    return (int(output.read_text()) - began) / 1e6


def latencies(server: Server, jobs: int, folder: Path) -> list[float]:
    project, found = server.project_id, []
    for number in range(jobs):
        output = folder / f"time-{number}"
        # `date` reads the clock as nearly the first thing it does; the shell before it only opens the file.
        spec = {"image": "bench", "command": "sh", "args": f"-c 'exec date +%s%N >{output}'"}
        cluster = server.credentials["clusterId"]
        body = {"name": f"first-{number}", "projectId": project, "clusterId": cluster, "spec": spec}
        found.append(first_instruction(server, body, output))
    return found


def short_jobs(server: Server, jobs: int, prefix: str) -> float:
    """Jobs per second, from the first request to the last end."""
    bodies = [server.submission(f"{prefix}-{number}", {"command": "true"}) for number in range(jobs)]
    began = time.perf_counter()
    for body in bodies:
        server.call("POST", TRAININGS, body)
    query = f"/api/v1/workloads/count?filterBy=name=^{prefix}-&filterBy=phase==Completed"
    wait_until(lambda: server.call("GET", query)["count"] >= jobs, every=0.02)
    return jobs / (time.perf_counter() - began)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(options: Options) -> Iterator[Measurement]:
    rounds, jobs, short = (1, 20, 50) if options.quick else (3, 200, 500)
    halves, ends, rates = [], [], []
    for number in range(rounds):
        with serving(options.folder / f"jobs-{number}", ["--personal"]) as server:
            found = latencies(server, jobs, options.folder)
            halves.append(percentile(found, 0.5))
            ends.append(percentile(found, 0.99))
            rates.append(short_jobs(server, short, "short"))
    note = f"{jobs} jobs one after another, personal mode"
    yield Measurement("submit → first instruction, p50", "ms", halves, 30, note=note)
    yield Measurement("submit → first instruction, p99", "ms", ends, 100)
    yield Measurement(
        "short jobs (`true`)", "/s", rates, 100, True, f"{short} submitted by one connection, until all ended"
    )
