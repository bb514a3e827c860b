"""A large cluster: 5,000 nodes, 200 projects, 2,000 workloads with 20,000 pods, as far as they concern our server.

The API server is one in memory (`tests/memory_api`): a real one on this machine would be the bound itself. It plays the
life of pods in the steps that a real cluster shows. What the real parts take is measured by `bench.kubernetes`.
Alone and at another size: `python -m bench.scale --nodes 500 --projects 20 --workloads 200`.
"""

import argparse
import dataclasses
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.cluster import cpu_seconds, peak_memory
from bench.server import Server, delete_workloads, serving, wait_until
from bench.table import Measurement, Options, render_table
from tests.memory_api.process import RunningApi, running_api

TRAININGS = "/api/v1/workloads/trainings"
PODS = "/api/v1/namespaces/{}/pods"
LONG = 1800.0
#: Rounds of what is measured one at a time while everything runs.
ROUNDS = 200


@dataclasses.dataclass(frozen=True)
class Size:
    nodes: int = 5000
    projects: int = 200
    workloads: int = 2000
    #: Pods of each workload.
    pods: int = 10

    @property
    def all_pods(self) -> int:
        return self.workloads * self.pods


FULL, QUICK = Size(), Size(nodes=200, projects=10, workloads=50)


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def make_projects(server: Server, count: int) -> list[str]:
    pools = server.call("GET", "/api/v1/node-pools")
    pool = (pools["nodepools"] if isinstance(pools, dict) else pools)[0]["id"]
    amounts = {"cpu": {"deserved": None}, "memory": {"deserved": None, "units": "Mib"}, "gpu": {"deserved": 8}}
    resources = [{"nodePool": {"id": str(pool)}, **amounts}]
    bodies = [
        {"name": f"team-{number}", "clusterId": server.credentials["clusterId"], "resources": resources}
        for number in range(count)
    ]
    return [str(server.call("POST", "/api/v1/org-unit/projects", body)["id"]) for body in bodies]


def submit(server: Server, project: str, name: str, **spec: Any) -> str:
    body = {
        "name": name,
        "projectId": project,
        "clusterId": server.credentials["clusterId"],
        "spec": {"image": "busybox:1.35", "command": "sleep 1000", **spec},
    }
    return str(server.call("POST", TRAININGS, body)["workloadId"])


def count_running(server: Server) -> int:
    return int(server.call("GET", "/api/v1/workloads/count?filterBy=phase==Running")["count"])


def phase_of(server: Server, id: str) -> str:
    return str(server.call("GET", f"/api/v1/workloads/{id}")["phase"])


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def fill(server: Server, api: RunningApi, projects: list[str], size: Size) -> Iterator[Measurement]:
    """All submitted at once, until all run."""
    pid, before = server.process.pid, cpu_seconds(server.process.pid)
    memory = peak_memory(pid)
    api.reset_counts()
    began = time.perf_counter()
    for number in range(size.workloads):
        submit(*(server, projects[number % len(projects)], f"w-{number}"), parallelism=size.pods, completions=size.pods)
    say(f"{size.workloads} submitted in {time.perf_counter() - began:.0f} s")
    wait_until(lambda: count_running(server) >= size.workloads, every=2, deadline=LONG)
    took, used = time.perf_counter() - began, cpu_seconds(pid) - before
    note = f"{took:.0f} s on the clock, {size.all_pods:,} pods; {1000 * used / size.workloads:.1f} ms each"
    yield Measurement(f"{size.workloads:,} workloads running, processor time", "s", [used], note=note)
    settle(api)
    requests = sum(api.counts().values()) / size.workloads
    yield Measurement("requests until it runs and the cluster knows, per workload", "", [requests])
    grown = peak_memory(pid) - memory
    note = f"{memory:.0f} MB without them; {grown * 1024 / size.all_pods:.1f} KB per pod with its share of the workload"
    yield Measurement("server, most memory with them", "MB", [memory + grown], 400, note=note)


def settle(api: RunningApi) -> None:
    """Until the server has written everything about them into the cluster."""
    before: dict[str, int] = {}

    def is_quiet() -> bool:
        nonlocal before
        earlier, before = before, api.counts()
        return before == earlier

    wait_until(is_quiet, every=3, deadline=LONG)


def measure_submissions(server: Server, api: RunningApi, projects: list[str], rounds: int) -> Iterator[Measurement]:
    """One after the other, beside all that run; each is deleted when it runs."""
    took = []
    seen = JobWatch(api)
    for number in range(rounds):
        project = number % len(projects)
        began = time.perf_counter()
        id = submit(server, projects[project], f"one-{number}")
        took.append((seen.wait(f"one-{number}") - began) * 1000)
        server.call("DELETE", f"{TRAININGS}/{id}")
    note = f"p50 {statistics.median(took):.1f} ms, p99 {percentile(took, 0.99):.1f} ms"
    yield Measurement("submission → Job", "ms", took, 50, note=note)


class JobWatch:
    """Jobs as they come, read by the one who waits for them."""

    def __init__(self, api: RunningApi) -> None:
        version = api.call("GET", "/apis/batch/v1/jobs?limit=1")["metadata"]["resourceVersion"]
        self._connection = http.client.HTTPConnection(*api.address)
        self._connection.request("GET", f"/apis/batch/v1/jobs?watch=1&resourceVersion={version}")
        self._lines = self._connection.getresponse()

    def wait(self, name: str) -> float:
        for line in self._lines:
            found = json.loads(line)
            if found["type"] == "ADDED" and found["object"]["metadata"]["name"] == name:
                return time.perf_counter()
        raise SystemExit(f"the watch ended before {name} came")


def measure_reaction(server: Server, api: RunningApi, projects: list[str], rounds: int) -> Iterator[Measurement]:
    """From the moment when a pod's status is written until our phase is another, asked for all the time."""
    id = submit(server, projects[0], "reacts")
    wait_until(lambda: phase_of(server, id) == "Running")
    namespace = "runai-team-0"
    [pod] = [
        one["metadata"]["name"]
        for one in api.call("GET", PODS.format(namespace))["items"]
        if one["metadata"]["name"].startswith("reacts-")
    ]
    took = []
    for number in range(rounds):
        before = phase_of(server, id)
        ready = "True" if number % 2 else "False"
        began = time.perf_counter()
        api.call("PATCH", f"{PODS.format(namespace)}/{pod}", {"status": {"conditions": [_ready(ready)]}})
        wait_until(lambda was=before: phase_of(server, id) != was, every=0.001)  # type: ignore[misc]  # bound now
        took.append((time.perf_counter() - began) * 1000)
    server.call("DELETE", f"{TRAININGS}/{id}")
    note = f"p50 {statistics.median(took):.1f} ms, the write itself included"
    what = f"a pod's change → phase over REST, p99 of {rounds}"
    yield Measurement(what, "ms", [percentile(took, 0.99)], 300, note=note)


def _ready(status: str) -> dict[str, str]:
    return {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def measure_nodes(server: Server, api: RunningApi, rounds: int) -> Iterator[Measurement]:
    """Nodes fail one after the other; each until our record says so."""
    before = cpu_seconds(server.process.pid)
    for number in range(rounds):
        name = f"node-{number}"
        api.call("PATCH", f"/api/v1/nodes/{name}", {"status": {"conditions": [_ready("False")]}})
        wait_until(lambda at=name: status_of(server, at) == "NotReady", every=0.02)  # type: ignore[misc]  # bound now
    used = cpu_seconds(server.process.pid) - before
    yield Measurement("a node's change, processor time", "ms", [1000 * used / rounds], note="with our questions")


def status_of(server: Server, node: str) -> str:
    [found] = server.call("GET", f"/api/v1/nodes?filterBy=name=={node}")["nodes"]
    return str(found["status"])


def measure_end(server: Server, api: RunningApi, size: Size) -> Iterator[Measurement]:
    """By a server that has just started and has not created them."""
    settle(api)
    api.reset_counts()
    pid, before = server.process.pid, cpu_seconds(server.process.pid)
    began = time.perf_counter()
    delete_workloads(server)
    wait_until(lambda: not api.call("GET", "/api/v1/pods?limit=1")["items"], every=1, deadline=LONG)
    used = cpu_seconds(pid) - before
    note = f"{time.perf_counter() - began:.0f} s on the clock; {1000 * used / size.workloads:.1f} ms each"
    yield Measurement("all deleted, processor time", "s", [used], note=note)
    counts = api.counts()
    logs = counts.pop("get pods/log", 0) / size.workloads
    requests = sum(counts.values()) / size.workloads
    note = f"and {logs:.1f} that keep the output of its {size.pods} pods"
    yield Measurement("requests of its deletion by the next server, per workload", "", [requests], note=note)


def measure_at(size: Size, folder: Path, rounds: int) -> Iterator[Measurement]:
    say(f"{size.nodes:,} nodes, {size.projects} projects, {size.workloads:,} workloads, {size.all_pods:,} pods")
    with running_api(folder / "api", size.nodes) as api:
        arguments = ["--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig)]
        data = folder / "scale"
        with serving(data, arguments) as server:
            projects = make_projects(server, size.projects)
            namespaces = size.projects
            wait_until(
                lambda: len(api.call("GET", "/api/v1/namespaces")["items"]) > namespaces, every=0.5, deadline=LONG
            )
            yield from fill(server, api, projects, size)
            yield from measure_submissions(server, api, projects, rounds)
            yield from measure_reaction(server, api, projects, rounds)
            yield from measure_nodes(server, api, rounds // 10)
        with serving(data, arguments) as server:
            pid = server.process.pid
            note = f"{cpu_seconds(pid):.1f} s of processor time; {count_running(server)} running at the first answer"
            yield Measurement("ready with all of them after", "s", [server.ready_after], 10, note=note)
            yield from measure_end(server, api, size)


def measure(options: Options) -> Iterator[Measurement]:
    size = QUICK if options.quick else FULL
    yield from measure_at(size, options.folder, 20 if options.quick else ROUNDS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    for field in dataclasses.fields(Size):
        parser.add_argument(f"--{field.name}", type=int, default=field.default)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = vars(parser.parse_args())
    rounds = given.pop("rounds")
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        print(render_table(list(measure_at(Size(**given), Path(folder), rounds))))


if __name__ == "__main__":
    main()
