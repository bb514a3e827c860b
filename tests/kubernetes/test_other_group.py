"""Beside the definitions of a Run:ai: Fairlead's custom resources in a group of their own, and `kubernetes adopt`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from fairlead.engines.kubernetes.install.manifests import GROUPS, render_definitions
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness
from tests.kubernetes.conftest import CRDS

pytestmark = pytest.mark.kubernetes
THEIRS, OURS = (f"trainingworkloads.{group}" for group in GROUPS)
OWNER = "app.kubernetes.io/managed-by"


@pytest.fixture(scope="module")
def harness(cluster: clusters.Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHarness]:
    """The definitions of run.ai are somebody else's meanwhile."""
    harness = ClusterHarness(cluster, tmp_path_factory.mktemp("server"), arguments=("--group", GROUPS[1]))
    names = [one["metadata"]["name"] for one in render_definitions(GROUPS[1])]
    others = [name for name in names if not name.startswith("distributedinference")]
    added = [one for one in render_definitions(GROUPS[1]) if one["metadata"]["name"] in others]
    try:
        definitions = json.dumps({"apiVersion": "v1", "kind": "List", "items": added})
        assert harness.kubectl("apply", "--server-side", "-f", "-", stdin=definitions).returncode == 0
        waited = harness.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *others)
        assert waited.returncode == 0, waited.stderr
        harness.open(CRDS)
        assert harness.kubectl("label", "crd", THEIRS, f"{OWNER}=runai", "--overwrite").returncode == 0
        yield harness
    finally:
        harness.kubectl("label", "crd", THEIRS, f"{OWNER}=fairlead", "--overwrite")
        harness.close()
        harness.kubectl("delete", "crd", *others, "--timeout=120s")


def document(harness: ClusterHarness, group: str, name: str) -> str:
    spec = {"image": {"value": "busybox:1.35"}, "command": {"value": "sh -c 'exit 0'"}, "name": {"value": name}}
    metadata = {"name": name, "namespace": harness.namespace}
    whole = {"apiVersion": f"{group}/v2alpha1", "kind": "TrainingWorkload", "metadata": metadata, "spec": spec}
    return json.dumps(whole)


def find(harness: ClusterHarness, kind: str, name: str) -> dict[str, Any]:
    done = harness.kubectl("get", kind, name, "-n", harness.namespace, "-o", "json")
    found: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
    return found


def phase(harness: ClusterHarness, name: str) -> str:
    return str(find(harness, OURS, name).get("status", {}).get("phase", ""))


def test_objects_of_our_group_run_and_those_of_run_ai_are_left_alone(harness: ClusterHarness) -> None:
    for group in GROUPS:
        made = harness.kubectl("apply", "-f", "-", stdin=document(harness, group, f"by-{group.partition('.')[0]}"))
        assert made.returncode == 0, made.stderr
    try:
        until(lambda: phase(harness, "by-workloads") == "Completed", "the end of ours", PATIENCE)
        sent = harness.train("sent", gpus=0, seconds=1)
        harness.until_phase(sent, "Completed")
        until(lambda: phase(harness, "sent") == "Completed", "the object of what was sent by REST", PATIENCE)
        theirs = find(harness, THEIRS, "by-run")
        assert "status" not in theirs
        assert "finalizers" not in theirs["metadata"]
        # They are all in one namespace: what is adopted runs as ours, once it is started.
        told = adopt(harness)
        assert f"TrainingWorkload {harness.namespace}/by-run is copied, suspended" in told
        assert find(harness, OURS, "by-run") == {}
        adopt(harness, "--yes")
        until(lambda: phase(harness, "by-run") == "Stopped", "the copy, suspended", PATIENCE)
        assert "by-run exists already" in adopt(harness, "--yes")
    finally:
        harness.kubectl("delete", THEIRS, "by-run", "-n", harness.namespace, "--timeout=60s")


def adopt(harness: ClusterHarness, *arguments: str) -> str:
    cluster_id = str(harness.server.credentials["clusterId"])
    reach = ("--kubeconfig", str(harness.cluster.kubeconfig), "--namespace", harness.namespace)
    command = [sys.executable, "-m", "fairlead", "kubernetes", "adopt", "--cluster-id", cluster_id, *reach, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done
    return done.stdout
