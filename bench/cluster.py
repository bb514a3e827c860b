"""The cluster's side of `bench.kubernetes`: objects written past our server, what programs use, what is seen when."""

import contextlib
import http.client
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from deploy.cluster import cluster as clusters
from deploy.cluster import control, sandbox
from deploy.cluster.api import STRATEGIC, Api
from deploy.cluster.layout import name_of
from deploy.cluster.nodes import Shape, add_nodes, observe_nodes, remove_nodes

#: The cluster of `make cluster-up`, unless FAIRLEAD_CLUSTER names another.
USUAL = Path(__file__).parents[1] / ".tools" / "cluster"
KAI = "kai-"
#: The label of Jobs that were created past our server.
BARE = "bench-bare"
PODS, JOBS = "/api/v1/namespaces/{}/pods", "/apis/batch/v1/namespaces/{}/jobs"


def find_cluster() -> clusters.Cluster | None:
    return clusters.find(Path(os.environ.get("FAIRLEAD_CLUSTER", USUAL)).absolute())


@contextlib.contextmanager
def nodes(api: Api, count: int) -> Iterator[None]:
    """So many nodes without a kubelet for a while; those that were there are left alone."""
    names = [f"bench-{number}" for number in range(count)]
    add_nodes(api, [name for name in names if name not in observe_nodes(api)], Shape(gpus=8))
    try:
        yield
    finally:
        remove_nodes(api, names)


@contextlib.contextmanager
def without(folder: Path, *programs: str) -> Iterator[None]:
    """Some programs of the cluster are away for a while."""
    for program in programs:
        control.stop(folder, program)
    try:
        yield
    finally:
        for program in programs:
            control.start_again(folder, program)


def cpu_seconds(pid: int) -> float:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def cpu_of_programs(folder: Path) -> dict[str, float]:
    """Seconds of processor time so far, by program."""
    used: dict[str, float] = {}
    for pid in sandbox.members(name_of(folder)):
        with contextlib.suppress(OSError):
            program = Path(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()).name
            used[program] = used.get(program, 0.0) + cpu_seconds(pid)
    return used


def peak_memory(pid: int) -> float:
    """The most resident memory that a process ever had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


class Seen:
    """When the cluster first said something of each object: a watch in a thread of its own."""

    def __init__(self, kubeconfig: Path, path: str, is_it: Callable[[str, dict[str, Any]], bool]) -> None:
        self.at: dict[str, float] = {}
        self._is_it = is_it
        self._api = Api(kubeconfig, timeout=900)
        self._path = path
        version = self._api.call("GET", path)["metadata"]["resourceVersion"]
        self._thread = threading.Thread(target=self._follow, args=(version,), daemon=True)
        self._thread.start()

    def _follow(self, version: str) -> None:
        # The stream breaks when its reader is done with it.
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError, AttributeError):
            for kind, one in self._api.watch_from(self._path, version):
                if self._is_it(kind, one):
                    self.at.setdefault(one["metadata"]["name"], time.perf_counter())

    def wait(self, name: str, seconds: float = 60.0) -> float:
        end = time.monotonic() + seconds
        while name not in self.at:
            if time.monotonic() > end:
                raise SystemExit(f"{name} was not seen within {seconds:.0f} s")
            time.sleep(0.0005)
        return self.at[name]


def is_made(kind: str, one: dict[str, Any]) -> bool:
    return kind == "ADDED"


def is_complete(kind: str, one: dict[str, Any]) -> bool:
    conditions = one.get("status", {}).get("conditions", ())
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)


def copy_job(job: dict[str, Any], name: str) -> dict[str, Any]:
    """Another Job like this one, without what makes it ours."""
    spec = {key: value for key, value in job["spec"].items() if key not in ("selector", "manualSelector", "suspend")}
    template = {**spec["template"], "metadata": {"annotations": spec["template"]["metadata"].get("annotations", {})}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": job["metadata"]["namespace"], "labels": {BARE: "true"}},
        "spec": {**spec, "template": template, "suspend": True},
    }


def add_pod(api: Api, job: dict[str, Any], node: str) -> None:
    """The pod that the controller manager would have made for a Job, as it looks when it runs."""
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    template = job["spec"]["template"]
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
    metadata = {
        **template["metadata"],
        "name": f"{name}-0",
        "namespace": namespace,
        "ownerReferences": [{**reference, "controller": True}],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"], "nodeName": node}}
    api.call("POST", PODS.format(namespace), body)


def set_ready(api: Api, pod: dict[str, Any], *, is_ready: bool) -> None:
    """What a kubelet would say of a pod that answers its readiness probe, or no longer does."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    condition = {"type": "Ready", "status": "True" if is_ready else "False"}
    body = {"status": {"conditions": [condition]}}
    api.call("PATCH", f"{PODS.format(namespace)}/{name}/status", body, STRATEGIC)
