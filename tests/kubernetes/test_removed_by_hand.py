"""What somebody removes behind Fairlead's back comes again, and what runs on meanwhile is left alone."""

import pytest

from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes


def uids(harness: ClusterHarness, kinds: str, namespace: str = "") -> set[str]:
    return {one["metadata"]["uid"] for one in harness.objects(kinds, namespace=namespace)}


def test_a_projects_namespace_is_made_again_without_the_workloads_that_were_deleted_with_it(
    harness: ClusterHarness,
) -> None:
    """Whoever deletes a namespace deletes the custom resources in it, which ends their workloads."""
    project = harness.make_project(f"{harness.project}-gone", gpus=1)
    namespace = f"runai-{harness.project}-gone"
    workload = harness.submit("training", "with-it", harness.spec(), project=project)
    harness.until_phase(workload, "Running")
    assert harness.kubectl("delete", "namespace", namespace).returncode == 0
    until(lambda: harness.server.workload(workload).get("deletedAt"), "the end of what was in it", PATIENCE)
    after = harness.submit("training", "after-it", harness.spec(), project=project)
    harness.until_phase(after, "Running")


def test_a_pod_group_is_made_again_around_its_pods(harness: ClusterHarness) -> None:
    spec = harness.spec(numWorkers=1, distributedFramework="PyTorch")
    workload = harness.submit("distributed", "together", spec)
    harness.until_phase(workload, "Running")
    pods, groups = uids(harness, "pods"), uids(harness, "podgroups")
    assert harness.kubectl("delete", "podgroup", "together", "-n", harness.namespace, "--wait=false").returncode == 0
    until(lambda: uids(harness, "podgroups") - groups, "another group", PATIENCE)
    assert uids(harness, "pods") == pods
    assert harness.server.phase(workload) == "Running"
