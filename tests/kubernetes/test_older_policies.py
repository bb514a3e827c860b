"""Policies in the older form as custom resources of a real API server, whose definitions check them."""

import json
from typing import Any

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes

KINDS = {
    "trainingpolicies": ("TrainingPolicy", "trainings"),
    "interactivepolicies": ("InteractivePolicy", "workspaces"),
    "distributedpolicies": ("DistributedPolicy", "distributed"),
    "inferencepolicies": ("InferencePolicy", "inferences"),
}


def apply(harness: ClusterHarness, kind: str, most: Any) -> None:
    body = {
        "apiVersion": "run.ai/v2alpha1",
        "kind": kind,
        "metadata": {"name": "old", "namespace": harness.namespace},
        "spec": {"cpu": {"rules": {"max": most}}},
    }
    made = harness.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    assert made.returncode == 0, made.stderr


def status(harness: ClusterHarness, plural: str) -> dict[str, Any]:
    found = harness.kubectl("get", f"{plural}.run.ai", "old", "-n", harness.namespace, "-o", "json")
    return dict(json.loads(found.stdout).get("status", {})) if found.returncode == 0 else {}


@pytest.mark.parametrize("plural", KINDS)
def test_an_object_is_a_policy_until_it_is_deleted(harness: ClusterHarness, plural: str) -> None:
    kind, path = KINDS[plural]

    def most() -> Any:
        """Distributed workloads have the rule for each role."""
        answer = harness.server.call("GET", f"/api/v2/policy/{path}?scope=project&projectId={harness.project_id}")
        rules = (answer.json.get("policy") or {}).get("rules") or {}
        rules = rules.get("worker", rules)
        return ((rules.get("compute") or {}).get("cpuCoreRequest") or {}).get("max")

    apply(harness, kind, 4)
    until(lambda: status(harness, plural).get("phase") == "Applied", "that it is applied", PATIENCE)
    assert most() == 4
    apply(harness, kind, "2")
    until(lambda: most() == 2, "the edit", PATIENCE)
    shown = harness.kubectl("get", f"{plural}.run.ai", "-n", harness.namespace).stdout.splitlines()
    assert shown[0].split() == ["NAME", "STATUS", "SCOPE", "AGE", "MESSAGE"]
    if plural == "trainingpolicies":
        refused = harness.post("training", "large", harness.spec(gpus=0, compute={"cpuCoreRequest": 3}))
        assert (refused.status, "no greater than 2" in str(refused.json)) == (400, True), refused
    apply(harness, kind, "much")
    until(lambda: status(harness, plural).get("phase") == "Failed", "the mistake in its status", PATIENCE)
    assert most() == 2
    assert harness.kubectl("delete", f"{plural}.run.ai", "old", "-n", harness.namespace).returncode == 0
    assert most() is None
