"""What the Kubernetes engine takes on a real cluster: submissions, a thousand trainings, reactions, and a start.

Needs a cluster that runs (`make cluster-up`, or FAIRLEAD_CLUSTER) and is left out with a word where there is none.
Pods run on nodes without a kubelet, so that the machine is busy with orchestration alone.
"""

import http.client
import json
import statistics
import sys
import threading
import time
from collections.abc import Iterator

from bench.cluster import (
    BARE,
    JOBS,
    KAI,
    PODS,
    Seen,
    add_pod,
    copy_job,
    cpu_of_programs,
    cpu_seconds,
    find_cluster,
    is_complete,
    is_made,
    nodes,
    peak_memory,
    set_ready,
    without,
)
from bench.server import Server, delete_workloads, serving, wait_until
from bench.table import Measurement, Options
from deploy.cluster.api import ApiError
from deploy.cluster.cluster import Cluster
from deploy.cluster.nodes import MARK

TRAININGS = "/api/v1/workloads/trainings"
PROJECT = "bench"
NAMESPACE = f"runai-{PROJECT}"
#: Of another server: a namespace has one Fairlead.
OLD_PROJECT = "bench-old"
OLD_NAMESPACE = f"runai-{OLD_PROJECT}"
NODES, FIRST_NODE = 8, "bench-0"
LONG = 1800.0
#: How long a server may go on with what it does after a start before its memory is looked at, in seconds.
SETTLING = 20.0
WITHOUT_KUBELET = {"nodeSelectorTerms": [{"matchExpressions": [{"key": MARK, "operator": "Exists"}]}]}
SCHEDULING = ("kube-controller-manager", "kai-scheduler", "kai-podgrouper")


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def make_project(server: Server, name: str = PROJECT) -> str:
    pool = server.call("GET", "/api/v1/node-pools")
    pools = pool["nodepools"] if isinstance(pool, dict) else pool
    resources = {
        "nodePool": {"id": str(pools[0]["id"])},
        "gpu": {"deserved": 64},
        "cpu": {"deserved": None},
        "memory": {"deserved": None, "units": "Mib"},
    }
    body = {"name": name, "clusterId": server.credentials["clusterId"], "resources": [resources]}
    return str(server.call("POST", "/api/v1/org-unit/projects", body)["id"])


def submit(server: Server, project: str, name: str, seconds: float | None = None) -> str:
    annotations = [] if seconds is None else [{"name": "cluster.fairlead/run-seconds", "value": f"{seconds:g}"}]
    spec = {
        "image": "busybox:1.35",
        "command": "sleep 1000",
        "nodeAffinityRequired": WITHOUT_KUBELET,
        "compute": {"cpuCoreRequest": 0.1, "cpuMemoryRequest": "10M"},
        "annotations": annotations,
    }
    body = {"name": name, "projectId": project, "clusterId": server.credentials["clusterId"], "spec": spec}
    return str(server.call("POST", TRAININGS, body)["workloadId"])


def count(server: Server, phase: str, prefix: str) -> int:
    query = f"/api/v1/workloads/count?filterBy=name=^{prefix}-&filterBy=phase=={phase}"
    return int(server.call("GET", query)["count"])


def delete_all(server: Server, cluster: Cluster) -> None:
    """Returns when the cluster has nothing of them any more."""
    began = time.perf_counter()
    delete_workloads(server)
    api = cluster.api()
    paths = [path.format(NAMESPACE) for path in (JOBS, PODS)]
    wait_until(lambda: not any(api.call("GET", path)["items"] for path in paths), every=0.5, deadline=LONG)
    say(f"all deleted in {time.perf_counter() - began:.0f} s")


def measure_submissions(server: Server, cluster: Cluster, project: str, rounds: int) -> Iterator[Measurement]:
    """One after the other, each when the one before runs, and beside a bare creation of the same Job."""
    api = cluster.api()
    path = JOBS.format(NAMESPACE)
    ours, bare = [], []
    seen = Seen(cluster.kubeconfig, path, is_made)
    for number in range(rounds):
        name = f"made-{number}"
        began = time.perf_counter()
        id = submit(server, project, name)
        ours.append((seen.wait(name) - began) * 1000)
        wait_until(lambda at=id: phase_of(server, at) == "Running", every=0.1)  # type: ignore[misc]  # bound now
        body = copy_job(api.call("GET", f"{path}/{name}"), f"bare-{number}")
        began = time.perf_counter()
        api.call("POST", path, body)
        bare.append((time.perf_counter() - began) * 1000)
    api.call("DELETE", f"{path}?labelSelector={BARE}", {"propagationPolicy": "Background"})
    delete_all(server, cluster)
    own = statistics.median(bare)
    note = f"p50 {statistics.median(ours):.1f} ms; the API server's own answer to a bare Job: {own:.1f} ms"
    yield Measurement(
        "submission → Job, beyond the API server's own", "ms", [each - own for each in ours], 50, note=note
    )


def measure_reaction(server: Server, cluster: Cluster, project: str, rounds: int) -> Iterator[Measurement]:
    """From the moment when a pod's status is written until our phase is another, asked for all the time."""
    api = cluster.api()
    id = submit(server, project, "reacts")
    wait_until(lambda: phase_of(server, id) == "Running")
    [pod] = api.call("GET", PODS.format(NAMESPACE))["items"]
    took = []
    for number in range(rounds):
        before = phase_of(server, id)
        began = time.perf_counter()
        set_ready(api, pod, is_ready=number % 2 == 1)
        wait_until(lambda was=before: phase_of(server, id) != was, every=0.001)  # type: ignore[misc]  # bound now
        took.append((time.perf_counter() - began) * 1000)
    delete_all(server, cluster)
    p99 = sorted(took)[min(len(took) - 1, int(len(took) * 0.99))]
    note = f"p50 {statistics.median(took):.1f} ms, the write itself included"
    yield Measurement(f"a pod's change → phase over REST, p99 of {rounds}", "ms", [p99], 200, note=note)


def phase_of(server: Server, id: str) -> str:
    return str(server.call("GET", f"/api/v1/workloads/{id}")["phase"])


class Ends:
    """When our server said of each workload that it is complete, from its own stream."""

    def __init__(self, server: Server) -> None:
        self.at: dict[str, float] = {}
        self._server = server
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        connection = http.client.HTTPConnection(self._server.host, self._server.port, timeout=LONG)
        connection.request("GET", "/api/v1/workloads/watch", headers={"Authorization": f"Bearer {self._server.token}"})
        for line in connection.getresponse():
            if line.startswith(b"data:"):
                found = json.loads(line[5:]).get("workload")
                if found and found["phase"] == "Completed":
                    self.at.setdefault(found["name"], time.perf_counter())


def measure_many(server: Server, cluster: Cluster, project: str, many: int) -> Iterator[Measurement]:
    """All submitted at once, followed to their ends."""
    folder = cluster.layout.folder
    theirs = Seen(cluster.kubeconfig, JOBS.format(NAMESPACE), is_complete)
    ours = Ends(server)
    before, kai_before = cpu_seconds(server.process.pid), cpu_of_programs(folder)
    began = time.perf_counter()
    for number in range(many):
        submit(server, project, f"many-{number}", seconds=1)
    say(f"{many} submitted in {time.perf_counter() - began:.0f} s")
    wait_until(lambda: count(server, "Completed", "many") >= many, every=1, deadline=LONG)
    took = time.perf_counter() - began
    used = cpu_seconds(server.process.pid) - before
    kai = sum(
        after - kai_before.get(name, 0) for name, after in cpu_of_programs(folder).items() if name.startswith(KAI)
    )
    wait_until(lambda: len(ours.at) >= many and len(theirs.at) >= many, every=0.1)
    yield Measurement(f"{many:,} trainings, all complete after", "s", [took])
    yield Measurement("server, most memory", "MB", [peak_memory(server.process.pid)], 200)
    yield Measurement("server, processor time", "s", [used], kai, note=f"the goal is what KAI took: {kai:.0f} s")
    yield from measure_lag(ours.at, theirs.at)
    delete_all(server, cluster)


def measure_lag(ours: dict[str, float], theirs: dict[str, float]) -> Iterator[Measurement]:
    """A queue that grows would show as a lag that grows from the first ends to the last."""
    names = sorted(theirs, key=lambda name: theirs[name])
    lags = [(ours[name] - theirs[name]) * 1000 for name in names]
    quarter = max(1, len(lags) // 4)
    first, last = statistics.median(lags[:quarter]), statistics.median(lags[-quarter:])
    note = f"the first quarter {first:.0f} ms, the last {last:.0f} ms; most {max(lags):.0f} ms"
    yield Measurement("a Job's end → ours, in the stream", "ms", [statistics.median(lags)], note=note)


def measure_start(cluster: Cluster, options: Options, many: int) -> Iterator[Measurement]:
    """With that many that run: a Job and a pod each."""
    api = cluster.api()
    data = options.folder / "start"
    with serving(data, arguments_for(cluster)) as server:
        project = make_project(server, OLD_PROJECT)
        wait_until(lambda: has_account(cluster, OLD_NAMESPACE), every=1, deadline=LONG)
    # What makes and places pods is away meanwhile, or it would have the machine for itself.
    with without(cluster.layout.folder, *SCHEDULING):
        with serving(data, arguments_for(cluster)) as server:
            fill(server, cluster, project, many)
            memory = peak_memory(server.process.pid)
        ready, peaks = [], []
        for _ in range(3):
            with serving(data, arguments_for(cluster)) as server:
                ready.append(server.ready_after)
                say(f"{count(server, 'Running', 'old')} run at once after the start")
                time.sleep(SETTLING)
                peaks.append(peak_memory(server.process.pid))
        for path in (PODS, JOBS):
            gone = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
            api.call("DELETE", path.format(OLD_NAMESPACE), gone)
    yield Measurement(f"ready with {many:,} running workloads after", "s", ready, 5)
    note = f"{SETTLING:.0f} s after that start; before it: {memory:.0f} MB"
    yield Measurement("server, most memory with them", "MB", peaks, note=note)


def has_account(cluster: Cluster, namespace: str) -> bool:
    """Whether pods can be made there: they want the account that a controller makes for each namespace."""
    try:
        cluster.api().call("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    except ApiError:
        return False
    return True


def fill(server: Server, cluster: Cluster, project: str, many: int) -> None:
    """So many workloads that run, as far as anybody can see."""
    for number in range(many):
        submit(server, project, f"old-{number}")
    api = cluster.api()
    jobs = JOBS.format(OLD_NAMESPACE)
    wait_until(lambda: len(api.call("GET", jobs)["items"]) >= many, every=2, deadline=LONG)
    for job in api.call("GET", jobs)["items"]:
        add_pod(api, job, FIRST_NODE)
    wait_until(lambda: count(server, "Running", "old") >= many, every=1, deadline=LONG)


def arguments_for(cluster: Cluster) -> list[str]:
    return ["--engine", "kubernetes", "--kubeconfig", str(cluster.kubeconfig)]


def measure(options: Options) -> Iterator[Measurement]:
    cluster = find_cluster()
    if cluster is None:
        say("left out: no cluster runs here; start one with `make cluster-up`")
        return
    rounds, many, old = (10, 50, 100) if options.quick else (200, 1000, 5000)
    try:
        with nodes(cluster.api(), NODES):
            with serving(options.folder / "kubernetes", arguments_for(cluster)) as server:
                project = make_project(server)
                yield from measure_submissions(server, cluster, project, rounds)
                yield from measure_reaction(server, cluster, project, rounds)
                yield from measure_many(server, cluster, project, many)
            yield from measure_start(cluster, options, old)
    finally:
        for namespace in (NAMESPACE, OLD_NAMESPACE):
            cluster.api().call("DELETE", f"/api/v1/namespaces/{namespace}")
