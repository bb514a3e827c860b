"""A manifest of a kind that Fairlead does not have, on a real cluster with its real controller: a StatefulSet."""

from typing import Any

import pytest

from deploy.cluster.nodes import MARK
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import ID, IMAGE, PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes

#: The nodes without a kubelet.
ANYWHERE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": MARK, "operator": "Exists"}]}]}
PATH, TYPES = "/api/v2/workloads", "/api/v1/workload-types"


def stateful_set() -> dict[str, Any]:
    labels = {"app": "store"}
    container = {
        "name": "main",
        "image": IMAGE,
        "command": ["sleep", "1000"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    pod = {
        "containers": [container],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ANYWHERE}},
    }
    spec = {
        "serviceName": "store",
        "replicas": 2,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "store"}, "spec": spec}


@pytest.fixture(scope="module", autouse=True)
def workload_type(harness: ClusterHarness) -> None:
    known = harness.server.call("GET", TYPES).json["types"][0]
    body = {"name": "StatefulSet", "group": "apps"} | {name: known[name] for name in ("categoryId", "priorityId")}
    made = harness.server.call("POST", TYPES, body)
    assert made.json["clusterStatuses"][0]["phase"] == "Ready", made


def submit(harness: ClusterHarness, name: str, manifest: dict[str, Any]) -> str:
    body = {"metadata": {"name": name, "projectId": harness.project_id}, "manifest": manifest}
    answer = harness.server.call("POST", PATH, body)
    assert answer.status == 202, answer
    return str(answer.json["metadata"]["id"])


def running(harness: ClusterHarness, workload: str) -> list[str]:
    found = harness.objects("pods")
    return sorted(
        one["metadata"]["name"]
        for one in found
        if one["metadata"]["labels"].get(ID) == workload and one["status"].get("phase") == "Running"
    )


def test_a_stateful_set_is_placed_by_kai_suspended_and_deleted(harness: ClusterHarness) -> None:
    workload = submit(harness, "store", stateful_set())
    harness.until_phase(workload, "Running")
    until(lambda: running(harness, workload) == ["store-0", "store-1"], "both pods", PATIENCE)
    pods = harness.objects("pods")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"kai-scheduler"}
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"node-1", "node-2"}
    until(lambda: len(harness.pods(workload)) == 2, "both in the answer", PATIENCE)
    harness.act("suspend", workload)
    harness.until_phase(workload, "Stopped")
    assert harness.names("statefulsets,pods") == []
    harness.act("resume", workload)
    harness.until_phase(workload, "Running")
    assert harness.server.call("DELETE", f"{PATH}/{workload}").status == 202
    until(lambda: harness.names("statefulsets,pods") == [], "that nothing is left", PATIENCE)
