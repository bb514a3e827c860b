"""A real server with several clusters: this machine, and API servers in memory that play a cluster's pods."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.memory_api.process import running_api

#: How long a pod of the API server in memory runs.
RUN_SECONDS = {"name": "cluster.fairlead/run-seconds", "value": "0.1"}


def rows(server: Server, path: str, member: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.call("GET", path).json[member]
    return found


def submit(server: Server, name: str, project: str) -> str:
    [row] = [one for one in rows(server, "/api/v1/org-unit/projects", "projects") if one["name"] == project]
    spec = {"image": "busybox", "command": "true", "annotations": [RUN_SECONDS]}
    body = {"name": name, "projectId": row["id"], "clusterId": row["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def states(server: Server) -> dict[str, str]:
    return {one["name"]: one["status"]["state"] for one in server.call("GET", "/api/v1/clusters").json}


def test_this_machine_and_a_cluster(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server("--personal")
    fairlead = Caller(server.data_dir)
    with running_api(tmp_path / "lab", nodes=2) as api:
        fairlead.ok("cluster", "add", "lab", "--kubeconfig", str(api.kubeconfig))
        fairlead.ok("project", "create", "vision", "--cluster", "lab")
        here, there = submit(server, "here", "default"), submit(server, "there", "vision")
        for id in (here, there):
            server.until_phase(id, "Completed")
        assert states(server) == {"default": "Connected", "lab": "Connected"}
        lab = server.workload(there)["clusterId"]
        assert api.call("GET", "/apis/batch/v1/jobs")["items"]
        pods = rows(server, f"/api/v1/workloads/pods?filterBy=clusterId=={lab}&completed=true", "pods")
        assert {pod["workloadId"] for pod in pods} == {there}
        nodes = rows(server, f"/api/v1/nodes?filterBy=clusterUuid=={lab}", "nodes")
        assert len(nodes) == 2 < len(rows(server, "/api/v1/nodes", "nodes"))
        assert fairlead.ok("list", "--cluster", "lab", "-o", "name").split() == ["there"]
        assert set(fairlead.ok("list", "-A", "-o", "name").split()) == {"here", "there"}

    # Its API server is gone: submissions wait, and this machine works as before, also after a restart.
    until(lambda: states(server)["lab"] == "Disconnected", "that the cluster is away")
    waits = submit(server, "waits", "vision")
    server.until_phase(submit(server, "meanwhile", "default"), "Completed")
    server.stop()
    server.start()
    server.until_phase(submit(server, "later", "default"), "Completed")
    assert states(server) == {"default": "Connected", "lab": "Disconnected"}
    assert server.phase(waits) in ("Creating", "Initializing", "Pending")

    with running_api(tmp_path / "again", nodes=2) as api:
        fairlead.ok("cluster", "connect", "lab", "--kubeconfig", str(api.kubeconfig))
        server.until_phase(waits, "Completed")
        refused = fairlead("cluster", "remove", "lab")
        assert (refused.code != 0, "delete its projects first (vision)" in refused.err) == (True, True)


def test_this_machine_beside_a_cluster(make_server: Callable[..., Server], tmp_path: Path) -> None:
    with running_api(tmp_path / "lab", nodes=1) as api:
        server = make_server("--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig))
        fairlead = Caller(server.data_dir)
        fairlead.ok("cluster", "add", "machine", "--local")
        fairlead.ok("project", "create", "small", "--cluster", "machine")
        for id in (submit(server, "there", "default"), submit(server, "here", "small")):
            server.until_phase(id, "Completed")
        jobs = api.call("GET", "/apis/batch/v1/jobs")["items"]
        assert [job["metadata"]["name"] for job in jobs] == ["there"]
        fairlead.ok("project", "delete", "small", "--force")
        until(lambda: fairlead("cluster", "remove", "machine").code == 0, "that the project is gone")
        assert states(server) == {"default": "Connected"}
