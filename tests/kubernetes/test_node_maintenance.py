"""Nodes of a real cluster are cordoned, drained and used again; the evictions are those of the API server."""

from typing import Any

import pytest

from tests.e2e.cli_calls import Caller
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes


def place_of(harness: ClusterHarness, workload: str) -> str:
    """The node of its running pod."""
    running = [pod["nodeName"] for pod in harness.pods(workload) if pod["k8sPhase"] == "Running"]
    return str(running[0]) if running else ""


def is_unschedulable(harness: ClusterHarness, node: str) -> bool:
    return bool(harness.api.call("GET", f"/api/v1/nodes/{node}")["spec"].get("unschedulable"))


def nodes(harness: ClusterHarness) -> dict[str, tuple[bool, bool]]:
    found: list[dict[str, Any]] = harness.server.call("GET", "/api/v1/nodes").json["nodes"]
    return {node["name"]: (node["cordoned"], node["draining"]) for node in found}


def test_a_node_is_drained_and_used_again(harness: ClusterHarness) -> None:
    """A training moves although it may not fail once, a budget is respected, and pods of others stay."""
    fairlead = Caller(harness.server.data_dir)
    train = harness.train("moves", backoffLimit=0)
    harness.until_phase(train, "Running")
    node = place_of(harness, train)
    foreign = {
        "metadata": {"name": "foreign", "namespace": harness.namespace},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "busybox:1.35"}]},
    }
    harness.api.call("POST", f"/api/v1/namespaces/{harness.namespace}/pods", foreign)
    budget = harness.kubectl(
        *("create", "pdb", "held", "-n", harness.namespace, "--min-available=1"),
        f"--selector=fairlead/workload-id={train}",
    )
    assert budget.returncode == 0, budget.stderr
    try:
        pdb = f"/apis/policy/v1/namespaces/{harness.namespace}/poddisruptionbudgets/held"
        until(lambda: harness.api.call("GET", pdb).get("status", {}).get("currentHealthy") == 1, "the budget", PATIENCE)
        fairlead.ok("node", "drain", node, "--yes")
        until(lambda: nodes(harness)[node] == (True, True), "that it is draining", PATIENCE)
        until(lambda: is_unschedulable(harness, node), "that nothing is placed there", PATIENCE)
        assert place_of(harness, train) == node
        assert harness.kubectl("delete", "pdb", "held", "-n", harness.namespace).returncode == 0
        until(lambda: place_of(harness, train) not in ("", node), "that it runs elsewhere", PATIENCE)
        assert harness.server.phase(train) == "Running"
        assert "foreign" in [pod["metadata"]["name"] for pod in harness.objects("pods")]
        # Somebody uses kubectl: that holds.
        assert harness.kubectl("uncordon", node).returncode == 0
        until(lambda: nodes(harness)[node] == (False, False), "that it is uncordoned", PATIENCE)
        fairlead.ok("node", "cordon", node, "--yes")
        until(lambda: is_unschedulable(harness, node), "that it is cordoned", PATIENCE)
        fairlead.ok("node", "uncordon", node, "--yes")
        until(lambda: not is_unschedulable(harness, node), "that it can be used again", PATIENCE)
    finally:
        harness.kubectl("delete", "pdb/held", "pod/foreign", "-n", harness.namespace, "--ignore-not-found", "--force")
        harness.kubectl("uncordon", node)
