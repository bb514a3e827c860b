"""Nodes of a cluster are cordoned and drained: only our pods are evicted, and refused evictions are retried."""

from fairlead.engines.base import MaintainNode
from fairlead.engines.kubernetes.client.api import ApiError
from fairlead.engines.kubernetes.client.resources import JOB, NODE, POD
from tests.contract.fake_cluster import Cluster, ClusterHarness, pod, run
from tests.contract.test_kubernetes_api import scenario
from tests.memory_api.objects import Body


class EvictingCluster(Cluster):
    """With the eviction API, which refuses as often as it is told to."""

    refusals = 0

    def evict(self, name: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        self.drop(POD, name)


def on(node: str, job: Body, name: str, phase: str = "Running") -> Body:
    body = pod(job, name, phase)
    body["spec"]["nodeName"] = node
    return body


def evicted(cluster: Cluster) -> list[str]:
    return [path.split("/")[-2] for path in cluster.asked if path.endswith("/eviction")]


def cordoned(cluster: Cluster) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.all(NODE) if node["spec"].get("unschedulable")]


async def opened(cluster: EvictingCluster, harness: ClusterHarness) -> Body:
    """With two nodes and a job with a pod on each."""
    for name in ("n1", "n2"):
        cluster.put(NODE, {"metadata": {"name": name}, "spec": {}, "status": {}})
    await harness.set_desired(run())
    await harness.until(lambda: cluster.all(JOB))
    [job] = cluster.all(JOB)
    cluster.put(POD, on("n1", job, "here"))
    cluster.put(POD, on("n2", job, "there"))
    foreign = on("n1", job, "foreign")
    foreign["metadata"]["labels"] = {}
    cluster.put(POD, foreign)
    cluster.put(POD, on("n1", job, "ended", "Succeeded"))
    await harness.settle()
    return job


@scenario
async def test_a_node_is_cordoned_and_uncordoned() -> None:
    cluster = EvictingCluster()
    async with ClusterHarness(cluster).open() as harness:
        await opened(cluster, harness)
        await harness.engine.apply((MaintainNode("n1", cordon=True),))
        await harness.until(lambda: cordoned(cluster) == ["n1"])
        assert {node.name for node in await harness.engine.capacity() if node.cordoned} <= {"n1"}
        await harness.engine.apply((MaintainNode("n1", cordon=False),))
        await harness.until(lambda: cordoned(cluster) == [])
        assert evicted(cluster) == []


@scenario
async def test_our_pods_on_it_are_evicted_and_no_others() -> None:
    cluster = EvictingCluster()
    cluster.refusals = 2
    async with ClusterHarness(cluster).open() as harness:
        job = await opened(cluster, harness)
        await harness.engine.apply((MaintainNode("n1", cordon=True, evicts=True),))
        await harness.until(lambda: "here" not in cluster.names(POD))
        assert evicted(cluster)[:3] == ["here"] * 3
        assert cluster.names(POD) == ["ended", "foreign", "there"]

        # Bound just before the node was cordoned.
        cluster.put(POD, on("n1", job, "late"))
        await harness.until(lambda: "late" not in cluster.names(POD))

        await harness.engine.apply((MaintainNode("n1"),))
        cluster.put(POD, on("n1", job, "later"))
        await harness.settle()
        assert "later" in cluster.names(POD)
        assert set(evicted(cluster)) == {"here", "late"}


@scenario
async def test_a_node_that_does_not_exist_is_forgotten() -> None:
    cluster = EvictingCluster()
    async with ClusterHarness(cluster).open() as harness:
        await harness.engine.apply((MaintainNode("gone", cordon=True, evicts=True),))
        await harness.settle()
        assert cluster.asked.count("PATCH /api/v1/nodes/gone") == 1
