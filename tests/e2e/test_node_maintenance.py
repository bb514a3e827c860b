"""Nodes are cordoned, drained and used again: on a machine with two declared nodes, and on a cluster in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.cli_calls import Caller
from tests.e2e.server import Server, until
from tests.memory_api.process import running_api

NODES = ("--personal", "--node", "a:cpu=1,memory=2Gi,gpus=1", "--node", "b:cpu=1,memory=2Gi,gpus=1")


def submit(server: Server, name: str, **spec: Any) -> str:
    [project] = server.call("GET", "/api/v1/org-unit/projects").json["projects"]
    body = {"name": name, "projectId": project["id"], "clusterId": project["clusterId"], "spec": spec}
    answer = server.call("POST", "/api/v1/workloads/trainings", body)
    assert answer.status == 202, answer
    return str(answer.json["workloadId"])


def places(server: Server) -> dict[str, str]:
    """The nodes of running pods, by workload."""
    pods = server.call("GET", "/api/v1/workloads/pods?completed=false").json["pods"]
    return {pod["workloadName"]: pod["nodeName"] for pod in pods if pod["k8sPhase"] == "Running"}


def nodes(server: Server) -> dict[str, tuple[bool, bool]]:
    found = server.call("GET", "/api/v1/nodes").json["nodes"]
    return {node["name"]: (node["cordoned"], node["draining"]) for node in found}


def actions(server: Server) -> list[str]:
    period = "start=2000-01-01T00:00:00Z&end=2100-01-01T00:00:00Z"
    found = server.call("GET", f"/api/v1/audit/log?{period}&filterBy=entity_type==nodes&sortOrder=asc")
    return [line["metadata"]["operation"] for line in found.json["audit_logs"]]


def test_a_machine(make_server: Callable[..., Server]) -> None:
    server = make_server(*NODES)
    fairlead = Caller(server.data_dir)
    gpu = {"gpuDevicesRequest": 1, "gpuRequestType": "portion", "gpuPortionRequest": 1}
    ids = {
        name: submit(server, name, image="none", command="sleep", args="1000", compute=gpu) for name in ("one", "two")
    }
    until(lambda: len(places(server)) == 2, "that both run")
    [moved] = [name for name, node in places(server).items() if node == "a"]

    refused = fairlead("node", "drain", "a")
    assert (refused.code, "Would be evicted" in refused.out, "Nothing was changed" in refused.err) == (1, True, True)
    assert nodes(server) == {"a": (False, False), "b": (False, False)}

    assert "its pods are being evicted" in fairlead.ok("node", "drain", "a", "--yes")
    server.until_phase(ids[moved], "Pending")
    assert nodes(server)["a"] == (True, True)
    workload = server.workload(ids[moved])
    assert "a is cordoned" in workload["phaseMessage"], workload["phaseMessage"]
    eviction = server.call("GET", f"/api/v1/workloads/{ids[moved]}/explanation").json["lastEviction"]
    assert (eviction["rule"], eviction["message"]) == ("drained", "Evicted: node a is being drained")
    assert "a     Ready, draining" in fairlead.ok("node", "list")

    server.stop()
    server.start()
    assert nodes(server) == {"a": (True, True), "b": (False, False)}
    fairlead.ok("what-if", "--uncordon", "a", "--apply", "--yes")
    until(lambda: places(server).get(moved) == "a", "that it runs again")

    fairlead.ok("node", "cordon", "a", "--yes")
    until(lambda: nodes(server)["a"] == (True, False), "that it is cordoned")
    assert places(server)[moved] == "a"
    assert actions(server) == ["drain", "uncordon", "cordon"]


def test_a_workload_is_removed_in_its_own_project(make_server: Callable[..., Server]) -> None:
    server = make_server(*NODES)
    fairlead = Caller(server.data_dir)
    fairlead.ok("project", "create", "other")
    for project, name in (("default", "same"), ("other", "same"), ("other", "single")):
        fairlead.ok("run", "-p", project, "-n", name, "--detach", "--", "sleep", "1000")

    def running() -> set[tuple[str, str]]:
        rows = server.call("GET", "/api/v1/workloads").json["workloads"]
        return {(row["projectName"], row["name"]) for row in rows if row["phase"] == "Running"}

    until(lambda: len(running()) == 3, "that all run")
    fairlead.ok("what-if", "--no-times", "--remove-workload", "other/same", "--apply", "--yes")
    until(lambda: running() == {("default", "same"), ("other", "single")}, "that one is suspended")
    fairlead.ok("what-if", "--no-times", "--remove-workload", "single", "--apply", "--yes")
    until(lambda: running() == {("default", "same")}, "that another one is suspended")

    shared = fairlead("what-if", "--quota", "default.gpu=1")
    assert "2 queues are called 'default'; name one of department-1, project-1." in shared.err
    applied = fairlead.ok("what-if", "--no-times", "--quota", "project-1.gpu=1", "--apply", "--yes")
    assert applied.endswith("project default: quota changed\n")


def test_a_cluster(make_server: Callable[..., Server], tmp_path: Path) -> None:
    with running_api(tmp_path / "lab", nodes=2) as api:
        server = make_server("--engine", "kubernetes", "--kubeconfig", str(api.kubeconfig))
        fairlead = Caller(server.data_dir)
        run = {"name": "cluster.fairlead/run-seconds", "value": "1000"}
        id = submit(server, "train", image="busybox", command="sleep", annotations=[run])
        until(lambda: "train" in places(server), "that it runs")
        before = places(server)["train"]

        def is_unschedulable(name: str) -> bool:
            return bool(api.call("GET", f"/api/v1/nodes/{name}").get("spec", {}).get("unschedulable"))

        fairlead.ok("node", "drain", before, "--yes")
        until(lambda: places(server).get("train") not in (None, before), "that it runs elsewhere")
        assert is_unschedulable(before)
        until(lambda: nodes(server)[before] == (True, True), "that it is recorded")
        assert server.workload(id)["phase"] == "Running"

        # Somebody uncordons it in the cluster: that holds, and nothing is evicted any more.
        api.call("PATCH", f"/api/v1/nodes/{before}", {"spec": {"unschedulable": None}})
        until(lambda: nodes(server)[before] == (False, False), "that it is uncordoned")
        fairlead.ok("node", "cordon", before, "--yes")
        until(lambda: is_unschedulable(before), "that it is cordoned")
        fairlead.ok("node", "uncordon", before, "--yes")
        until(lambda: not is_unschedulable(before), "that it is uncordoned again")
