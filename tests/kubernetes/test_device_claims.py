"""Whole GPUs as claims of devices (DRA) on a real API server: its controller makes the claims, KAI chooses devices."""

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.cluster import cluster as clusters
from deploy.cluster.nodes import Shape, add_nodes, remove_nodes
from tests.e2e.server import until
from tests.kubernetes.cluster_harness import PATIENCE, ClusterHarness

pytestmark = pytest.mark.kubernetes

DEVICES = "/apis/resource.k8s.io/v1"
CLASS, DRIVER, NODE = "gpu.example.com", "gpu.example.com", "dra-1"


def device(number: int) -> dict[str, Any]:
    attributes = {"type": {"string": "gpu"}, "productName": {"string": "Fake H100"}}
    return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


@pytest.fixture(scope="module", autouse=True)
def driver(cluster: clusters.Cluster, two_nodes: None) -> Iterator[None]:
    """A node without a device plugin, two GPUs that a driver has published, and their class."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [device(0), device(1)]}
    with cluster.api() as api:
        add_nodes(api, [NODE], Shape(gpus=0))
        api.call("POST", f"{DEVICES}/deviceclasses", {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}})
        api.call("POST", f"{DEVICES}/resourceslices", {"metadata": {"name": NODE}, "spec": spec})
        try:
            yield
        finally:
            api.call("DELETE", f"{DEVICES}/resourceslices/{NODE}")
            api.call("DELETE", f"{DEVICES}/deviceclasses/{CLASS}")
            remove_nodes(api, [NODE])


def claim(harness: ClusterHarness, name: str, gpus: int) -> str:
    asked = [{"name": "fairlead/gpu-device-class", "value": CLASS}]
    return harness.submit("training", name, harness.spec(gpus=gpus, annotations=asked))


def claims(harness: ClusterHarness) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = harness.api.call("GET", f"{DEVICES}/namespaces/{harness.namespace}/resourceclaims")[
        "items"
    ]
    return found


def test_claims_are_allocated_wait_for_devices_and_go(harness: ClusterHarness) -> None:
    first = claim(harness, "both", 2)
    harness.until_phase(first, "Running")
    [pod] = harness.pods(first)
    assert pod["nodeName"] == NODE
    [made] = claims(harness)
    results = made["status"]["allocation"]["devices"]["results"]
    assert sorted(one["device"] for one in results) == ["gpu-0", "gpu-1"]
    [node] = [one for one in harness.server.call("GET", "/api/v1/nodes").json["nodes"] if one["name"] == NODE]
    assert node["gpuInfo"]["gpuCount"] == 2
    second = claim(harness, "waits", 1)
    until(lambda: harness.server.message(second), "a reason", PATIENCE)
    harness.act("delete", first)
    harness.until_phase(second, "Running")
    harness.act("delete", second)
    until(lambda: not claims(harness), "that no claim is left", PATIENCE)
