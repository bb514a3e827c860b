"""The cluster is the second copy: a restored or lost database ends nothing that runs, and workloads are adopted."""

import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import CUSTOM, PATIENCE, ClusterHarness
from tests.kubernetes.test_custom_resources import apply, document, until_status

pytestmark = pytest.mark.kubernetes


def fairlead(harness: ClusterHarness, *arguments: str) -> None:
    folder = str(harness.server.data_dir)
    command = [sys.executable, "-m", "fairlead", *arguments, "--data-dir", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def restart(harness: ClusterHarness, *restore: str) -> None:
    harness.server.stop()
    fairlead(harness, "restore", *restore, "--force")
    harness.server.token = ""
    harness.server.start()


def pods(harness: ClusterHarness) -> set[str]:
    """The pods that run, by uid."""
    objects = harness.objects("pods")
    return {one["metadata"]["uid"] for one in objects if "deletionTimestamp" not in one["metadata"]}


def custom_resources(harness: ClusterHarness) -> dict[str, dict[str, Any]]:
    """All custom resources by the workload that they name."""
    named = {}
    for plural in CUSTOM:
        for one in harness.custom_resources(plural, harness.namespace):
            named[one.get("status", {}).get("workloadId", "")] = one
    return named


def until_resources(harness: ClusterHarness, *ids: str, phase: str = "Running") -> None:
    def holds() -> bool:
        named = custom_resources(harness)
        return set(named) == set(ids) and all(one["status"]["phase"] == phase for one in named.values())

    until(holds, f"{phase} of all custom resources", PATIENCE)


def until_adopted(harness: ClusterHarness, *ids: str) -> None:
    """The server answers before it has seen what is in the cluster."""

    def are_known() -> bool:
        return all(harness.server.call("GET", f"/api/v1/workloads/{id}").status == 200 for id in ids)

    until(are_known, "all to be adopted", PATIENCE)
    for id in ids:
        harness.until_phase(id, "Running")


def test_a_backup_that_knows_nothing_ends_nothing(harness: ClusterHarness) -> None:
    backup = harness.folder / "backup.tar.gz"
    fairlead(harness, "backup", str(backup))
    applied = apply(harness, document(harness, "applied"))
    until_status(harness, "applied", "Running")
    groups = {"leader": harness.spec(gpus=1), "workers": 0, "replicas": 1}
    sent = {
        harness.train("sent"): "training",
        harness.submit("workspace", "desk", harness.spec()): "workspace",
        harness.submit("groups", "groups", groups): "groups",
    }
    for id in sent:
        harness.until_phase(id, "Running")
    until_resources(harness, applied, *sent)
    before = pods(harness)
    assert len(before) == 4
    restart(harness, str(backup))
    until_adopted(harness, applied, *sent)
    assert pods(harness) == before
    assert harness.server.workload(applied)["name"] == "applied"
    until_resources(harness, applied, *sent)
    # They are workloads like any other.
    for id, kind in sent.items():
        harness.act("delete", id, kind)
    until_resources(harness, applied)
    assert harness.kubectl("delete", "twl", "applied", "-n", harness.namespace, "--timeout=120s").returncode == 0


def test_a_project_that_was_created_after_the_backup_comes_back_from_the_cluster(harness: ClusterHarness) -> None:
    backup = harness.folder / "before-project.tar.gz"
    fairlead(harness, "backup", str(backup))
    project = harness.make_project("later", gpus=2)
    body = {"name": "kept", "projectId": project, "clusterId": harness.server.credentials["clusterId"]}
    sent = harness.server.call("POST", "/api/v1/workloads/trainings", {**body, "spec": harness.spec()}).json
    workload, gone = str(sent["workloadId"]), f"/api/v1/org-unit/projects/{project}"
    try:
        harness.until_phase(workload, "Running")
        kept = ("get", "twl", "kept", "-n", "runai-later", "-o", "jsonpath={.status.workloadId}")
        until(lambda: harness.kubectl(*kept).stdout == workload, "its object", PATIENCE)
        cluster = ("--cluster-id", str(harness.server.credentials["clusterId"]))
        restart(harness, str(backup), "--from-cluster", "--kubeconfig", str(harness.cluster.kubeconfig), *cluster)
        until_adopted(harness, workload)
        assert harness.server.workload(workload)["projectName"] == "later"
        harness.until_phase(workload, "Running")
    finally:
        harness.server.call("DELETE", gone)
        until(lambda: harness.server.call("GET", gone).status == 404, "its end", PATIENCE)


def test_a_lost_database_is_rebuilt_from_the_cluster(harness: ClusterHarness) -> None:
    applied = apply(harness, document(harness, "kept"))
    sent = harness.train("sent", annotations=[{"name": "team", "value": "a"}])
    until_adopted(harness, applied, sent)
    until_resources(harness, applied, sent)
    was = harness.server.workload(sent)
    before, cluster = pods(harness), str(harness.server.credentials["clusterId"])
    kubeconfig = ("--kubeconfig", str(harness.cluster.kubeconfig), "--cluster-id", cluster)
    (harness.server.data_dir / "credentials.json").unlink()
    restart(harness, "--from-cluster", *kubeconfig)
    assert harness.server.credentials["clusterId"] == cluster
    until_adopted(harness, applied, sent)
    assert pods(harness) == before
    now = harness.server.workload(sent)
    for member in ("name", "submittedBy", "createdAt", "projectId"):
        assert now[member] == was[member]
