"""Services of groups: from a request to the last pod of a group, a broken group made whole, fifty groups more.

Measured from outside on a real server; times of single pods are those that their records tell.
"""

import os
import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.server import Server, serving, wait_until
from bench.table import Measurement, Options

PATH = "/api/v1/workloads/distributed-inferences"
ROLE = {"image": "none", "command": "sleep", "args": "600"}
WORKERS, MANY = 8, 50
#: Asking more often would slow down what is measured.
POLL_SECONDS = 0.01


def submit(server: Server, name: str, **spec: Any) -> str:
    body = {
        "name": name,
        "projectId": server.project_id,
        "clusterId": server.credentials["clusterId"],
        "spec": {"leader": ROLE, "worker": ROLE, **spec},
    }
    return str(server.call("POST", PATH, body)["workloadId"])


def running(server: Server, id: str) -> int:
    return int(server.call("GET", f"/api/v1/workloads/{id}")["runningPods"])


def pods(server: Server, id: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call("GET", f"/api/v1/workloads/{id}/pods?limit=500{query}")["pods"]
    return found


def remove(server: Server, id: str) -> None:
    server.call("DELETE", f"{PATH}/{id}")
    wait_until(lambda: running(server, id) == 0, every=POLL_SECONDS)


def start_group(server: Server, name: str) -> tuple[str, float]:
    """A group of nine: its id, and the milliseconds from before the request until all of it runs."""
    began = time.perf_counter()
    id = submit(server, name, workers=WORKERS)
    wait_until(lambda: running(server, id) == WORKERS + 1, every=POLL_SECONDS)
    return id, (time.perf_counter() - began) * 1000


def restart_group(server: Server, id: str) -> float:
    """Milliseconds from the end of the last old pod until a whole new group runs, after a worker was killed."""
    before = {pod["id"]: pod for pod in pods(server, id)}
    victim = next(pod for pod in before.values() if pod["name"].endswith(f"-{WORKERS}"))
    os.kill(process_of(victim["id"]), signal.SIGKILL)

    wait_until(lambda: running(server, id) < WORKERS + 1, every=POLL_SECONDS)
    wait_until(lambda: running(server, id) == WORKERS + 1, every=POLL_SECONDS)
    # Pods that were told to end are listed as deleted.
    old = [*pods(server, id), *pods(server, id, "&deleted=true")]
    ended = max(at(pod["completedAt"]) for pod in old if pod["id"] in before and pod["completedAt"])
    return (max(at(pod["k8sPhaseUpdatedAt"]) for pod in pods(server, id) if pod["id"] not in before) - ended) * 1000


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def process_of(pod_id: str) -> int:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"={pod_id}.".encode() in (entry / "environ").read_bytes():
                return int(entry.name)
        except OSError:
            continue
    raise SystemExit(f"no process of pod {pod_id}")


def widen(server: Server, name: str) -> float:
    """Seconds from a change of one group to fifty until all of them run."""
    id = submit(server, name, workers=0)
    wait_until(lambda: running(server, id) == 1, every=POLL_SECONDS)
    began = time.perf_counter()
    server.call("PATCH", f"{PATH}/{id}", {"spec": {"replicas": MANY}})
    wait_until(lambda: running(server, id) == MANY, every=POLL_SECONDS)
    took = time.perf_counter() - began
    remove(server, id)
    return took


def measure(options: Options) -> Iterator[Measurement]:
    rounds, wide = (2, 1) if options.quick else (20, 3)
    node = "wide:cpu=1000,memory=1000Gi,gpus=0"
    starts, restarts = [], []
    with serving(options.folder / "groups", ["--personal", "--node", node, "--retry-delay", "20"]) as server:
        for number in range(rounds):
            id, took = start_group(server, f"group-{number}")
            starts.append(took)
            restarts.append(restart_group(server, id))
            remove(server, id)
        note = "networks of their own" if os.geteuid() == 0 else "the machine's network"
        yield Measurement(f"a group of 1 + {WORKERS}: from POST to all running", "ms", starts, goal=150, note=note)
        words = "a dead worker's group running again, from its last old pod's end"
        yield Measurement(words, "ms", restarts, goal=300, note="by the records of its pods")
        times = [widen(server, f"wide-{number}") for number in range(wide)]
        yield Measurement(f"PATCH from 1 to {MANY} groups of one, all running", "s", times, goal=3)
