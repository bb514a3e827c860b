"""Whole GPUs as claims for devices: the template is made before the Job and goes with the workload."""

import json
from pathlib import Path

from fairlead.engines.base import DeleteWorkload
from fairlead.engines.kubernetes.client.resources import (
    JOB,
    NODE,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from fairlead.formats.rest.requests import read_submission
from fairlead.kinds import KINDS
from tests.contract.fake_cluster import NAMESPACE_NAME, Cluster, ClusterHarness, run
from tests.contract.test_kubernetes_api import scenario

GOLDEN = Path(__file__).parents[1] / "golden"
KIND = KINDS["training"]
PODSETS = KIND.podsets(read_submission(KIND, (GOLDEN / "training" / "device-claims.request.json").read_bytes()).spec)


@scenario
async def test_a_template_comes_and_goes_with_its_workload() -> None:
    async with ClusterHarness(Cluster(RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE)).open() as harness:
        await harness.set_desired(run(*PODSETS))
        await harness.until(lambda: harness.cluster.all(JOB))
        [template], [job] = harness.cluster.names(RESOURCE_CLAIM_TEMPLATE), harness.cluster.all(JOB)
        pod = job["spec"]["template"]["spec"]
        assert [one["resourceClaimTemplateName"] for one in pod["resourceClaims"]] == [template]
        assert "nvidia.com/gpu" not in json.dumps(pod["containers"][0]["resources"])
        await harness.set_desired(DeleteWorkload("w", NAMESPACE_NAME))
        await harness.until(lambda: harness.report.is_removed)
        assert harness.cluster.all(RESOURCE_CLAIM_TEMPLATE) == []


@scenario
async def test_a_cluster_without_such_claims_refuses_the_workload() -> None:
    async with ClusterHarness(Cluster()).open() as harness:
        await harness.set_desired(run(*PODSETS))
        await harness.until(lambda: harness.report.refused)
        assert "remove the annotation fairlead/gpu-device-class" in harness.report.refused


@scenario
async def test_devices_of_a_driver_are_gpus_of_their_node() -> None:
    golden = json.loads((GOLDEN / "nodes" / "dra-driver.json").read_bytes())
    async with ClusterHarness(Cluster(RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE)).open() as harness:
        harness.cluster.put(NODE, golden["node"])
        for slice in golden["slices"]:
            harness.cluster.put(RESOURCE_SLICE, slice)
        await harness.settle()
        [node] = await harness.engine.capacity()
        assert [gpu.model for gpu in node.gpus] == ["NVIDIA H100 80GB HBM3"] * 2
