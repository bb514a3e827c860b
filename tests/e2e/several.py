"""What tests of workloads with several roles share: distributed trainings, services of groups, and their pods."""

import contextlib
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from fairlead.engines.local.network.plan import PodNetworks
from tests.e2e.server import Answer, Server, until

DISTRIBUTED = "/api/v1/workloads/distributed"
GROUPS = "/api/v1/workloads/distributed-inferences"
SLEEP = "import time; time.sleep(600)"
#: Whether pods get networks of their own on this machine, so that two can use one port.
HAS_NETWORKS = PodNetworks("/nowhere").is_able
needs_networks = pytest.mark.skipif(
    not HAS_NETWORKS, reason="pods get a network of their own only from a server that may make one"
)


def program(script: str, python: str = "python3", **members: Any) -> dict[str, Any]:
    """The members of a pod's spec that run a script of Python."""
    return {"image": "python:3", "command": f"{python} -c", "args": shlex.quote(script), **members}


def request(server: Server, name: str, spec: dict[str, Any], **beside: Any) -> dict[str, Any]:
    return {"name": name, "projectId": "1", "clusterId": server.credentials["clusterId"], "spec": spec, **beside}


def accepted(answer: Answer) -> str:
    """The id of a workload that was accepted."""
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def train(server: Server, name: str, spec: dict[str, Any], **beside: Any) -> str:
    """A distributed training that must be accepted; its id."""
    return accepted(server.call("POST", DISTRIBUTED, request(server, name, spec, **beside)))


def serve(server: Server, name: str, **spec: Any) -> str:
    """A service of groups that must be accepted; its id."""
    return accepted(server.call("POST", GROUPS, request(server, name, spec)))


def scale(server: Server, workload_id: str, replicas: int) -> Answer:
    return server.call("PATCH", f"{GROUPS}/{workload_id}", {"spec": {"replicas": replicas}})


def all_pods(server: Server, workload_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call("GET", f"/api/v1/workloads/{workload_id}/pods?limit=500").json["pods"]
    return found


def pods(server: Server, workload_id: str) -> dict[str, dict[str, Any]]:
    """The pods that have not ended, by name."""
    return {pod["name"]: pod for pod in all_pods(server, workload_id) if pod["k8sPhase"] in ("Pending", "Running")}


def until_pods(server: Server, workload_id: str, *names: str) -> dict[str, dict[str, Any]]:
    until(lambda: set(pods(server, workload_id)) == set(names), f"pods {names}")
    return pods(server, workload_id)


def outputs(server: Server, workload_id: str) -> dict[str, str]:
    """What each pod wrote, when none runs any more."""
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "the end of its pods")
    names = {pod["name"] for pod in all_pods(server, workload_id)}
    return {name: server.logs(workload_id, f"?pod={name}") for name in names}


def events(server: Server, workload_id: str, reason: str) -> list[dict[str, Any]]:
    found = server.call("GET", f"/api/v1/workloads/{workload_id}/events?limit=500").json["events"]
    return [event for event in found if event["reason"] == reason]


def delete(server: Server, workload_id: str, path: str = GROUPS) -> None:
    assert server.call("DELETE", f"{path}/{workload_id}").status == 202
    until(lambda: server.workload(workload_id)["runningPods"] == 0, "its end")


def processes_of(pod_id: str) -> list[int]:
    """The processes of a pod, known by their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"={pod_id}.".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def kill_pod(pod_id: str) -> None:
    """Kill the program of a pod; its supervisor sees that."""
    [pid, *_] = processes_of(pod_id)
    os.kill(pid, signal.SIGKILL)
